"""Which tools a model is given. Pure: it follows from the block's tools, the owner's choice and the transcript alone,
so it survives whatever these survive, and a fork has it too."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from trunkline.contracts.blocks.messages import Discovery
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.tools.messages import DISCOVER_TOOLS, LOAD_TOOLS, ToolOutcome, ToolSpec
from trunkline.plugins.discovery import bundled_distributions

LOADED_TOOLS_KEY = "loads"
"""Where the metadata of a tool's result names the tools that are given from then on."""


class ToolSelectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How tools are shown: whether the model finds most of them by itself (``discovery``), and the names and patterns
    of those that it has all the same; None: those whose authors advise it, so that there are at most ``most`` with
    the two that find the others."""

    discovery: bool = False
    always: tuple[str, ...] | None = None
    most: int = 12


def selection_settings(
    wish: Discovery, always: tuple[str, ...] | None, count: int, above: int
) -> ToolSelectionSettings:
    """What the owner's wish comes to with so many tools; ``auto`` is discovery where there are more than ``above``."""
    return ToolSelectionSettings(
        discovery=wish == "on" or (wish == "auto" and count > above), always=always, most=above
    )


def select_tools(
    specs: Sequence[ToolSpec],
    own: Sequence[ToolSpec],
    how: ToolSelectionSettings,
    messages: Iterable[Message],
    restricted: frozenset[str] = frozenset(),
) -> tuple[ToolSpec, ...]:
    """The tools to show after these messages: those that are always shown, by name, then what was loaded or called, in
    that order. So what was shown before stays where it was, as a provider's cache wants it. Of the ``restricted`` ones
    only those are shown that were loaded for whoever may use them."""
    known = {spec.name: spec for spec in (*specs, *own)}
    free = [spec for spec in specs if spec.name not in restricted]
    begin = [spec.name for spec in free]
    if len(free) < len(specs):  # so that a model can say what a person would have to permit
        begin.append(DISCOVER_TOOLS)
    if how.discovery and DISCOVER_TOOLS in known:
        begin = [*_always_shown(free, how), DISCOVER_TOOLS, LOAD_TOOLS]
    wanted = _loaded_or_called(messages, restricted)
    return tuple(known[name] for name in dict.fromkeys([*begin, *wanted]) if name in known)


def missing_tools(
    specs: Sequence[ToolSpec], own: Sequence[ToolSpec], messages: Iterable[Message]
) -> tuple[str, ...]:
    """The tools that were loaded and are not there any more."""
    known = {spec.name for spec in (*specs, *own)}
    loaded = dict.fromkeys(name for message in messages for name in _loads(message))
    return tuple(name for name in loaded if name not in known)


def loaded_tools(outcome: ToolOutcome) -> tuple[str, ...]:
    """The tools that an outcome brings along."""
    return () if isinstance(outcome.loads, msgspec.UnsetType) else outcome.loads


def unknown_tool_names(
    always: Iterable[str], specs: Sequence[ToolSpec], own: Sequence[ToolSpec]
) -> tuple[str, ...]:
    """The names and patterns that stand for none of the tools (PA-F43)."""
    tools = (*specs, *own)
    return tuple(one for one in always if not any(_matches(spec, one) for spec in tools))


def _loaded_or_called(messages: Iterable[Message], restricted: frozenset[str]) -> Iterator[str]:
    """The tools that were loaded, or called without: who calls what it was not shown is shown it from then on."""
    for message in messages:
        yield from (call.name for call in message.tool_calls if call.name not in restricted)
        yield from _loads(message)


def _loads(message: Message) -> Iterator[str]:
    names = message.metadata.get(LOADED_TOOLS_KEY) if message.role == "tool" and message.metadata else None
    if isinstance(names, list | tuple):
        yield from (name for name in names if isinstance(name, str))


def _always_shown(specs: Sequence[ToolSpec], how: ToolSelectionSettings) -> list[str]:
    """The tools that are always shown, by name: the owner's choice, however many, else their authors' advice. Where
    that comes to more than there is room for, the platform's own plugins go first: anybody may advise his tools."""
    if how.always is not None:
        return [spec.name for spec in specs if any(_matches(spec, one) for one in how.always)]
    advised = [spec for spec in specs if spec.category == "always-send"]
    room = max(0, how.most - len((DISCOVER_TOOLS, LOAD_TOOLS)))
    if len(advised) > room:
        advised.sort(key=_is_third_party)  # stable: by name among equals
    return sorted(spec.name for spec in advised[:room])


def _is_third_party(spec: ToolSpec) -> bool:
    return spec.source.removeprefix("native:") not in bundled_distributions()


def _matches(spec: ToolSpec, pattern: str) -> bool:
    return fnmatchcase(spec.name, pattern) or fnmatchcase(spec.identity, pattern)
