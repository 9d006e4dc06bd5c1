"""Recognises programs that only read, by their argument vector. No shell is involved.

A program is recognised only with options listed here by their complete names: an unlisted option might write (``sort
-o``), run another program (``find -exec``), or abbreviate an option that does (``--outp``). If a program that only
reads is not recognised, a person is asked needlessly. If a program that writes is recognised by mistake, it changes
nothing, because it runs in a read-only sandbox (``workers/tools/sandboxes.py``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trunkline._util.text import split_plain_command
from trunkline.contracts.tools.messages import ToolSpec

_ROWS = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
_NUMBER = re.compile(r"[-+]?\d+[a-zA-Z]?")

PLAIN: dict[str, tuple[str, frozenset[str]]] = {
    "ls": ("laAhRtrS1dFinsp", frozenset({"all", "almost-all", "human-readable", "recursive", "reverse"})),
    "cat": ("nbAEsTv", frozenset({"number", "show-all"})),
    "head": ("nc0123456789qv", frozenset({"lines", "bytes"})),
    "tail": ("nc0123456789qv", frozenset({"lines", "bytes"})),
    "wc": ("lwcmL", frozenset({"lines", "words", "bytes", "chars"})),
    "grep": (
        "inrRlLcvwxEFHhoqsABCmez0123456789",
        frozenset({"include", "exclude", "exclude-dir", "color", "count"}),
    ),
    "echo": ("neE", frozenset()),
    "pwd": ("LP", frozenset()),
    "which": ("a", frozenset()),
    "basename": ("as", frozenset()),
    "dirname": ("", frozenset()),
    "realpath": ("ems", frozenset()),
    "stat": ("cLt", frozenset({"format"})),
    "du": ("ahscdk", frozenset({"max-depth", "human-readable", "summarize"})),
    "cmp": ("ls", frozenset()),
    "diff": ("urNqwbBiy0123456789U", frozenset({"brief", "unified", "recursive"})),
    "cut": ("dfcbs", frozenset({"delimiter", "fields"})),
    "sort": ("nrufkth", frozenset({"numeric-sort", "reverse", "unique"})),
}
"""Programs, the letters of their short options, and the complete names of their long options."""

FIND = frozenset(
    """
    -name -iname -path -ipath -regex -iregex -type -size -mtime -mmin -newer -maxdepth -mindepth -empty
    -print -print0 -prune -not -a -o -and -or -H -L -P
    """.split()  # noqa: SIM905  easier to read as a table
)
GIT: dict[str, frozenset[str]] = {
    "status": frozenset({"--short", "-s", "--branch", "-b", "--porcelain"}),
    "log": frozenset(
        {"--oneline", "--graph", "--all", "--stat", "-p", "--patch", "--decorate", "--follow", "-n"}
    ),
    "diff": frozenset(
        {"--stat", "--cached", "--staged", "--name-only", "--name-status", "--word-diff", "-w"}
    ),
    "show": frozenset({"--stat", "--name-only", "--name-status", "--oneline"}),
    "rev-parse": frozenset({"--short", "--abbrev-ref", "--verify", "--show-toplevel"}),
    "describe": frozenset({"--tags", "--always", "--dirty", "--long"}),
    "blame": frozenset({"-w", "-L", "-s", "-e"}),
    "ls-files": frozenset(
        {"-s", "-m", "-o", "-d", "--stage", "--modified", "--others", "--exclude-standard"}
    ),
    "ls-tree": frozenset({"-r", "-d", "-l", "--name-only"}),
    "cat-file": frozenset({"-p", "-t", "-s", "-e"}),
    "shortlog": frozenset({"-s", "-n", "-e", "-sn", "-sne"}),
}
"""The subcommands of git that only read, and their options."""


def is_read_only_call(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    """Report whether a call only runs programs that only read.

    This holds if the tool is ``read_only``, or if the parameter named by ``spec.argv`` is the argument vector of such
    a program or a plain command line without shell syntax.
    """
    if spec.effect != "exec" or spec.read_only:
        return spec.read_only and spec.effect == "exec"
    given = arguments.get(spec.argv) if spec.argv else None
    words = split_plain_command(given) if isinstance(given, str) else given
    return (
        isinstance(words, list)
        and all(isinstance(word, str) for word in words)
        and is_read_only_program(words)
    )


def is_read_only_program(argv: Sequence[str]) -> bool:
    """Report whether the program with these arguments only reads."""
    if not argv or any("\0" in word for word in argv):
        return False
    program, words = argv[0], argv[1:]
    special = _SPECIAL.get(program)
    if special is not None:
        return special(words)
    known = PLAIN.get(program)
    return known is not None and all(_is_known(word, *known) for word in _options(words))


def _options(words: Sequence[str]) -> list[str]:
    """Return the words before ``--`` that begin with a dash."""
    end = words.index("--") if "--" in words else len(words)
    return [word for word in words[:end] if word.startswith("-") and word != "-"]


def _is_known(option: str, letters: str, names: frozenset[str]) -> bool:
    if option.startswith("--"):
        return option[2:].partition("=")[0] in names
    return all(letter in letters for letter in option[1:])


def _find(words: Sequence[str]) -> bool:
    return all(word in FIND or _NUMBER.fullmatch(word) for word in words if word.startswith("-"))


def _sed(words: Sequence[str]) -> bool:
    """Report whether the arguments are only ``-n 1,10p FILE…``. The language of sed can write files and run
    programs.
    """
    return (
        len(words) >= 2 and words[0] == "-n" and bool(_ROWS.fullmatch(words[1])) and not _options(words[2:])
    )


def _git(words: Sequence[str]) -> bool:
    rest = [*words]
    if rest[:1] == ["--no-pager"]:
        rest = rest[1:]
    known = GIT.get(rest[0]) if rest else None
    if known is None:
        return False
    return all(option in known or _NUMBER.fullmatch(option) for option in _options(rest[1:]))


_SPECIAL: dict[str, Callable[[Sequence[str]], bool]] = {"find": _find, "sed": _sed, "git": _git}
