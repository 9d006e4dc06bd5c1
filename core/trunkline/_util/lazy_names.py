"""Public modules that import their names on first use.

The imports under ``if TYPE_CHECKING:`` are the only list of such a module's names. Type checkers and editors read
these imports, and the running program derives its table from the same lines.
"""

import importlib
import sys
from _ast import AST, If, ImportFrom, Module, Name, PyCF_ONLY_AST
from collections.abc import Callable
from typing import Any

FACE = "trunkline"
API = "trunkline.api"


class RenamedName(ImportError):
    """A name was requested from a public module, and it now has another name or is in another module."""


def lazy_names(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a public module."""
    origins: dict[str, str] = {}

    def attribute(name: str) -> Any:
        if not origins:
            origins.update(public_names(module))
        if name == "__all__":  # ``from module import *`` reads this
            return [*origins]
        if name not in origins:
            raise _missing(module, name)
        value = getattr(importlib.import_module(origins[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted(public_names(module))

    return attribute, names


def public_names(module: str) -> dict[str, str]:
    """Return the names of a public module, each with the module that defines it, in source order."""
    loader: Any = importlib.import_module(module).__loader__
    source = loader.get_source(module)  # works in a folder and in a zip file
    tree: AST = compile(source, module, "exec", PyCF_ONLY_AST)  # faster than importing ``ast``
    assert isinstance(tree, Module)
    return {
        alias.name: str(node.module)
        for block in tree.body
        if isinstance(block, If) and isinstance(block.test, Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ImportFrom)
        for alias in node.names
    }


def public_modules() -> list[str]:
    """Return the names of all public modules: ``trunkline`` and the modules of ``trunkline.api``."""
    import pkgutil  # used only for unknown names and for the documentation

    api = importlib.import_module(API)
    return [FACE, *(f"{API}.{found.name}" for found in pkgutil.iter_modules(api.__path__))]


def find_public(name: str) -> str | None:
    """Return the public module that has this name, or None."""
    return next((module for module in public_modules() if name in public_names(module)), None)


def new_place(module: str, name: str) -> str | None:
    """Return the current place, as ``module.name``, of a former name of this module, or None."""
    from trunkline._util.renamed_names import RENAMED_NAMES

    tables = [RENAMED_NAMES[module]] if module in RENAMED_NAMES else _tables_below(module, RENAMED_NAMES)
    new = next((table[name] for table in tables if name in table), name)
    place = find_public(new)
    return f"{place}.{new}" if place else None


def _tables_below(package: str, tables: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    """Return the tables of the modules below a package. The package formerly had their names too."""
    return [table for module, table in tables.items() if module.startswith(f"{package}.")]


def _missing(module: str, name: str) -> Exception:
    """Return an ImportError for a name that was moved. With an AttributeError, ``from module import name`` would lose
    the text.
    """
    if not name.startswith("_") and (place := new_place(module, name)):
        return RenamedName(f"{module}.{name} is now {place}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
