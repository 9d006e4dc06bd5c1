"""Words and tables: what turns docstrings, types and defaults into Markdown. Knows no page."""

import inspect
import re
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Union

import msgspec

_IDS = r"(?:PA|MB|ARCH|FS|SWAP|DEPLOY)-\w+|MB-F\d+\S*|conflict C\d+|design[,]? section [\d.]+|and|to|\.\.|,"
_REFERENCES = re.compile(rf"\s*\((?:(?:{_IDS})\s*)+\)")
_CODE = re.compile(r"(?<!`)``(?!`)")
_PLAIN = {"NoneType": "none", "bool": "yes or no", "int": "number", "float": "number", "str": "text",
          "datetime": "time", "Path": "path", "bytes": "bytes", "Any": "anything"}  # fmt: skip


def prose(thing: object) -> str:
    """A docstring as Markdown, without references to the specifications behind it."""
    text = inspect.getdoc(thing) or ""
    return _REFERENCES.sub("", _CODE.sub("`", text)).strip()


def first_paragraph(thing: object) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(prose(thing).split("\n\n")[0].split())


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def code(text: object) -> str:
    """Text in code style; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def shown(kind: Any) -> str:
    """A type in words."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return shown(inner[0]) + _bounds(inner[1:])
    if origin in (Union, types.UnionType):
        names = [shown(one) for one in inner if one is not type(None)]
        return " or ".join(names) + (" or nothing" if type(None) in inner else "")
    if origin is Literal:
        return ", ".join(code(value) for value in inner)
    if origin in (tuple, list):
        return f"list of {shown(inner[0])}" if inner else "empty list"
    if origin is dict:
        return f"table of {shown(inner[1])}"
    if kind in (Any, object):
        return "anything"
    name = getattr(kind, "__name__", str(kind))
    return _PLAIN.get(name, code(name))


def _bounds(metas: Sequence[Any]) -> str:
    said = []
    for meta in metas:
        low = meta.ge if meta.ge is not None else meta.gt
        if meta.ge is not None and meta.le is not None:
            said.append(f"{meta.ge} to {meta.le}")
        elif low is not None:
            said.append(f"{'at least' if meta.ge is not None else 'above'} {low}")
        if meta.pattern is not None:
            said.append(f"matching `{meta.pattern}`")
    return f" ({', '.join(said)})" if said else ""


def default(field: Any) -> str:
    """A struct field's default as it would be written; a dash for a required one."""
    if field.default_factory is not msgspec.NODEFAULT:
        factory = field.default_factory
        return {"list": "`[]`", "dict": "`{}`"}.get(getattr(factory, "__name__", ""), "made when absent")
    if field.default is msgspec.NODEFAULT:
        return "required"
    value = field.default
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple | list):
        return code("[" + ", ".join(f'"{item}"' for item in value) + "]")
    if isinstance(value, str):
        return code(f'"{value}"')
    if isinstance(value, msgspec.Struct):
        return "its defaults"
    return code(f"{value:g}" if isinstance(value, float) else str(value))


def fields_table(struct: type[msgspec.Struct]) -> str:
    """A struct's fields with types and defaults; "" when it has none."""
    hints = typing.get_type_hints(struct, include_extras=True)
    fields = msgspec.structs.fields(struct)
    rows = [(code(field.encode_name), shown(hints[field.name]), default(field)) for field in fields]
    return table(("field", "type", "default"), rows) if rows else ""


def seconds(value: float | None) -> str:
    """A length of time in the unit that a person would use."""
    if value is None:
        return "for ever"
    for unit, size in (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0)):
        if value >= size:
            count = value / size
            return f"{count:g} {unit}{'' if count == 1 else 's'}"
    return f"{value:g} seconds"
