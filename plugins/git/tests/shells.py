"""Scripts as they come, and what the shells of this machine make of them."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st

from trunkline_git.shelltext import script_of
from trunkline_git.shellwords import UNKNOWN, Word

SHELLS = [
    words
    for words in (("dash",), ("bash",), ("bash", "--posix"), ("busybox", "sh"))
    if shutil.which(words[0])
]

PIECES = [
    "git a", "git", " git b", "\\git c", "'git' d", "g\"i\"t e", "g\\\nit f", "echo ", "cat ", ": ", "x=1 ", "command ",
    "'", '"', "`", "$(", ")", "(", "{ ", "; }", "}", ";", "\n", " ", "&", "|", "&&", "||", "!", " #", "#", "\\", "\\\n",
    "<<E\n", "<<'E'\n", "<<-E\n", "<<E'F'\n", "<<E; ", "\nE\n", "\n\tE\n", "\nEF\n", "\\\nE\n", "<<<", ">f", "2>&1",
    "&>f", "$x", '"$@"', "${x", "${x:-", "${x#", "]}", "${x//", "$((", "((", "))", "$[", "]", "[ ", "[[ ", " ]]", "x[",
    "x[1]=", "case x in x)", "case $x in (a|b)", ";;", " esac", "if ", "then ", "; fi", "for i in a b; do ",
    "for i do ", "while false; do ", "; done", "f() ", "function f ", "; f", "time ", "=", "=(", "$'", "$'a\\'", '$"',
    "{a,b}", "*", "a", "<(", ">(", "E", "'}'", "\\`", "\\$(", "~", "\t",
]  # fmt: skip


def _joined(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(of, of)
    return st.one_of(
        two.flatmap(
            lambda pair: st.sampled_from(["; ", " && ", " | ", " & ", "\n"]).map(lambda sign: sign.join(pair))
        ),
        of.map(lambda one: f"({one}\n)"),
        of.map(lambda one: f"echo $( {one}\n)"),
        of.map(lambda one: f'echo "`{one}`"'),
        of.map(lambda one: f"if {one}\nthen {one}\nfi"),
        of.map(lambda one: f"case $x in a|'') {one}\n;; esac"),
        two.map(lambda pair: f"{pair[0]} <<E && {pair[1]}\n$({pair[1]})\nE\n"),
        of.map(lambda one: f"cat <<'E'\n{one}\nE\n"),
        of.map(lambda one: f"f() {{ {one}\n}}; f"),
        of.map(lambda one: f"for i do {one}\ndone"),
        of.map(lambda one: f"echo ${{x:-$({one})}}"),
    )


def _spoilt(text: str) -> st.SearchStrategy[str]:
    """The text with a sign more or less somewhere."""
    at = st.integers(0, len(text))
    more = st.tuples(at, st.sampled_from(PIECES)).map(lambda had: text[: had[0]] + had[1] + text[had[0] :])
    return st.one_of(st.just(text), more, at.map(lambda had: text[:had] + text[had + 1 :]))


SIMPLE = st.lists(st.sampled_from(PIECES[:12]), min_size=1, max_size=3).map("".join)
SCRIPTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join) | st.recursive(
    SIMPLE, _joined, max_leaves=4
).flatmap(_spoilt)


def had_git_run(shell: Sequence[str], script: str, place: Path) -> list[list[str]]:
    """The argument vectors that the shell gives to ``git`` when it runs the script, in a folder of its own."""
    programs, told = place / "bin", place / f"told{len([*place.iterdir()])}"
    told.mkdir()  # of its own for each script: what one leaves running writes to no other's
    if not programs.exists():
        programs.mkdir()
        (programs / "git").write_text(
            "#!/bin/sh\n{ printf '%s\\001' git \"$@\"; printf '\\002'; } >\"$TOLD/$$\"\n"
        )
        (programs / "git").chmod(0o755)
    _run(
        [str(shutil.which(shell[0])), *shell[1:], "-c", script],
        place,
        {"PATH": str(programs), "TOLD": str(told)},
    )
    written = [os.fsdecode(file.read_bytes()) for file in told.iterdir()]
    return [text.split("\x01")[:-1] for text in written if text.endswith("\x02")]


def _run(argv: Sequence[str], place: Path, environ: dict[str, str]) -> None:
    """Run it, and end what it began besides: by chance a script loops without an end, perhaps in the background."""
    with subprocess.Popen(
        ["/bin/sh", "-c", 'ulimit -t 1; exec "$@"', "sh", *argv],
        cwd=place, env={"HOME": "~", **environ}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            with suppress(subprocess.TimeoutExpired):
                running.wait(timeout=20)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def was_read(ran: Sequence[str], script: str) -> bool:
    """Whether the reader saw the command, or says that it is in doubt. Shells put anything into a word."""
    found = script_of(script)
    if found.doubt or found.late:
        return True
    written = ["\x01".join(map(_known, command.words)) for command in found.commands]
    fitting: Callable[[str], bool] = lambda words: bool(_pattern(words).fullmatch("\x01".join(ran)))  # noqa: E731
    return any(fitting(words) or UNKNOWN in words.partition("\x01")[0] for words in written)


def _known(word: Word) -> str:
    return UNKNOWN if UNKNOWN in word.text else word.text


def _pattern(words: str) -> "re.Pattern[str]":
    text = re.escape(re.sub(r"^(command|time|[^\x01]*=[^\x01]*)\x01", "", words.replace("$", "")))
    text = re.sub(rf"\x01{UNKNOWN}(?=\x01|$)", "(\x01.*)?", text)
    return re.compile(text.replace(UNKNOWN, ".*"), re.DOTALL)
