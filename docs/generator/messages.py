"""The page of the messages: every payload with its tag and fields, and the structs inside them."""

import importlib
import inspect
import pkgutil

import msgspec

from generator.markdown import code, fields_table, prose
from trunkline import messages
from trunkline_bus import DeadLetter, Payload

INTRODUCTION = """
# Messages

What an [envelope](subjects.md)'s `data` may be. A payload has a tag in its field `type`, which reads `area.name.v1`.
Fields may be added: a reader passes over those it does not know. A changed meaning is a new tag. A message with an
unknown tag goes to the dead letters.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION.strip()]
    for module in pkgutil.iter_modules(messages.__path__):
        found = importlib.import_module(f"trunkline.messages.{module.name}")
        parts.append(f"## {module.name.capitalize()}")
        parts += [_section(struct) for struct in _structs(found.__name__, vars(found))]
    parts += ["## The bus", _section(DeadLetter)]
    return "\n\n".join(parts)


def _structs(module: str, names: dict[str, object]) -> list[type[msgspec.Struct]]:
    return [
        value
        for value in names.values()
        if inspect.isclass(value) and issubclass(value, msgspec.Struct) and value.__module__ == module
    ]


def _section(struct: type[msgspec.Struct]) -> str:
    tag = struct.__struct_config__.tag
    title = f"### {struct.__name__}"
    kind = "payload" if issubclass(struct, Payload) else "variant"
    said = (f"{kind.capitalize()} {code(tag)}. " if tag else "") + prose(struct)
    return "\n\n".join(filter(None, (title, said, fields_table(struct))))
