"""Tells a model at once what its code may not do. Fast feedback and nothing more: the boundary is ``lockdown.py``."""

import ast

MODULES = (
    "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
    "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "textwrap", "time",
    "typing", "unicodedata",
)  # fmt: skip
"""The modules that code may import. They are loaded before the process is confined."""

NAMES = frozenset(
    {
        "eval", "exec", "compile", "open", "input", "breakpoint", "help", "exit", "quit", "globals", "locals", "vars",
        "getattr", "setattr", "delattr", "memoryview", "copyright", "credits", "license",
    }
)  # fmt: skip
"""Builtins that are not there."""

ATTRIBUTES = frozenset(
    {
        "gi_frame", "gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "cr_await", "cr_origin", "ag_frame", "ag_code",
        "ag_await", "tb_frame", "tb_next", "f_back", "f_builtins", "f_code", "f_globals", "f_locals", "f_trace",
        "func_globals", "func_code", "mro",
    }
)  # fmt: skip
"""Ways from a value to the interpreter, besides all that begin and end with two underscores."""


class CodeViolation(Exception):
    """The code asks for something that is not allowed here; the text says what, and in which line."""


def check_code(tree: ast.AST) -> None:
    """Raises CodeViolation for the first forbidden thing in the code."""
    for node in ast.walk(tree):
        violation = _violation_text(node)
        if violation:
            raise CodeViolation(f"line {getattr(node, 'lineno', '?')}: {violation}")


def _violation_text(node: ast.AST) -> str:
    match node:
        case ast.Import(names=names):
            return next((violation for alias in names if (violation := _module(alias.name))), "")
        case ast.ImportFrom(module=module, level=level):
            return _module("." * level + (module or ""))
        case ast.Attribute(attr=name) if _is_hidden(name) or name in ATTRIBUTES:
            return f"the attribute {name} is not allowed"
        case ast.Name(id=name) if _is_hidden(name) or name in NAMES:
            return f"{name} is not allowed"
        case _:
            return ""


def _module(name: str) -> str:
    allowed = name == "__future__" or name.split(".")[0] in MODULES
    return "" if allowed else f"the module {name} cannot be imported; there are {', '.join(MODULES)}"


def _is_hidden(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
