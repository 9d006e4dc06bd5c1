"""The page of the public API: every name that a plugin may import, by module."""

import ast
import dataclasses
import importlib
import inspect
import re
import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from generator.markdown import code, first_paragraph, prose, shown, table
from trunkline._util.lazy_names import FACE, public_modules, public_names

INTRODUCTION = """
# The public API

A plugin imports `trunkline` and the modules of `trunkline.api`, and nothing else of Trunkline: every other module may
change in any version. Each name is in one module. It is imported when it is first used, so `import trunkline` costs
next to nothing.

A plugin that imports a name from a former module is refused, and the refusal names the present module.
"""

TOOLS = """
The author of a tool needs at most these names: {names}.
"""

TOOL_NAMES = (
    "ApprovalDetail", "BlockPath", "Completer", "ConfigError", "ConfigSection", "Folder", "HealthCheck",
    "HealthResult", "Image", "Memory", "MemoryPath", "MemoryTree", "Person", "PluginSettings", "Sandbox",
    "SandboxLimits", "Secret", "Tool", "ToolContext", "ToolError", "ToolOutcome", "diff_preview", "hookimpl",
    "preview", "tool",
)  # fmt: skip

WITHOUT_MEMBERS = ("trunkline.api.cli", "trunkline.api.testing")
"""Modules whose classes are listed without their members: the commands are click's, the suites' members are tests."""

SECTIONS = {"Args:": "", "Raises:": "Raises "}
"""The sections of a docstring, with what precedes the name of an entry."""

CALLS = ("__call__", "__aiter__")
"""The special methods that are shown: a protocol may consist of one."""

MADE_BY_AUTHORS = {"Letter", "HealthCheck", "HealthResult", "ConfigSection", "SandboxLimits", "ToolOutcome"}
"""Classes without methods whose fields a plugin fills."""


def page() -> str:
    """The whole page."""
    return "\n\n".join([INTRODUCTION.strip(), *map(_section, public_modules())])


def _section(module: str) -> str:
    found = importlib.import_module(module)
    said = [first_paragraph(found)]
    if module == FACE:
        said.append(TOOLS.format(names=", ".join(map(code, TOOL_NAMES))).strip())
    rows = [(code(name), _sentence(getattr(found, name), name, origin)) for name, origin in _names(module)]
    members = (
        []
        if module in WITHOUT_MEMBERS
        else [_members(name, getattr(found, name)) for name, _ in _names(module)]
    )
    return "\n\n".join([f"## {code(module)}", *said, table(("name", "is"), rows), *filter(None, members)])


def _members(name: str, value: Any) -> str:
    """The methods of a class, and the fields of one that has methods or that authors make; "" for everything else."""
    if not inspect.isclass(value) or issubclass(value, (BaseException, msgspec.Struct)):
        return ""
    fields = [
        f"* {code(field.name)}: {shown(field.type)}{', optional' if _has_default(field) else ''}"
        for field in (dataclasses.fields(value) if dataclasses.is_dataclass(value) else ())
        if not field.name.startswith("_")
    ]
    methods = [line for key, one in _public_methods(value).items() for line in _method(key, one)]
    if not methods and not (fields and name in MADE_BY_AUTHORS):
        return ""
    members = "\n".join([*fields, *methods, *_inherited(value)])
    return "\n\n".join([f"### {code(name)}", *_paragraphs(value), members])


def _public_methods(kind: type) -> dict[str, Any]:
    """Methods and properties by name, in the order of the source; those of a base that is not public come last."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base is kind or (base.__module__.startswith("trunkline") and base not in _public_bases(kind)):
            for key, one in vars(base).items():
                plain = one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
                shown_name = not key.startswith("_") or (key in CALLS and plain.__doc__)
                if shown_name and (inspect.isfunction(plain) or isinstance(plain, property)):
                    found.setdefault(key, plain)
    return found


def _inherited(kind: type) -> list[str]:
    """A line for each public base with the methods that the class has from it."""
    own, lines = set(_public_methods(kind)), []
    for base in _public_bases(kind):
        names = [key for key in _public_methods(base) if key not in own]
        own.update(names)
        lines += [f"* From {code(base.__name__)}: {', '.join(map(code, names))}."] if names else []
    return lines


def _public_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__[1:] if base in _public_classes()]


@cache
def _public_classes() -> frozenset[type]:
    values = (
        getattr(importlib.import_module(one), name) for one in public_modules() for name, _ in _names(one)
    )
    return frozenset(value for value in values if inspect.isclass(value))


def _method(name: str, method: Any) -> list[str]:
    """A method with what it does, and below it its further paragraphs: arguments, guarantees and errors."""
    first, *others = _paragraphs(method)
    lines = [f"* {code(_call(name, method))}: {' '.join(first.split())}"]
    for paragraph in others:
        entries = (
            paragraph.split("\n") if paragraph.startswith("* ") else [f"* {' '.join(paragraph.split())}"]
        )
        lines += [f"  {entry}" for entry in entries]
    return lines


def _paragraphs(thing: object) -> list[str]:
    """The paragraphs of a docstring. Each entry of the sections ``Args`` and ``Raises`` is an item of a list."""
    return [_section_entries(paragraph) for paragraph in prose(thing).split("\n\n")]


def _section_entries(paragraph: str) -> str:
    title, *_ = paragraph.split("\n")
    if title not in SECTIONS:
        return paragraph
    entries = re.split(r"\n(?= {2,4}\w)", paragraph)[1:]
    return "\n".join(
        re.sub(r"^([\w*]+):", rf"* {SECTIONS[title]}`\1`:", " ".join(one.split())) for one in entries
    )


def _call(name: str, method: Any) -> str:
    """A method as it is called: the names of its parameters, with their defaults."""
    if isinstance(method, property):
        return name
    parameters = [
        one.replace(annotation=one.empty, default=_brief(one.default))
        for one in inspect.signature(method).parameters.values()
        if one.name not in ("self", "cls")
    ]
    return f"{name}{inspect.Signature(parameters)}"


class _Source:
    """A default that is shown by this text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _brief(default: Any) -> Any:
    """The default of a parameter. An object that equals a new one of its class is shown without its fields."""
    kind = type(default)
    record = dataclasses.is_dataclass(kind) or isinstance(default, msgspec.Struct)
    return _Source(f"{kind.__name__}()") if record and default == kind() else default


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _names(module: str) -> list[tuple[str, str]]:
    return sorted(public_names(module).items(), key=lambda item: item[0].lower())


def _sentence(value: Any, name: str, origin: str) -> str:
    """The first sentence of a docstring; a value has the text that follows its assignment."""
    own = inspect.isclass(value) or inspect.isroutine(value)
    text = first_paragraph(value) if own else _text_below(origin, name) or _value_text(value)
    sentence = re.match(r".*?\.(?=\s|$)", text)
    return sentence.group() if sentence else text


def _value_text(value: Any) -> str:
    """Values without a text: what an endpoint or a topic is for, or the value itself."""
    if isinstance(doc := getattr(value, "doc", None), str):
        return f"{code(value.subject.template)}: {doc}"
    if typing.get_origin(value) in (typing.Literal, types.UnionType, typing.Union):
        return shown(value)
    return code(repr(value))


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8"))


def _text_below(module: str, name: str) -> str:
    body = _tree(module).body
    for node, below in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return _text_below(str(node.module), name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return _literal(below)
    return ""


def _literal(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(inspect.cleandoc(str(node.value.value)).split("\n\n")[0].split()).replace("``", "`")
    return ""
