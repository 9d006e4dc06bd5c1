"""The parsed source files of this checkout. Each is read, parsed and walked once in a process of pytest."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]

Node = TypeVar("Node", bound=ast.AST)


@cache
def tree_of(file: Path) -> ast.Module:
    """Return the parsed module."""
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def nodes(file: Path, *kinds: type[Node]) -> Iterator[Node]:
    """Yield all nodes of the module that are of these classes, in the order of the classes."""
    known = _nodes_by_kind(file)
    for kind in kinds:
        yield from known.get(kind, ())


@cache
def _nodes_by_kind(file: Path) -> Mapping[type[ast.AST], list[Any]]:
    found: dict[type[ast.AST], list[Any]] = defaultdict(list)
    todo: list[ast.AST] = [tree_of(file)]
    while todo:  # ast.walk takes twice the time
        node = todo.pop()
        found[type(node)].append(node)
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += (part for part in value if isinstance(part, ast.AST))
    return found
