"""The commands that a text for a shell holds. Pure.

It is no shell: it reads more than a shell would run, both arms of an ``if`` and the bodies of functions that nobody
calls. What it must not do is to pass over a command that a shell would run. dash, bash and busybox read some texts each
in a way of their own; where it cannot tell that all of them read what it reads, it is in doubt and says so.
"""

import re
from dataclasses import dataclass

from trunkline_git.shellwords import (
    BLANKS,
    JOINED,
    LONGEST,
    LONGEST_SUM,
    UNKNOWN,
    Command,
    InDoubt,
    Script,
    Word,
    WordReader,
)

RESERVED = frozenset(("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SEPARATOR = re.compile(r";;&|;;|;&|;|&&|&|\|\||\|&|\|")
_ARROW = re.compile(r"<<<|<<-|<<|<&|<>|<|>>|>\||>&|>")


def script_of(text: str) -> Script:
    """What a text for a shell holds; once there is a doubt, what was read before it."""
    script = Script()
    if len(text) > LONGEST:
        script.doubt = f"it is longer than {LONGEST} characters"
        return script
    try:
        _Reader(text, script).whole()
    except InDoubt as doubt:
        script.doubt = str(doubt)
    return script


@dataclass(slots=True)
class _Here:
    """A text that is to come after the line."""

    command: Command
    end: str
    as_it_is: bool
    tabs: bool


class _Place:
    """Where the reader is in a list of commands: the command that it reads, and what is open around it."""

    def __init__(self) -> None:
        self.command = Command()
        self.open: list[str] = []
        self.in_pattern = False
        self.cuts: list[int] = []

    @property
    def within(self) -> str:
        return self.open[-1] if self.open else ""

    def begins_with(self, *names: str) -> bool:
        """Whether the command begins with one of these reserved words."""
        words = self.command.words
        return bool(words) and not self.command.assigned and words[0].plain and words[0].text in names


class _Reader(WordReader):
    """Reads one text, and those within it by readers of their own."""

    def __init__(self, text: str, script: Script, depth: int = 0) -> None:
        super().__init__(text, script, depth)
        self._awaited: list[_Here] = []
        self._lists_within = 0

    def whole(self) -> None:
        """Read all of it."""
        self._list(closing=False)

    def _list(self, *, closing: bool) -> None:
        """Read commands to the end of the text, or to the parenthesis that closes this list."""
        place = _Place()
        while self._at < len(self._text):
            sign = self._next()
            if blanks := BLANKS.match(self._text, self._at):
                self._at = blanks.end()
            elif sign == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif sign == "\n":
                self._line_ends(place)
            elif sign in ";&|":
                self._separator(place)
            elif sign == "(":
                self._opens(place)
            elif sign == ")":
                self._at += 1
                self._emit(place)
                if closing and not place.open:
                    return
                self._closes(place)
            elif sign in "<>" and not self._text.startswith("(", self._at + 1):
                self._redirection(place)
            else:
                self._take(place, self._word())
        self._emit(place)
        if closing or place.open:
            self._doubt("something in it is opened and never closed")

    def _line_ends(self, place: _Place) -> None:
        self._at += 1
        if not (place.begins_with("case") and len(place.command.words) == 2):
            self._emit(place)
        awaited, self._awaited = self._awaited, []
        for here in awaited:
            self._here(here)

    def _separator(self, place: _Place) -> None:
        if (
            self._next(2) == "&>"
        ):  # to bash where both outputs go; to dash the end of a command, and another one
            self._at += 1
            place.cuts.append(len(place.command.words))
            return
        found = _SEPARATOR.match(self._text, self._at)
        sign = found[0] if found else ""
        self._at += len(sign)
        if sign == "|" and place.in_pattern:
            return
        self._emit(place)
        if sign.startswith(";") and JOINED.match(self._text, self._at):
            self._doubt("a line goes on after a ;")
        if sign in (";;", ";&", ";;&"):
            if place.within != "case":
                self._doubt(f"there is a {sign} outside of case")
            place.in_pattern = True

    def _opens(self, place: _Place) -> None:
        if place.in_pattern:
            self._at += 1
            return
        words = place.command.words
        if len(words) == 1 and re.compile(r"\([ \t]*\)").match(self._text, self._at):
            place.command.words = []  # the name of a function
        if (JOINED.match(self._text, self._at + 1) or self._next(2) == "((") and self._could_be_sums():
            self._doubt("bash may take ((…)) for a sum")
        self._emit(place)
        self._at += 1
        place.open.append("(")

    def _could_be_sums(self) -> bool:
        """Whether what follows holds signs that mean one thing in bash's ``((…))`` and another in two subshells."""
        depth = 0
        for at in range(self._at, min(len(self._text), self._at + LONGEST_SUM)):
            sign = self._text[at]
            depth += (sign == "(") - (sign == ")")
            if sign in "#'\"\\`" or self._text.startswith("<<", at):
                return True
            if depth == 0:
                return False
        return True

    def _closes(self, place: _Place) -> None:
        if place.in_pattern:
            place.in_pattern = False
        elif place.within == "(":
            place.open.pop()
        else:
            self._doubt("it closes what is not open")

    def _take(self, place: _Place, word: Word) -> None:
        """A word of the command, unless it is one of the shell's own."""
        self._script.words.append(word)
        command = place.command
        first = not command.words and not command.assigned
        if word.plain and word.text == "esac" and (first or place.in_pattern):
            self._case_ends(place)
        elif place.in_pattern or (first and word.plain and word.text in RESERVED):
            return
        elif not command.words and _ASSIGNMENT.match(word.text):
            command.assigned.append(word)
        else:
            command.words.append(word)
            self._after_a_word(place)

    def _after_a_word(self, place: _Place) -> None:
        words = place.command.words
        if place.begins_with("case") and len(words) == 3 and words[2].plain and words[2].text == "in":
            place.command = Command()
            place.open.append("case")
            place.in_pattern = True
        elif (
            place.begins_with("for", "select")
            and len(words) == 3
            and words[2].plain
            and words[2].text == "do"
        ) or (place.begins_with("function") and len(words) == 2):
            place.command = Command()

    def _case_ends(self, place: _Place) -> None:
        if place.within != "case":
            self._doubt("there is an esac outside of case")
        place.open.pop()
        place.in_pattern = False

    def _emit(self, place: _Place) -> None:
        """The command is over."""
        command, cuts, is_loop = place.command, place.cuts, place.begins_with("for", "select")
        place.command, place.cuts = Command(), []
        if is_loop or not (command.words or command.assigned):
            return
        words = command.words
        parts = [part for cut in cuts for part in (words[:cut], words[cut:]) if part]
        for one in (command, *map(Command, parts)):
            one.words = [
                each for word in one.words for each in ((word, Word(UNKNOWN)) if word.many else (word,))
            ]
            self._script.commands.append(one)

    # redirections, and texts after the line

    def _redirection(self, place: _Place) -> None:
        words = place.command.words
        if words and words[-1].plain and words[-1].text.isdigit() and self._text[self._at - 1].isdigit():
            words.pop()
        found = _ARROW.match(self._text, self._at)
        arrow = found[0] if found else ""
        self._at += len(arrow)
        if JOINED.match(self._text, self._at):
            self._doubt(f"a line goes on after {arrow}")
        if blanks := BLANKS.match(self._text, self._at):
            self._at = blanks.end()
        begin, word = self._at, self._word()
        self._script.words.append(word)
        if arrow in ("<<", "<<-"):
            self._awaits(place, arrow, word, self._text[begin : self._at])
        elif arrow == "<<<":
            place.command.given = word

    def _awaits(self, place: _Place, arrow: str, word: Word, written: str) -> None:
        if not word.text or UNKNOWN in word.text or "$" in written or "`" in written or "\n" in written:
            self._doubt(f"where the text after {arrow} ends is not in plain words")
        as_it_is = any(sign in written for sign in "'\"\\")
        self._awaited.append(_Here(place.command, word.text, as_it_is, arrow == "<<-"))

    def _here(self, here: _Here) -> None:
        """Read the text that was announced in the line before."""
        lines = []
        while self._at < len(self._text):
            line = self._line(here)
            if line == here.end:
                break
            if self._lists_within and line.startswith(here.end):
                self._doubt("bash may end a text after << in parentheses before its last line")
            lines.append(f"{line}\n")
        word = Word("".join(lines))
        if not here.as_it_is:
            word = _Reader(word.text, self._script, self._depth + 1).soft()
        here.command.given = word
        self._script.words.append(word)

    def _line(self, here: _Here) -> str:
        line = self._one_line()
        while not here.as_it_is and self._at < len(self._text) and _goes_on(line):
            line = line[:-1] + self._one_line()
        return line.lstrip("\t") if here.tabs else line

    def _one_line(self) -> str:
        begin, end = self._at, self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end
        self._at = end + 1
        return self._text[begin:end]

    def soft(self) -> Word:
        """All of it as text in which a shell replaces what begins with ``$`` or a backtick."""
        parts: list[str] = []
        self._soft_text(parts, "")
        return Word("".join(parts))

    def _inside(self) -> None:
        """A list of commands in parentheses, from behind the one that opens it."""
        begin, awaited, self._awaited = self._at, self._awaited, []
        self._deeper(1)
        self._lists_within += 1
        self._list(closing=True)
        self._lists_within -= 1
        self._deeper(-1)
        self._no_text_across(begin, awaited)

    def _no_text_across(self, begin: int, awaited: list[_Here]) -> None:
        """Shells differ about a text that was announced on one side of a parenthesis and is on the other."""
        if self._awaited or (awaited and "\n" in self._text[begin : self._at]):
            self._doubt("a text after << is not where the command is")
        self._awaited = awaited

    def _text_inside(self, text: str) -> None:
        _Reader(text, self._script, self._depth + 1).whole()

    def _crossed(self, begin: int) -> None:
        self._no_text_across(begin, self._awaited)


def _goes_on(line: str) -> bool:
    """Whether a line ends with a backslash that is not itself written by one."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
