"""Every tool error that the platform makes says of which kind it is (MN-F18)."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from trunkline.errors import TOOL_ERROR_KINDS, ToolErrorKind

from .sources import ROOT, nodes

FOLDERS = ("core/trunkline", "plugins", "adapters", "channels")


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT).parts
            if not {"tests", "testing", ".venv"}.intersection(parts):
                yield file


def without_kind(calls: Iterable[ast.Call]) -> Iterator[int]:
    """The lines that make a ``ToolError``, or an outcome that is an error, and name no kind."""
    for node in calls:
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        given = {word.arg: word.value for word in node.keywords}
        status = given.get("status")
        failed = isinstance(status, ast.Constant) and status.value in ("error", "unknown")
        if name == "ToolError" and "kind" not in given:
            yield node.lineno
        if name in ("ToolOutcome", "replace") and failed and "error_kind" not in given:
            yield node.lineno


def test_mn_f18_every_tool_error_of_the_platform_names_its_kind() -> None:
    """MN-F18: programs tell errors apart by their kind, so none is made without one."""
    missing = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sources()
        for line in without_kind(nodes(file, ast.Call))
    ]
    assert not missing, f"say kind=… there: {', '.join(missing)}"
    without, with_kind = ast.parse(
        "[ToolError('x'),\ntrunkline.ToolError('x', kind='failed')]", mode="eval"
    ).body.elts
    assert list(without_kind([without, with_kind])) == [1]


def test_each_kind_is_explained() -> None:
    """The kinds are declared once, each with its meaning."""
    assert set(TOOL_ERROR_KINDS) == set(get_args(ToolErrorKind)) and all(TOOL_ERROR_KINDS.values())
