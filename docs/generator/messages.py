"""The page of the messages: every payload with its tag and fields, and the structs inside them."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from typing import get_args, get_type_hints

import msgspec

from generator.markdown import code, fields_table, prose
from trunkline import contracts
from trunkline_bus import DeadLetter, Payload

INTRODUCTION = """
# Messages

These are the payloads that an [envelope](subjects.md) can have in `data`. The field `type` of a payload has its tag, in
the form `area.name.v1`. A later version may add fields; a reader ignores fields that it does not know. If the meaning
changes, the payload gets a new tag. A message with an unknown tag goes to the dead letters.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION.strip()]
    domains = {domain: _structs(domain) for domain in _modules(contracts.__name__) if _is_package(domain)}
    sent = _sent(struct for structs in domains.values() for struct in structs if issubclass(struct, Payload))
    for domain, structs in domains.items():
        shown = [struct for struct in structs if struct in sent]
        if shown:
            parts += [f"## {domain.rpartition('.')[2].capitalize()}", *map(_section, shown)]
    parts += ["## The bus", _section(DeadLetter)]
    return "\n\n".join(parts)


def _modules(package: str) -> list[str]:
    return [
        found.name for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    ]


def _is_package(module: str) -> bool:
    return hasattr(importlib.import_module(module), "__path__")


def _structs(package: str) -> list[type[msgspec.Struct]]:
    """The structs that a package's modules define, in the order of the source."""
    return [
        value
        for module in _modules(package)
        for value in vars(importlib.import_module(module)).values()
        if inspect.isclass(value) and issubclass(value, msgspec.Struct) and value.__module__ == module
    ]


def _sent(payloads: Iterable[type[msgspec.Struct]]) -> set[type[msgspec.Struct]]:
    """The payloads, and every struct that a field of one may hold."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[object] = list(payloads)
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one not in found:
            found.add(one)
            waiting += get_type_hints(one).values()
    return found


def _section(struct: type[msgspec.Struct]) -> str:
    tag = struct.__struct_config__.tag
    title = f"### {struct.__name__}"
    kind = "payload" if issubclass(struct, Payload) else "variant"
    said = (f"{kind.capitalize()} {code(tag)}. " if tag else "") + prose(struct)
    return "\n\n".join(filter(None, (title, said, fields_table(struct))))
