"""The words of a text for a shell, with what stands in them: quotes, and what a shell replaces. Pure."""

import re
from dataclasses import dataclass, field
from typing import NoReturn

UNKNOWN = "\0"
"""Stands in a word for what only the shell will know: any text, or none. No word of a program can hold this sign."""

_TEST = re.compile(r"\[\[?(?=[ \t\n;&|<>()]|$)")
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[[^\]]*\Z")
BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_BARE = re.compile(r"[^ \t\n;&|<>()'\"\\$`*?\[]+")
_SOFT = re.compile(r"[^\"\\$`]+")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])")
_PARAMETER = re.compile(r"#(?=\})|[!#]?([A-Za-z_]\w*|[0-9]+|[@*#?$!-])")
_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}")
JOINED = re.compile(r"(\\\n)+")
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
_CONTROLS = dict(zip("abefnrtvE", "\a\b\x1b\f\n\r\t\v\x1b", strict=True))
DEEPEST, LONGEST, LONGEST_SUM = 40, 65_536, 1_000


@dataclass(eq=False, slots=True)
class Word:
    """A word as a program would get it, with ``UNKNOWN`` for what is not known. ``plain``: without quotes or anything
    that a shell replaces, so that it may be reserved. ``many``: more words may come of it than one, or none.
    ``made_of``: the word that it was, before a program put something into it."""

    text: str
    plain: bool = False
    many: bool = False
    made_of: "Word | None" = None


@dataclass(slots=True)
class Command:
    """A simple command: its words, what is assigned before them, and the text that it is given to read, if any."""

    words: list[Word] = field(default_factory=list)
    assigned: list[Word] = field(default_factory=list)
    given: Word | None = None


@dataclass(slots=True)
class Script:
    """What was read: ``words`` are all that there are, also those of no command. ``doubt`` says why a shell may read
    the text otherwise, ``late`` what of it a shell would only find out when it runs."""

    commands: list[Command] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    doubt: str = ""
    late: str = ""


class InDoubt(Exception):
    """Nothing more is read."""


class WordReader:
    """Reads words; lists of commands within them are read by who inherits from it."""

    def __init__(self, text: str, script: Script, depth: int) -> None:
        self._text = text
        self._script = script
        self._depth = depth
        self._at = 0
        self._deeper(0)

    def _inside(self) -> None:
        """Read a list of commands in parentheses, from behind the one that opens it."""
        raise AssertionError("a reader of lists says how")

    def _text_inside(self, text: str) -> None:
        """Read a text of its own within this one."""
        raise AssertionError("a reader of lists says how")

    def _crossed(self, begin: int) -> None:
        """Called when something that may hold lines was read from ``begin`` on."""

    def _doubt(self, why: str) -> NoReturn:
        raise InDoubt(why)

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > DEEPEST:
            self._doubt("it is nested too deeply")

    def _next(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _word(self) -> Word:
        parts: list[str] = []
        bare: list[str] = []
        plain, many = True, False
        while self._at < len(self._text):
            sign = self._next()
            is_list = self._next(2) in ("<(", ">(")
            if sign in " \t\n;&|<>()" and not is_list:
                break
            if run := _BARE.match(self._text, self._at):
                self._at = run.end()
                parts.append(run[0])
                bare.append(run[0])
                if "\r" in run[0]:
                    self._doubt("there are carriage returns in it")
                continue
            if self._next(2) == "\\\n":
                self._at += 2
                continue
            plain = False
            bare.append("[" if sign == "[" else "q")
            many = self._piece(sign, parts) or many
        if "[" in bare and _SUBSCRIPT.match("".join(bare)):
            self._doubt("a [ is not closed")
        if _BRACES.search("".join(bare)):
            return Word("".join(parts).replace("{", UNKNOWN), many=True)
        return Word("".join(parts), plain, many)

    def _piece(self, sign: str, parts: list[str]) -> bool:
        """A part of a word that is not plain. Says whether it may become several words."""
        if sign == "$":
            return self._dollar(parts, quoted=False)
        if sign == "`":
            self._backticks(parts, quoted=False)
            return True
        if sign in "<>":
            self._at += 2
            self._inside()
            parts.append(UNKNOWN)
            return False
        if sign == '"':
            self._at += 1
            return self._soft_text(parts, '"')
        if sign == "'":
            parts.append(self._raw())
        elif sign == "\\":
            parts.append(self._next(2)[1:] or sign)
            self._at += 2
        else:
            self._pattern(sign, parts)
        return False

    def _pattern(self, sign: str, parts: list[str]) -> None:
        """``*``, ``?`` or ``[``: names of files may come of it."""
        is_test = not parts and _TEST.match(self._text, self._at)
        parts.append(is_test[0] if is_test else UNKNOWN)
        self._at = is_test.end() if is_test else self._at + 1

    def _raw(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            self._doubt("a quote is not closed")
        found = self._text[self._at + 1 : end]
        self._at = end + 1
        return found

    def _soft_text(self, parts: list[str], end: str) -> bool:
        """Text to ``end``, or to the end of all. Says whether it may become several words."""
        many = False
        while self._at < len(self._text):
            sign = self._next()
            if run := _SOFT.match(self._text, self._at):
                self._at = run.end()
                parts.append(run[0])
            elif sign == "\\":
                self._escaped(parts)
            elif sign == "$":
                many = self._dollar(parts, quoted=True) or many
            elif sign == "`":
                self._backticks(parts, quoted=bool(end))
            else:
                self._at += 1
                if sign == end:
                    return many
                parts.append(sign)
        if end:
            self._doubt("a quote is not closed")
        return many

    def _escaped(self, parts: list[str]) -> None:
        then = self._next(2)[1:]
        self._at += 2
        if then != "\n":
            parts.append(then if then and then in '$`"\\' else f"\\{then}")

    # what a shell replaces

    def _dollar(self, parts: list[str], *, quoted: bool) -> bool:
        """What begins with ``$``. Says whether it may become several words."""
        two = self._next(2)
        if JOINED.match(self._text, self._at + 1):
            self._doubt("a line goes on after a $")
        if two == "$'" and not quoted:
            parts.append(self._ansi())
            return False
        if two == '$"' and not quoted:
            self._at += 1
            return False
        if two == "$(":
            self._substitution()
        elif two == "${":
            return self._parameter(parts, quoted)
        elif found := _VARIABLE.match(self._text, self._at):
            self._at = found.end()
            quoted = quoted and found[1] != "@"
        else:
            if two == "$[":
                self._doubt("bash may take $[…] for a sum")
            parts.append("$")
            self._at += 1
            return False
        parts.append(UNKNOWN)
        return not quoted

    def _ansi(self) -> str:
        """``$'…'``: bash knows escapes in it, and may see its end elsewhere than dash does."""
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self._text, self._at)
        end = self._text.find("'", self._at + 2)
        if not found or found.end() != end + 1:
            self._doubt("bash sees the end of a $'…' elsewhere than sh does")
        self._at = found.end()
        return unescaped(found[1])

    def _substitution(self) -> None:
        """``$(…)`` and ``$((…))``."""
        end = self._end_of_sum() if self._next(3) == "$((" else None
        if JOINED.match(self._text, self._at + 2):
            self._doubt("a line goes on after a $(")
        if end is None:
            self._at += 2
            self._inside()
            return
        if any(sign in self._text[self._at : end] for sign in "'\"\\"):
            self._doubt("there are quotes in a sum")
        self._at += 3
        while self._at < end:
            sign = self._next()
            if sign == "$":
                self._dollar([], quoted=True)
            elif sign == "`":
                self._backticks([], quoted=True)
            else:
                self._at += 1
        self._at = max(self._at, end + 2)

    def _end_of_sum(self) -> int | None:
        """Where the ``))`` is; None when it is a subshell in a substitution."""
        depth = 0
        for at in range(self._at + 1, min(len(self._text), self._at + LONGEST_SUM)):
            depth += (self._text[at] == "(") - (self._text[at] == ")")
            if depth == 1 and self._text[at] == ")":
                return at if self._text.startswith("))", at) else None
        self._doubt("a sum does not end")

    def _parameter(self, parts: list[str], quoted: bool) -> bool:
        """``${…}``."""
        begin = self._at
        self._deeper(1)
        found = _PARAMETER.match(self._text, self._at + 2)
        if not found:
            self._doubt("a ${ names no variable")
        self._at = found.end()
        while self._at < len(self._text) and self._next() != "}":
            self._in_parameter(quoted)
        if self._at >= len(self._text):
            self._doubt("a ${ is not closed")
        self._deeper(-1)
        self._at += 1
        written = self._text[begin : self._at]
        if written.endswith("@P}"):
            self._script.late = self._script.late or f"{written} runs what a variable holds"
        self._crossed(begin)
        parts.append(UNKNOWN)
        return not quoted or "@" in written

    def _in_parameter(self, quoted: bool) -> None:
        sign, gone = self._next(), list[str]()
        if sign in "'\"\\" and quoted:
            self._doubt("shells differ about quotes in a ${…} that is quoted")
        if sign == "{" or self._next(2) in ("<(", ">("):
            self._doubt("shells differ about what else there may be in a ${…}")
        if sign == "$":
            self._dollar(gone, quoted=True)
        elif sign == "`":
            self._backticks(gone, quoted)
        elif sign == "'":
            self._raw()
        elif sign == '"':
            self._at += 1
            self._soft_text(gone, '"')
        else:
            self._at += 2 if sign == "\\" else 1

    def _backticks(self, parts: list[str], quoted: bool) -> None:
        found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self._text, self._at)
        parts.append(UNKNOWN)
        if not found:
            self._doubt("a backtick is not closed")
        begin, self._at = self._at, found.end()
        escapes = r'\\([\\`$"])' if quoted else r"\\([\\`$])"
        if quoted and '"' in found[1] and "\\" in found[1]:
            self._doubt("there are quotes and backslashes between backticks")
        self._text_inside(re.sub(escapes, r"\1", found[1]))
        self._crossed(begin)


def unescaped(text: str) -> str:
    """The text with what bash makes of a backslash and what follows it in ``$'…'``."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(found: "re.Match[str]") -> str:
    code = found[1] or found[2] or found[3]
    if code or found[4]:
        number = int(code, 16) if code else int(found[4], 8)
        return chr(number) if 0 < number < 0x110000 else UNKNOWN
    return _CONTROLS.get(found[5], found[5])
