"""Which tools a model is given. Pure: it follows from the block's tools, the owner's choice and the transcript alone,
so it survives whatever these survive, and a fork has it too."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from trunkline.messages.blocks import Discovery
from trunkline.messages.conversation import Message
from trunkline.messages.tools import DISCOVER_TOOLS, LOAD_TOOLS, ToolOutcome, ToolSpec

LOADS = "loads"
"""Where the metadata of a tool's result names the tools that are given from then on."""


class Showing(msgspec.Struct, frozen=True, kw_only=True):
    """How tools are shown: whether the model finds most of them by itself (``discovery``), and the names and patterns
    of those that it has all the same; None: those whose authors advise it."""

    discovery: bool = False
    always: tuple[str, ...] | None = None


def showing(wish: Discovery, always: tuple[str, ...] | None, count: int, above: int) -> Showing:
    """What the owner's wish comes to with so many tools; ``auto`` is discovery where there are more than ``above``."""
    return Showing(discovery=wish == "on" or (wish == "auto" and count > above), always=always)


def visible(
    specs: Sequence[ToolSpec], own: Sequence[ToolSpec], how: Showing, messages: Iterable[Message]
) -> tuple[ToolSpec, ...]:
    """The tools to show after these messages: those that are always shown, by name, then what was loaded or called, in
    that order. So what was shown before stays where it was, as a provider's cache wants it."""
    known = {spec.name: spec for spec in (*specs, *own)}
    begin = [spec.name for spec in specs]
    if how.discovery and DISCOVER_TOOLS in known:
        begin = [spec.name for spec in specs if _is_sent(spec, how.always)] + [DISCOVER_TOOLS, LOAD_TOOLS]
    return tuple(known[name] for name in dict.fromkeys([*begin, *_wanted(messages)]) if name in known)


def gone(specs: Sequence[ToolSpec], own: Sequence[ToolSpec], messages: Iterable[Message]) -> tuple[str, ...]:
    """The tools that were loaded and are not there any more."""
    known = {spec.name for spec in (*specs, *own)}
    loaded = dict.fromkeys(name for message in messages for name in _loads(message))
    return tuple(name for name in loaded if name not in known)


def loads_of(outcome: ToolOutcome) -> tuple[str, ...]:
    """The tools that an outcome brings along."""
    return () if isinstance(outcome.loads, msgspec.UnsetType) else outcome.loads


def _wanted(messages: Iterable[Message]) -> Iterator[str]:
    """The tools that were loaded, or called without: who calls what it was not shown is shown it from then on."""
    for message in messages:
        yield from (call.name for call in message.tool_calls)
        yield from _loads(message)


def _loads(message: Message) -> Iterator[str]:
    names = message.metadata.get(LOADS) if message.role == "tool" and message.metadata else None
    if isinstance(names, list | tuple):
        yield from (name for name in names if isinstance(name, str))


def _is_sent(spec: ToolSpec, always: tuple[str, ...] | None) -> bool:
    if always is None:
        return spec.category == "always-send"
    return any(fnmatchcase(spec.name, one) or fnmatchcase(spec.identity, one) for one in always)
