"""The docstrings of the contracts: each method states its guarantees, what it does not guarantee, and its errors.

A contract is a class that the author of a plugin implements or calls: every public class with methods, and the
protocols and abstract classes of ``trunkline.contracts``. So is ``GatewayClient``, which channels receive.
Messages and errors are not contracts.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import msgspec
import pytest

from trunkline import contracts
from trunkline._util.lazy_names import public_modules, public_names
from trunkline.contracts import hooks
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.plugins.report import GUARD_HOOKS

PARTS = {
    "Guarantees:": re.compile(r"^Guarantees: \S", re.MULTILINE),
    "Not guaranteed:": re.compile(r"^Not guaranteed: \S", re.MULTILINE),
    "Raises": re.compile(r"^Raises:\n +\w+: \S|(?:^|[.:]\s)Raises\s[\w`]", re.MULTILINE),
}
"""What a docstring must have, each with its form. A part that is in the docstring of the class, or of a class that it
is derived from, holds for every method, but each method states its errors itself."""

OF_METHOD_ONLY = {"Raises"}

WITHOUT_CONTRACTS = {"trunkline.api.cli", "trunkline.api.testing"}
"""The modules whose classes are click's commands, and suites of tests."""

CALLS = {"__call__", "__aiter__"}
"""The special methods that a contract may consist of."""


def _is_protocol_or_abstract(value: type) -> bool:
    return bool(getattr(value, "_is_protocol", False)) or inspect.isabstract(value)


def _public_classes() -> Iterator[type]:
    for module in public_modules():
        if module not in WITHOUT_CONTRACTS:
            found = importlib.import_module(module)
            yield from (
                value for name in public_names(module) if isinstance(value := getattr(found, name), type)
            )


def _interfaces_in_contracts() -> Iterator[type]:
    """The protocols and abstract classes that are reached through a public class, such as ``ToolContext.planning``."""
    for info in pkgutil.walk_packages(contracts.__path__, f"{contracts.__name__}."):
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and value.__module__ == info.name and _is_protocol_or_abstract(value):
                yield value


def _is_contract(value: type) -> bool:
    return not issubclass(value, msgspec.Struct | BaseException) and any(_methods(value))


def _contracts() -> list[type]:
    found = {*_public_classes(), *_interfaces_in_contracts(), GatewayClient}
    return sorted(filter(_is_contract, found), key=lambda value: value.__qualname__)


def _methods(contract: type) -> Iterator[tuple[str, str]]:
    """The methods of a class with their docstrings. The properties of a record are fields, not methods."""
    for name, member in vars(contract).items():
        if name.startswith("_") and name not in CALLS:
            continue
        if isinstance(member, property) and dataclasses.is_dataclass(contract):
            continue
        plain: Any = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if isinstance(plain, FunctionType | property):
            yield name, inspect.cleandoc(plain.__doc__ or "")


def missing_parts(contract: type) -> list[str]:
    """The parts that the docstrings of a contract lack, by method."""
    of_class = "\n".join(
        inspect.cleandoc(base.__doc__ or "") for base in contract.__mro__ if base is not object
    )
    return [
        f"{contract.__qualname__}.{name} lacks {part!r}"
        for name, own in _methods(contract)
        for part, form in PARTS.items()
        if not form.search(own) and (part in OF_METHOD_ONLY or not form.search(of_class))
    ]


@pytest.mark.parametrize("contract", _contracts(), ids=lambda contract: contract.__qualname__)
def test_every_contract_method_states_guarantees_and_errors(contract: type) -> None:
    """A method's docstring states its errors; it or that of its class states what is guaranteed and what is not."""
    assert missing_parts(contract) == []


class Ledger(ABC):
    """Stores entries.

    Guarantees: an entry is on disk when ``add`` returns.
    """

    @abstractmethod
    def add(self, text: str) -> int:
        """Add an entry and return its number.

        Not guaranteed: that numbers have no gaps.

        Raises:
            OSError: the disk is full.
        """

    @abstractmethod
    def entries(self) -> list[str]:
        """Return all entries. An entry that cannot be read raises an error."""


def test_what_is_missing_is_named() -> None:
    """A part of the class holds for its methods. Each other part that a method does not state is named."""
    assert missing_parts(Ledger) == [
        "Ledger.entries lacks 'Not guaranteed:'",
        "Ledger.entries lacks 'Raises'",
    ]


def test_every_hook_states_how_it_fails() -> None:
    """A hook's docstring begins with its kind and marks a guard; the package states what a failure does."""
    of_all = hooks.__doc__ or ""
    assert PARTS["Guarantees:"].search(of_all)
    assert PARTS["Not guaranteed:"].search(of_all)
    assert re.search(r"^Errors: \S", of_all, re.MULTILINE)
    for name in (name for name in hooks.__all__ if name.startswith("trunkline_")):
        hook = getattr(hooks, name)
        text = hook.__doc__.partition("```")[0]
        assert text.startswith("Decide " if hook.trunkline_spec["firstresult"] else "Add "), name
        assert ("A guard." in text) == (name in GUARD_HOOKS), name
