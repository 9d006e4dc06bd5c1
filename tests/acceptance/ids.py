"""Which tests hold which acceptance id of "Hands that can be trusted": ``python -m tests.acceptance.ids`` prints it.

A test holds an id when its name carries it, or its docstring or that of its file names it.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

HANDS: Mapping[str, str] = {
    "MB-T6": "no path leads out of the block",
    "MB-T7": "protected names stay closed in every scope, to shells too",
    "MB-T8": "no programs until they are granted, then asked about",
    "MB-T9": "what a shell hides is not taken for reading",
    "MB-T10": "denied, not decided in time, decided twice, nothing to decide",
    "MB-T11": "every channel sees a question, the first answer counts",
    "MB-T17": "a command that comes due needs what a command needs (the pulse that makes it come due is not built)",
    "MN-T5": "what may be run and written while planning",
    "MN-T6": "what git may do without a question, with one, and not at all",
    "MN-T7": "output, exit status, time limit, no surviving grandchild",
    "MN-T12": "configuration of MCP servers, names that collide",
    "MN-T15": "edits and searches of files that go wrong",
    "MN-T16": "nobody there is never a yes",
    "CC-T11": "what a program in the sandbox cannot do",
    "CC-T12": "panic ends everything in two seconds and holds",
    "CC-T13": "a network for programs only after a person's word at a terminal",
    "CC-T14": "MCP servers that split, page, flood, crash, repeat and hang",
    "PA-T1": "what is written is read back the same",
    "PA-T2": "traversals read nothing",
    "PA-T3": "edits and reads of what is not there",
    "PA-T4": "two writes at once never mix",
    "PA-T5": "a write that fails leaves no half file",
    "PA-T13": "75 iterations, and a cap that stops with a reason",
    "PA-T14": "calls of one answer run together, one hangs alone",
    "PA-T15": "results reach the model unchanged",
    "PA-T21": "what is read is no approval, and reading is audited",
    "RLM-T8": "what code in the REPL cannot do",
    "RLM-T9": "what code in the REPL can do",
    "RLM-T10": "loops, allocations and recursion end within the limit",
    "RLM-T11": "sessions without an end, with an empty or a second one",
    "RLM-T12": "depth, budget and cost of questions to models",
    "RLM-T13": "fifty sessions do not see each other",
}
"""Each id, and what it is about."""

FOLDERS = ("tests", "plugins", "channels", "adapters", "core/trunkline/testing")

_ID = re.compile(r"(?<![A-Za-z])(PA|MB|MN|CC|RLM)[-_]T(\d+)(?:\s*(?:to|\.\.)\s*T?(\d+))?", re.IGNORECASE)


def ids_in(text: str) -> Iterator[str]:
    """The ids that a text names."""
    for house, first, last in _ID.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield f"{house.upper()}-T{number}"


def held() -> dict[str, list[str]]:
    """The tests of each id, as ``file::name``."""
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ".venv" in file.parts or not (
                file.name.startswith("test_") or file.name.endswith("_suite.py")
            ):
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for test in _tests(tree):
                text = " ".join((test.name, ast.get_docstring(test) or "", ast.get_docstring(tree) or ""))
                for id in dict.fromkeys(ids_in(text)):
                    found.setdefault(id, []).append(f"{file.relative_to(ROOT)}::{test.name}")
    return found


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


def table() -> str:
    """The ids with their tests, as Markdown."""
    tests = held()
    lines = ["| id | about | tests |", "|---|---|---|"]
    for id, about in HANDS.items():
        names = [f"`{name}`" for name in tests.get(id, ())] or ["none"]
        lines.append(f"| {id} | {about} | {', '.join(names)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
