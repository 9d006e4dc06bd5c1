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

PARTS = ("Guarantees:", "Not guaranteed:", "Raises ")
"""The beginnings of the paragraphs of a method's docstring that are shown besides the first one."""

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
    methods = [line for key, one in _public_methods(value).items() for line in _method(key, one)]
    fields = [
        f"* {code(field.name)}: {shown(field.type)}{', optional' if _has_default(field) else ''}"
        for field in (dataclasses.fields(value) if dataclasses.is_dataclass(value) else ())
        if not field.name.startswith("_")
    ]
    if not methods and not (fields and name in MADE_BY_AUTHORS):
        return ""
    return "\n\n".join([f"### {code(name)}", prose(value), "\n".join([*fields, *methods])])


def _public_methods(kind: type) -> dict[str, Any]:
    """Methods and properties by name, in the order of the source; those of a base of ours come after its own."""
    found: dict[str, Any] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("trunkline"):
            for key, one in vars(base).items():
                plain = one.__func__ if isinstance(one, (staticmethod, classmethod)) else one
                if not key.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
                    found.setdefault(key, plain)
    return found


def _method(name: str, method: Any) -> list[str]:
    """A method with what it does, and below it what it guarantees, what it does not guarantee, and its errors."""
    _, *others = prose(method).split("\n\n")
    lines = [f"* {code(_call(name, method))}: {first_paragraph(method)}"]
    for paragraph in others:
        if paragraph.startswith("Raises:\n"):
            entries = re.split(r"\n(?= {4}\w)", paragraph)[1:]
            lines += [re.sub(r"^(\w+)", r"  * Raises `\1`", " ".join(entry.split())) for entry in entries]
        elif paragraph.startswith(PARTS):
            lines.append(f"  * {' '.join(paragraph.split())}")
    return lines


def _call(name: str, method: Any) -> str:
    """A method as it is called: the names of its parameters, with their defaults."""
    if isinstance(method, property):
        return name
    parameters = [
        one.replace(annotation=one.empty)
        for one in inspect.signature(method).parameters.values()
        if one.name not in ("self", "cls")
    ]
    return f"{name}{inspect.Signature(parameters)}"


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
