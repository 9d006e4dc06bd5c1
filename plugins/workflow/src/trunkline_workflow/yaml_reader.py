"""Reads YAML into values that know their lines. Pure.

Only what a workflow needs is read: mappings, lists and plain values. Anchors, aliases and tags are refused, so no text
grows when it is read and no object is made. The parser's events are read one by one, so deep nesting exhausts no stack.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_BYTES = 32_768
"""The largest size of a definition in bytes."""

MAX_DEPTH = 16
"""The largest number of mappings and lists within each other."""

MAX_VALUES = 5_000

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a definition. ``line`` counts from 1."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


class YamlError(ValueError):
    """A text is not the YAML that a workflow may use. ``problem`` says what is wrong and where."""

    def __init__(self, line: int, text: str) -> None:
        self.problem = Problem(line, text)
        super().__init__(str(self.problem))


@dataclass(slots=True)
class YamlNode:
    """A value with its line. ``value`` is a plain value, a list of nodes, or a dict of nodes by key; ``keys`` has the
    lines of the keys.
    """

    line: int
    value: Any
    keys: dict[str, int] = field(default_factory=dict)

    def plain(self) -> Any:
        """Return the value without lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def read_yaml(text: str) -> YamlNode:
    """Return the only document of a text.

    Raises:
        YamlError: the text is no YAML, is too large, or uses what a workflow may not use.
    """
    import yaml

    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise YamlError(1, f"The file has more than {MAX_BYTES} bytes.")
    try:
        return _document(_events(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YamlError(line, f"This is not YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(1, "This is not YAML: a character is not allowed.") from error


def _events(text: str) -> Iterator[Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, Loader=loader)


def _document(events: Iterator[Any]) -> YamlNode:
    """Build the nodes with a stack of the open collections."""
    import yaml

    root: YamlNode | None = None
    open_: list[_Open] = []
    count = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            closed = open_.pop()
            closed.end()
            continue
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise YamlError(event.start_mark.line + 1, "A file has one workflow; begin another file.")
        if not isinstance(event, yaml.NodeEvent):
            continue
        count += 1
        node = _node(event)
        if count > MAX_VALUES:
            raise YamlError(node.line, f"The file has more than {MAX_VALUES} values.")
        if open_:
            open_[-1].add(node)
        else:
            root = node
        if isinstance(node.value, dict | list):
            open_.append(_Open(node))
            if len(open_) > MAX_DEPTH:
                raise YamlError(node.line, f"More than {MAX_DEPTH} lists and mappings are within each other.")
    if root is None:
        raise YamlError(1, "The file is empty.")
    return root


@dataclass(slots=True)
class _Open:
    """A collection that has not ended. ``key`` is the key whose value comes next."""

    node: YamlNode
    key: str | None = None

    def add(self, node: YamlNode) -> None:
        if isinstance(self.node.value, list):
            self.node.value.append(node)
            return
        if self.key is not None:
            self.node.value[self.key] = node
            self.key = None
            return
        if isinstance(node.value, dict | list):
            raise YamlError(node.line, "A key must be a name.")
        key = str(node.value) if not isinstance(node.value, str) else node.value
        if key in self.node.keys:
            raise YamlError(node.line, f"The key {key!r} is here a second time.")
        self.key = key
        self.node.keys[key] = node.line

    def end(self) -> None:
        self.key = None


def _node(event: Any) -> YamlNode:
    import yaml

    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise YamlError(line, "Anchors and aliases (& and *) are not allowed; write the value out.")
    if event.tag is not None:
        raise YamlError(line, f"Tags such as {event.tag} are not allowed.")
    if isinstance(event, yaml.MappingStartEvent):
        return YamlNode(line, {})
    if isinstance(event, yaml.SequenceStartEvent):
        return YamlNode(line, [])
    return YamlNode(line, event.value if event.style not in (None, "") else _plain_value(event.value))


def _plain_value(text: str) -> Any:
    """Return an unquoted value as JSON would have it; everything else is text, ``yes`` and dates too."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
