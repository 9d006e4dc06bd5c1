"""Searching by text and by pattern: bounded for any request, and equal to the plainest search."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from file_calls import refusal, run
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline import ToolError
from trunkline_files import find_tool, python_search, search_tool
from trunkline_files.globs import matches
from trunkline_files.ripgrep_regex import to_ripgrep
from trunkline_files.search_query import SearchQuery

WORDS = st.text("ab \u00e4\n", max_size=60)


@examples(60)
@given(texts=st.lists(WORDS, min_size=1, max_size=3), query=st.sampled_from(["a", "ab", "b a", "\u00c4", "aab"]),
       around=st.integers(0, 3), piece=st.sampled_from([1, 3, 1 << 18]))  # fmt: skip
def test_every_line_is_found_and_no_other(
    tmp_path_factory: Any, texts: list[str], query: str, around: int, piece: int
) -> None:
    """For any file content and any division into chunks, the lines are those of the plainest search."""
    folder = tmp_path_factory.mktemp("search")
    expected: list[str] = []
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
        lines = text.split("\n")[: None if text[-1:] != "\n" else -1]
        hits = {at for at, line in enumerate(lines) if query in line}
        reported = {
            near for at in hits for near in range(at - around, at + around + 1) if 0 <= near < len(lines)
        }
        for at in sorted(reported):
            if around and expected and at - 1 not in reported:
                expected.append("--")
            mark = ":" if at in hits else "-"
            expected.append(f"{number}.txt{mark}{at + 1}{mark} {lines[at]}".rstrip())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(python_search, "PIECE", piece)
        found = run(search_tool.search_files, folder, query, case_sensitive=True, context_lines=around)
    assert found == ("\n".join(expected) or f"No line contains {query!r}.")


def test_patterns_and_their_error_messages(tmp_path: Path) -> None:
    """Lines with their places, files, or numbers; with lines around them; up to a number of results."""
    (tmp_path / "a.py").write_text(
        "import re\n\ndef one_test():\n    pass\n\ndef two():\n    pass\ndef three_test(): ...\n"
    )
    (tmp_path / "b.txt").write_text("def other_test\n")
    pattern = r"^def \w+_test"
    found = run(search_tool.search_files, tmp_path, pattern, regex=True)
    assert found == "a.py:3: def one_test():\na.py:8: def three_test(): ...\nb.txt:1: def other_test"
    found = run(
        search_tool.search_files, tmp_path, pattern, regex=True, include="*.{py,pyi}", context_lines=1
    )
    assert found.splitlines() == [
        "a.py-2-", "a.py:3: def one_test():", "a.py-4-     pass", "--", "a.py-7-     pass",
        "a.py:8: def three_test(): ...",
    ]  # fmt: skip
    assert (
        run(search_tool.search_files, tmp_path, "DEF", output="files_with_matches", case_sensitive=False)
        == "a.py\nb.txt"
    )
    assert run(search_tool.search_files, tmp_path, "def", output="count") == "a.py: 3\nb.txt: 1"
    found = run(search_tool.search_files, tmp_path, "def", max_results=2)
    assert (
        found.splitlines()[-1] == "[Truncated: there is more than 2. Search a folder, or raise max_results.]"
    )
    assert "Truncated" not in run(search_tool.search_files, tmp_path, "def", max_results=4)
    assert "Truncated" in run(
        search_tool.search_files, tmp_path, "def", output="files_with_matches", max_results=1
    )
    assert run(search_tool.search_files, tmp_path, "nothing", regex=True) == "No line matches 'nothing'."


def test_capitals_of_any_language_match_when_they_do_not_count(tmp_path: Path) -> None:
    """This holds also in text with invalid UTF-8, whose valid parts are searched."""
    (tmp_path / "a").write_bytes("\u00c4rger Stra\u00dfe\n".encode() + b"caf\xe9 au lait\n")
    assert run(search_tool.search_files, tmp_path, "\u00e4rger") == "a:1: \u00c4rger Stra\u00dfe"
    assert run(search_tool.search_files, tmp_path, "au lait").startswith("a:2:")


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[z-a]",
        "a{1001}",
        "(?=x)",
        r"(a)\1",
        "(?<name>",
        "*",
        "(a{999}){999}",
        r"(\pL{1,9} ){1,9}",
        "\ud800",
    ],
)
def test_an_invalid_pattern_is_refused_with_a_hint(tmp_path: Path, pattern: str) -> None:
    """The reason, and which patterns there are."""
    (tmp_path / "a").write_text("a")
    text = refusal(search_tool.search_files, tmp_path, pattern, regex=True)
    assert "cannot be used" in text
    assert "RE2" in text


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pattern", [r"(x+x+)+y", r"(a|aa|x)+$", r"(.*)*z", r"(x{1,25}){1,25}q", r"^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_no_pattern_runs_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """Patterns on which backtracking engines never end are matched in time, on lines made for them."""
    monkeypatch.setattr(search_tool, "SEARCH_SECONDS", 1.0)
    (tmp_path / "a").write_text("x" * 5_000 + "!\n" + "x" * 300_000 + "\n")
    assert "a:1" not in run(search_tool.search_files, tmp_path, pattern + "never", regex=True)


def test_a_search_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matches up to then are returned, with a note."""
    monkeypatch.setattr(search_tool, "SEARCH_SECONDS", 0.0)
    monkeypatch.setattr(search_tool.ripgrep, "can_search", lambda wanted: False)
    for number in range(5):
        (tmp_path / f"{number}").write_text("hit\n")
    assert "[Truncated: stopped after" in run(search_tool.search_files, tmp_path, "hit")


def test_MN_T15_glob_results_are_truncated_with_a_note(tmp_path: Path) -> None:
    """max_results names are there, and the note says that there are more; without more there is none."""
    for number in range(7):
        (tmp_path / f"{number}.py").write_text("")
    found = run(find_tool.find_files, tmp_path, "**/*.py", max_results=3).splitlines()
    assert found[:3] == ["0.py", "1.py", "2.py"]
    assert found[3].startswith("[Truncated: more than 3 match.")
    assert "Truncated" not in run(find_tool.find_files, tmp_path, "*.py", max_results=7)


def test_the_newest_files_are_listed_first(tmp_path: Path) -> None:
    """The order is that of the last change, not of the names."""
    import os

    for number in range(5):
        (tmp_path / f"{number}.py").write_text("")
        os.utime(tmp_path / f"{number}.py", (1_000 + number, 1_000 + number))
    found = run(find_tool.find_files, tmp_path, "*.py", newest_first=True, max_results=2).splitlines()
    assert found[:2] == ["4.py", "3.py"]
    assert "Truncated" in found[2]


@pytest.mark.parametrize(
    ("pattern", "path", "does"),
    [
        ("*.{ts,tsx}", "a/b.tsx", True),
        ("*.{ts,tsx}", "a/b.t", False),
        ("{src,lib}/**/*.{c,h}", "lib/x/y.h", True),
        ("{" + ",".join(map(str, range(100))) + "}", "7", False),
        ("{a}", "{a}", True),
        ("{{a,b},c}{d,e}", "be", True),
        ("{a,b}" * 40, "ab" * 20, False),
    ],
)
def test_braces_match_alternatives(pattern: str, path: str, does: bool) -> None:
    """Up to a number of them; beyond, the pattern is taken as it stands."""
    assert matches(pattern, path) is does


ATOMS = st.sampled_from(
    ["a", "B", r"\w", r"\W", r"\d", r"\s", r"\S", r"\b", r"\B", ".", "\u00e4", r"\pL", "[a-c]", "[^a]", r"[\w-]",
     r"[^\d\s]", "[]a]", "[^]]", "[[:alpha:]]", "[[a]", "[a&&b]", r"[\W]", r"\.", r"\x41",
     r"[\]a]", "^", "$", "[a[:digit:]_]"]
)  # fmt: skip
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
    ),
    max_leaves=6,
)


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
@examples(80, deadline=None)
@given(
    pattern=PATTERNS,
    fold=st.booleans(),
    lines=st.lists(st.text("aAbBcC1_ \u00e4\u00c4\u0661\u00a0.]&[-", max_size=6), min_size=20, max_size=20),
)
def test_ripgrep_and_python_agree_about_patterns(
    tmp_path_factory: Any, pattern: str, fold: bool, lines: list[str]
) -> None:
    """A pattern passed to ripgrep matches the same lines there, beyond ASCII too, or ripgrep refuses it."""
    theirs = to_ripgrep(pattern)
    assume(theirs is not None)
    file = tmp_path_factory.getbasetemp() / "agree.txt"
    file.write_text("".join(f"{line}\n" for line in lines))
    wanted = SearchQuery(pattern, True, fold, "", "", "content", 0)
    try:
        ours = [at for at, line in enumerate(lines, 1) if wanted.pattern.search(line.encode())]
    except ToolError:
        assume(False)
    option = "--ignore-case" if fold else "--case-sensitive"
    done = subprocess.run(
        ["rg", "--no-config", option, "--line-number", f"--regexp={theirs}", "--", str(file)],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assume(done.returncode != 2)
    assert [int(line.split(b":")[0]) for line in done.stdout.splitlines()] == ours


@pytest.mark.parametrize("pattern", ["[[a]b]", "[a&&b]", "[a--b]", r"[\W]", "[a", r"[\D1]", "[~~]"])
def test_ambiguous_patterns_are_not_passed_to_ripgrep(pattern: str) -> None:
    """Brackets within brackets, and classes that are no class there."""
    assert to_ripgrep(pattern) is None
