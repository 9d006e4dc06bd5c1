"""What commands have git do in the end: whatever program, shell or variable stands between. Pure.

An argument vector and the text of a script are read alike, since either may hold the other. What is only known when it
runs (``$x push``, a script from a pipe) is refused where git is spoken of in a way that is not accounted for; else it
passes, since most scripts hold something of the kind.
"""

import re
from collections.abc import Sequence

from trunkline_git.guard import FREE, KNOWN, SETTINGS, Verdict, judged
from trunkline_git.shelltext import script_of
from trunkline_git.shellwords import LONGEST, UNKNOWN, Command, Word, unescaped

ELSEWHERE = Verdict(
    "refused",
    "a push goes by the tool git, which finds out first what the settings of the repository make of it.",
)
PLAINLY = "Write each command of git out, with its program and its words in plain text, or call the tool git."

SHELLS = frozenset(("sh", "bash", "dash", "ash", "rbash"))
OTHER_SHELLS = frozenset(("zsh", "ksh", "mksh", "yash", "fish", "csh", "tcsh"))
"""Shells that read some texts otherwise."""

READING_A_WORD = frozenset(("flock", "runuser", "script", "su", "trap"))
JOINING = frozenset(("entr", "eval", "parallel", "screen", "ssh", "tmux", "watch", "xterm"))
"""Programs that have a shell read one of their words, or several put together."""

AROUND = (
    READING_A_WORD
    | JOINING
    | frozenset(
        """
        builtin busybox chroot chrt command coproc doas env exec find firejail ionice nice nohup nsenter
        prlimit setpriv setsid stdbuf strace sudo taskset time timeout toybox unshare xargs xvfb-run
        """.split()  # noqa: SIM905  as a table it can be read
    )
)
"""Programs that run another one, which stands among their words."""

FED = frozenset(("parallel", "xargs"))
"""Those that put further words behind it, which they are given."""

TAKING_WORDS = frozenset(
    """
    : [ [[ ag apropos cat echo egrep expr false fgrep grep head logger ls man printf read rg sed
    tail tee test true type whereis which zgrep
    """.split()  # noqa: SIM905  as a table it can be read
)
"""Programs to which words are just words."""

DECLARING = frozenset(("declare", "export", "local", "readonly", "typeset"))
EVALUATED = frozenset(
    ("BASH_ALIASES", "BASH_ENV", "EDITOR", "ENV", "PAGER", "PROMPT_COMMAND", "PS4", "VISUAL")
)  # fmt: skip
"""Variables whose values something runs."""

HARMLESS = re.compile(
    r"GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS|GIT_MERGE_AUTOEDIT"
)
DOING_NOTHING = frozenset(("", "0", "1", ":", "true", "false", "cat"))
DEEPEST, MOST_TEXTS, MOST_SIGNS = 30, 200, 4 * LONGEST

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)
_SPOKEN_OF = re.compile(r"(?<![\w.+-])git(?![\w.+/@:])", re.IGNORECASE)
_SPLIT = re.compile(r"-[0iv]*S|--split-string(=|$)")


def ruled(text: str, protected: Sequence[str]) -> Verdict:
    """What is ruled about a text for a shell. ``shlex.join`` makes one of an argument vector."""
    bare = _without_quotes(text)
    if "git" not in bare and "push" not in bare:
        return FREE
    judge = _Judge(protected)
    judge.read(text)
    return judge.verdict(bare)


def _without_quotes(text: str) -> str:
    """The text in each way that it may come out once quotes are gone, one behind the other."""
    bare = re.sub(r"['\"]|\\\n", "", text)
    return "\n".join((bare.replace("\\", ""), re.sub(r"\\.", " ", bare), unescaped(bare))).lower()


class _Judge:
    """Reads texts and commands, and keeps the worst that is ruled about any."""

    def __init__(self, protected: Sequence[str]) -> None:
        self._protected = protected
        self._worst = FREE
        self._words: list[Word] = []
        self._accounted: set[Word] = set()
        self._texts_read = self._signs_read = self._depth = 0
        self._doubt = self._late = self._changed = ""
        self._git_runs = False

    def verdict(self, bare: str) -> Verdict:
        """What is ruled in the end. ``bare`` is all the text without quotes."""
        if self._doubt and _SPOKEN_OF.search(bare):
            return Verdict("refused", f"not all shells would read this alike: {self._doubt}. {PLAINLY}")
        if self._worst.ruling == "refused":
            return self._worst
        left = any(_SPOKEN_OF.search(word.text) for word in self._words if word not in self._accounted)
        if self._changed and (left or self._git_runs):
            return Verdict("refused", f"{self._changed} changes what git runs. Run git without it.")
        if self._late and left:
            return Verdict("refused", f"git is spoken of, and {self._late}. {PLAINLY}")
        return self._worst

    def read(self, text: str) -> None:
        """Read a text for a shell."""
        if not self._may_read(text):
            self._doubt = self._doubt or "it holds too many texts within texts"
            return
        script = script_of(text)
        self._words += script.words
        self._doubt = self._doubt or script.doubt
        self._is_late(script.late)
        for command in script.commands:
            self._command(command)

    def _may_read(self, text: str) -> bool:
        """Whether it is not too much yet; nothing is read without end, whatever a model writes."""
        self._texts_read += 1
        self._signs_read += len(text)
        return self._texts_read <= MOST_TEXTS and self._signs_read <= MOST_SIGNS

    def _is_late(self, why: str) -> None:
        self._late = self._late or why

    def _account(self, *words: Word) -> None:
        """Where git is spoken of in these it is known what for."""
        self._accounted.update(words)
        self._accounted.update(word.made_of for word in words if word.made_of)

    def _rule(self, verdict: Verdict) -> None:
        ranks = ("free", "confirm", "refused")
        if ranks.index(verdict.ruling) > ranks.index(self._worst.ruling):
            self._worst = verdict

    # commands

    def _command(self, command: Command) -> None:
        for word in command.assigned:
            self._assigned(word.text)
        if command.words:
            self._vector(command.words, command.given)

    def _vector(self, words: Sequence[Word], given: Word | None) -> None:
        """A program and its words; ``given`` is what it is given to read, where that is in the text."""
        if self._depth == DEEPEST:
            self._doubt = self._doubt or "it is nested too deeply"
            return
        self._depth += 1
        self._program(words, given)
        self._depth -= 1

    def _program(self, words: Sequence[Word], given: Word | None) -> None:
        name = _name(words[0])
        if UNKNOWN in name:
            self._unknown(words)
        elif _is_git(name):
            self._git(words)
        elif name in SHELLS or name in OTHER_SHELLS:
            self._shell(words, given)
        elif name in (".", "source"):
            self._file(words[1:], given)
        elif name == "find":
            self._find(words)
        elif name in DECLARING:
            for word in words[1:]:
                self._assigned(word.text)
        elif name == "alias":
            self._is_late("an alias may be any command")
        elif name in AROUND:
            self._around(words, given)
        elif name not in TAKING_WORDS:
            self._among(words)

    def _unknown(self, words: Sequence[Word]) -> None:
        self._is_late("which program a command runs is only known when it runs")
        if any(word.text in ("push", "send-pack") for word in words[1:]):
            self._rule(Verdict("refused", f"what pushes here is only known when it runs. {PLAINLY}"))
        self._around(words, None)

    def _git(self, words: Sequence[Word]) -> None:
        self._git_runs = True
        self._account(words[0])
        said = _of_git(words)
        verdict = judged(said, self._protected)
        elsewhere = verdict.ruling != "refused" and said[:1] == ["push"]
        self._rule(ELSEWHERE if elsewhere else verdict)

    def _assigned(self, text: str) -> None:
        name, assigned, value = text.partition("=")
        name = name.rstrip("+")
        if name in EVALUATED:
            self._is_late(f"{name} names a command")
        if (
            assigned
            and name.startswith("GIT_")
            and not HARMLESS.fullmatch(name)
            and value not in DOING_NOTHING
        ):
            self._changed = self._changed or name

    # shells

    def _shell(self, words: Sequence[Word], given: Word | None) -> None:
        if _name(words[0]) in OTHER_SHELLS:
            self._is_late(f"{_name(words[0])} reads some texts in its own way")
        letters, operands = _options_of_shell(words[1:])
        if UNKNOWN in letters:
            self._is_late("what a shell is to read is only known when it runs")
        if "c" in letters:
            for operand in operands[:1]:
                self._text(operand)
        elif operands and "s" not in letters:
            self._file(operands, given)
        else:
            self._given(given)

    def _file(self, operands: Sequence[Word], given: Word | None) -> None:
        """A script in a file, which nobody reads here; but a file may stand for something else."""
        file = operands[0].text if operands else ""
        if file.startswith(("/dev/", "/proc/")):
            self._given(given)
        elif UNKNOWN in file:
            self._is_late("which script a shell reads is only known when it runs")

    def _given(self, given: Word | None) -> None:
        if given is None:
            self._is_late("a shell runs what it is given by something else")
        else:
            self._text(given)

    def _text(self, word: Word) -> None:
        """A word that a shell reads."""
        if UNKNOWN in word.text:
            self._is_late("a part of what a shell is to read is only known when it runs")
        self._account(word)
        self.read(word.text.replace(UNKNOWN, "${_}"))

    # programs that run others

    def _find(self, words: Sequence[Word]) -> None:
        at = 0
        while at < len(words):
            if words[at].text not in ("-exec", "-execdir", "-ok", "-okdir"):
                at += 1
                continue
            end = next((to for to in range(at, len(words)) if words[to].text in (";", "+")), len(words))
            inner = words[at + 1 : end]
            if inner:
                first = Word(UNKNOWN) if "{}" in inner[0].text else inner[0]
                self._vector([first, *(_put_into(word, "{}") for word in inner[1:])], None)
            at = end + 1

    def _around(self, words: Sequence[Word], given: Word | None) -> None:
        """Whatever of these words could be what is run, from git or a shell on. After a program that only takes words
        they are its words, unless they are plainly a command."""
        name, rest = _name(words[0]), [*words[1:]]
        if name == "env":
            rest = self._split(rest)
        if name in READING_A_WORD:
            self._texts([word for word in rest if " " in word.text])
        elif name in JOINING:
            self._joined(rest, whole=name == "eval")
        fed = [Word(UNKNOWN)] if name in FED else []
        rest = _fed(rest) if fed else rest
        only_words = found = False
        for at, word in enumerate(rest):
            program = _name(word)
            if _ASSIGNMENT.match(word.text):
                self._assigned(word.text)
            if _is_git(program) and self._is_told(rest, at, fed, known=only_words):
                self._git([*rest[at:], *fed])
                break
            if program in SHELLS | OTHER_SHELLS | AROUND:
                self._vector([*rest[at:], *fed], given)
                found = True
            if program in AROUND and program != "find":
                break  # it has looked at all the rest
            only_words = only_words or program in TAKING_WORDS
            if UNKNOWN in program and not (only_words or found):
                self._is_late("which program a command runs is only known when it runs")
            if not only_words:
                self._maybe(word)
        if fed and found:
            self._is_late(f"{name} runs what it is given")

    def _is_told(self, words: Sequence[Word], at: int, fed: Sequence[Word], *, known: bool) -> bool:
        """Whether git, which is the word there, is told to do something; ``known``: something that it can do."""
        if known:
            return _is_known([*words[at:], *fed])
        return bool(words[at + 1 :] or fed or _name(words[at]) != "git")

    def _split(self, words: Sequence[Word]) -> list[Word]:
        """The words of ``env``, without those that it takes apart itself (``-S``): they are read as a text."""
        for at, word in enumerate(words):
            option = _SPLIT.match(word.text)
            if not option:
                continue
            attached = word.text[option.end() :]
            behind = [one.text for one in words[at + 1 :]]
            self._account(*words[at : at + 2])
            text = " ".join(["env", attached, *behind])
            self.read(text.replace("\\_", " ").replace(UNKNOWN, "${_}"))
            return [*words[:at]]
        return [*words]

    def _texts(self, words: Sequence[Word]) -> None:
        """Each of the words as a text for a shell, where it speaks of git."""
        for word in words:
            if _SPOKEN_OF.search(word.text):
                self._text(word)
            elif UNKNOWN in word.text:
                self._is_late("what a shell is to read is only known when it runs")

    def _joined(self, words: Sequence[Word], *, whole: bool) -> None:
        """The words together as a text for a shell; unless all of them are in it, from the first on that speaks of
        git, since those before may be options."""
        spoken = [at for at, word in enumerate(words) if UNKNOWN in word.text or _SPOKEN_OF.search(word.text)]
        if spoken or whole:
            text = words if whole else words[spoken[0] :]
            self._account(*text)
            self._text(Word(" ".join(word.text for word in text)))

    def _among(self, words: Sequence[Word]) -> None:
        """A program that is not known here: git, or a shell with a script, may stand among its words."""
        last = max(
            (at for at, word in enumerate(words) if word.text.startswith("-") and "c" in word.text), default=0
        )
        for at, word in enumerate(words[1:], 1):
            name = _name(word)
            if _is_git(name) and _is_known(words[at:]):
                self._git(words[at:])
                return
            if name in SHELLS and at < last:
                self._shell(words[at:], None)
            self._maybe(word)

    def _maybe(self, word: Word) -> None:
        """A word that may be a command as text, such as ``'git push'`` or ``CMD=git push``, or just words."""
        for text in (word.text, word.text.partition("=")[2]):
            if not re.search(r"\s", text) or not _SPOKEN_OF.search(text) or not self._may_read(text):
                continue
            script = script_of(text.replace(UNKNOWN, "${_}"))
            for command in script.commands if not script.doubt else ():
                name = _name(command.words[0]) if command.words else ""
                if name in SHELLS | AROUND or (_is_git(name) and _is_known(command.words)):
                    self._vector(command.words, command.given)


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2].lower()


def _is_git(name: str) -> bool:
    return name == "git" or name.startswith("git-")


def _of_git(words: Sequence[Word]) -> list[str]:
    """What git is told, from its command on: past options that only say where and how it is shown, or set what harms
    nobody. git's commands are programs too: git-reset."""
    name, said = _name(words[0]), [word.text for word in words[1:]]
    if name != "git":
        return [name.removeprefix("git-"), *said]
    while said:
        if said[0] in ("--no-pager", "-P"):
            said = said[1:]
        elif said[0] == "-C" or (
            said[0] == "-c" and said[1:] and said[1].partition("=")[0].lower() in SETTINGS
        ):
            said = said[2:]
        else:
            break
    return said


def _is_known(words: Sequence[Word]) -> bool:
    """Whether git, with these words, is told a command that it has."""
    return (_of_git(words) or [""])[0].lower() in KNOWN


def _options_of_shell(words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """The letters of a shell's options, and the words behind them."""
    letters, at = "", 0
    while at < len(words):
        text = words[at].text
        if UNKNOWN in text[:2]:
            letters += UNKNOWN
        elif text in ("--rcfile", "--init-file"):
            at += 1
        elif text in ("-", "--"):
            return letters, words[at + 1 :]
        elif text[:1] in ("-", "+") and not text.startswith("--"):
            letters += text[1:] if text[0] == "-" else ""
            at += text.lower().count("o")  # each has a value, which is a word of its own
        elif not text.startswith("--"):
            break
        at += 1
    return letters, words[at:]


def _put_into(word: Word, sign: str) -> Word:
    """A word into which something is put where the sign is."""
    return (
        word
        if sign not in word.text or word.text == sign
        else Word(word.text.replace(sign, UNKNOWN), made_of=word)
    )


def _fed(words: Sequence[Word]) -> list[Word]:
    """The words of xargs or parallel, which put what they are given where a sign is that may be chosen."""
    signs = {"{}"}
    for at, one in enumerate(words):
        if one.text in ("-I", "-J") and at + 1 < len(words):
            signs.add(words[at + 1].text)
        elif one.text.startswith(("-I", "--replace=")):
            signs.add(one.text.removeprefix("-I").removeprefix("--replace="))
    pattern = re.compile("|".join(map(re.escape, sorted(signs - {""}, key=len, reverse=True))))
    return [
        Word(pattern.sub(UNKNOWN, word.text), made_of=word) if pattern.search(word.text) else word
        for word in words
    ]
