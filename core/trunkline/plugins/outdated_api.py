"""Finds the outdated parts of Trunkline's API that caused an error of a plugin, and their current names."""

import ast
import linecache
import re
import traceback
from pathlib import Path

import trunkline
from trunkline._util.lazy_names import FACE, RenamedName, new_place

HINT = "Change it: docs/reference/api.md lists every name. Or install a version of it for this Trunkline."

OPTIONS = {
    "also": "FunctionTool.alias",
    "data": "untrusted_output",
    "ends_planning": 'in_plan_mode="ends"',
    "free": "unbound_params",
    "look": "read_only",
    "paths": "the annotation BlockPath of the parameters",
    "plan": "in_plan_mode",
    "shows": "FunctionTool.previewer",
    "urls": "network",
}
"""The former names of the options of ``@tool`` and of the decorators of a ``FunctionTool``, with the current names."""

REMOVED = {
    **dict.fromkeys(
        ("LogStore", "MemoryRecord"),
        'gone: "trunkline plugins new store" writes a whole store (docs/how-to/write-a-store.md)',
    )
}
"""Public names that have no successor, and what takes their place."""

_OLD_OPTION = re.compile(
    r"\btool\(\) got an unexpected keyword argument '(\w+)'|'FunctionTool' object has no attribute '(\w+)'"
)
_OLD_ATTRIBUTE = re.compile(rf"module '({FACE})' has no attribute '({'|'.join(REMOVED)})'")

_CORE = str(Path(trunkline.__file__).parent)


def describe_outdated_use(error: BaseException) -> str | None:
    """Name the outdated parts of the API that caused the error, with their new names; None for other errors."""
    if isinstance(error, RenamedName):
        return f"It is written for another version: {error}."
    if isinstance(error, AttributeError) and (removed := _OLD_ATTRIBUTE.match(str(error))):
        return f"It is written for another version: {_describe(removed[1], removed[2])}."
    if isinstance(error, TypeError | AttributeError):
        return _describe_option(str(error))
    if not isinstance(error, ImportError) or (error.name or "").partition(".")[0] != FACE:
        return None
    statement = _failed_statement(error)
    if isinstance(statement, ast.ImportFrom):
        found = "; ".join(_describe(str(statement.module), alias.name) for alias in statement.names)
        return f"It is written for another version: {found}."
    if isinstance(statement, ast.Import):
        return f"It is written for another version: there is no module {error.name} now."
    return None


def _describe_option(text: str) -> str | None:
    found = _OLD_OPTION.search(text)
    old = found and (found[1] or found[2])
    return (
        f"It is written for another version: {old} of @tool is now {OPTIONS[old]}."
        if old in OPTIONS
        else None
    )


def _failed_statement(error: ImportError) -> ast.stmt | None:
    """Return the import statement of the plugin that failed; None for an error inside Trunkline."""
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen importlib")
    ]
    if not frames or frames[-1][0].startswith(_CORE):
        return None
    file, line = frames[-1]
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # the file has changed since the import
        return None
    return next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ),
        None,
    )


def _describe(module: str, name: str) -> str:
    place = new_place(module, name)
    if place:
        return f"{module}.{name} is now {place}"
    return f"{module}.{name} is {REMOVED.get(name, 'not public any more')}"
