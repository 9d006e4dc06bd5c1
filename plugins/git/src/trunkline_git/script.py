"""The commands of git that stand in plain sight in a command or a script. Pure.

It is an early answer, and no wall: an agent that means well is told to push by the tool ``git``, and a person is asked
before work is thrown away. What it does not see, or reads wrongly, the sandbox holds (ADR 59).
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from trunkline_git.rules import FREE, Verdict, judge_argv

ELSEWHERE = Verdict("refused", "a push goes by the tool git, which lets it change only what it may.")

SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
BEFORE = frozenset(
    """
    ! { command do elif else env exec if nice nohup setsid sudo then time timeout until while
    """.split()  # noqa: SIM905  as a table it can be read
)
"""Words behind which the command itself comes, perhaps after options, signals, numbers and assignments."""

MAX_CHARACTERS = 20_000
"""A longer script is not read."""

_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(['\"\\]*[A-Za-z_][\w'\"\\]*)")
_BETWEEN = re.compile(r"-.*|[A-Z]+|\d+[smhd]?|[A-Za-z_]\w*=.*", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.DOTALL)


def judge_command(command: Sequence[str] | str, protected: Sequence[str]) -> Verdict:
    """Judge an argument vector or the text of a script."""
    found = FREE
    for words in _commands(command) if isinstance(command, str) else _within(command):
        said = _of_git(words)
        if said and said[0].lower() in ("push", "send-pack"):
            return ELSEWHERE
        verdict = judge_argv(said, protected)
        if verdict.ruling == "confirm" and found is FREE:
            found = verdict
    return found


def _commands(script: str) -> Iterator[list[str]]:
    """The commands of git in a script, as far as it can be taken apart without knowing shells."""
    if len(script) > MAX_CHARACTERS:
        return
    text = _without_here_documents(script.replace("\\\n", ""))
    words = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    words.whitespace, words.whitespace_split, words.commenters = " \t\r", True, ""
    command: list[str] = []
    try:
        for word in words:
            if set(word) <= set("();<>|&\n"):
                yield from _within(command)
                command = []
            else:
                command.append(word)
    except ValueError:  # a quote that is not closed: the shell will say so
        return
    yield from _within(command)


def _without_here_documents(script: str) -> str:
    """The script without the texts that it gives to programs to read."""
    kept, end = [], ""
    for line in script.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        if found := _HERE_DOCUMENT.search(line):
            end = re.sub(r"['\"\\]", "", found[1])
    return "\n".join(kept)


def _within(command: Sequence[str]) -> Iterator[list[str]]:
    """A command, when it is one of git; and those in the text that it has a shell read."""
    words = [*command]
    while words and (words[0] in BEFORE or _ASSIGNMENT.match(words[0])):
        prefixed = words[0] in BEFORE
        words = words[1:]
        while prefixed and words and _BETWEEN.fullmatch(words[0]):
            words = words[1:]
    name = words[0].rpartition("/")[2] if words else ""
    if name == "git" or name.startswith("git-"):
        yield [name, *words[1:]]
    elif name in SHELLS and len(words) > 2 and re.fullmatch("-[a-z]*c", words[1]):
        yield from _commands(words[2])


def _of_git(words: Sequence[str]) -> list[str]:
    """Return git's arguments from the subcommand on, without the options before it. Programs such as ``git-push`` count
    as subcommands too."""
    said = [*words[1:]]
    if words[0] != "git":
        return [words[0].removeprefix("git-"), *said]
    while said and said[0].startswith("-"):
        said = said[2:] if said[0] in ("-C", "-c") else said[1:]
    return said
