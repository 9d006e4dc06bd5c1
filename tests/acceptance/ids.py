"""Every id of the five specifications, with the tests that carry it or the open issue that will build it.

``python -m tests.acceptance.ids`` prints the table, ``--open`` only what an open issue builds. A test carries an id
when its name has it, when its docstring or that of its file names it, or when the table names the test.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from .requirement import ISSUES, Requirement
from .specs import crevnclaw, memoryblock, mnemoai, personal_ai, rlm_mem

ROOT = Path(__file__).parents[2]

REQUIREMENTS: Mapping[str, Requirement] = {
    **memoryblock.REQUIREMENTS,
    **personal_ai.REQUIREMENTS,
    **rlm_mem.REQUIREMENTS,
    **mnemoai.REQUIREMENTS,
    **crevnclaw.REQUIREMENTS,
}
"""Each id, and what is known of it."""

SPECS = ROOT.parent / "shared" / "spec"
"""Where the specifications lie beside a checkout; a clone of the repository alone has none."""

SPEC_FILES = ("memoryblock.md", "personal-ai-contracts.md", "rlm-mem.md", "mnemoai.md", "crevnclaw.md")

FOLDERS = ("tests", "plugins", "channels", "adapters", "core/trunkline/testing")

_ID = re.compile(
    r"(?<![A-Za-z])(?P<house>PA|MB|MN|CC|RLM)[-_](?P<kind>[FT])(?P<first>\d+)(?P<part>b?)(?![0-9])"
    r"(?:\s*(?:to|\.\.)\s*[FT]?(?P<last>\d+))?"
    r"|(?<![A-Za-z])(?P<check>SWAP|ARCH|DEPLOY|FS)[-_](?P<number>\d+)",
    re.IGNORECASE,
)
_DEFINED = re.compile(r"^\s*(?:\d+\. |- |    )((?:PA|MB|MN|CC|RLM)-[FT]\d+[a-z]?)\b", re.MULTILINE)
_CHECKED = re.compile(r"^\| (SWAP|ARCH|DEPLOY|FS)-([\d/]+) \|", re.MULTILINE)


def ids_in(text: str) -> Iterator[str]:
    """The ids that a text names."""
    for found in _ID.finditer(text):
        if found["check"]:
            yield f"{found['check'].upper()}-{found['number']}"
            continue
        for number in range(int(found["first"]), int(found["last"] or found["first"]) + 1):
            yield f"{found['house'].upper()}-{found['kind'].upper()}{number}{found['part'].lower()}"


def specified(folder: Path) -> set[str]:
    """The ids that the specifications define."""
    found: set[str] = set()
    for name in SPEC_FILES:
        text = (folder / name).read_text(encoding="utf-8")
        found.update(_DEFINED.findall(text))
        found.update(f"{check}-{one}" for check, many in _CHECKED.findall(text) for one in many.split("/"))
    return found


@cache
def named_by_tests() -> Mapping[str, tuple[str, ...]]:
    """The ids that each test names, by ``file::name``; a file's docstring counts for all its tests."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ".venv" in file.parts or not file.name.startswith("test_") | file.name.endswith("_suite.py"):
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            about = ast.get_docstring(tree) or ""
            for test in _tests(tree):
                text = " ".join((test.name, ast.get_docstring(test) or "", about))
                found[f"{file.relative_to(ROOT)}::{test.name}"] = tuple(dict.fromkeys(ids_in(text)))
    return found


@cache
def _tests_by_id() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for test, ids in named_by_tests().items():
        for id in ids:
            found[id].append(test)
    return found


def carrying(id: str) -> tuple[str, ...]:
    """The tests of an id, those that the table names first."""
    return tuple(dict.fromkeys((*REQUIREMENTS[id].tests, *_tests_by_id().get(id, ()))))


def _tests(within: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in within.body:
        if isinstance(node, ast.ClassDef):
            yield from _tests(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def table(*, only_open: bool = False) -> str:
    """The ids with what carries them, as Markdown."""
    lines = ["| id | about | state | tests |", "|---|---|---|---|"]
    for id, one in REQUIREMENTS.items():
        if only_open and one.issue is None:
            continue
        names = ", ".join(f"`{name}`" for name in carrying(id)) or "none yet"
        lines.append(f"| {id} | {one.about.replace('|', '/')} | {_state(one)} | {names} |")
    return "\n".join(lines)


def _state(one: Requirement) -> str:
    if one.issue is None:
        return "done"
    return f"issue {one.issue} ({ISSUES[one.issue]})" + (f": {one.open}" if one.open else "")


if __name__ == "__main__":
    sys.stdout.write(table(only_open="--open" in sys.argv[1:]) + "\n")
