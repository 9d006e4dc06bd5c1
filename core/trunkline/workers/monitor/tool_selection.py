"""The selection of tools for a model. Pure: it depends only on the block's tools, the owner's choice and the
transcript, so it is the same after a restart and in a fork."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from trunkline.contracts.blocks.messages import Discovery
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.tools.messages import DISCOVER_TOOLS, LOAD_TOOLS, ToolOutcome, ToolSpec
from trunkline.plugins.discovery import bundled_distributions

LOADED_TOOLS_KEY = "loads"
"""The metadata key of a tool result that names the tools which are shown from then on."""


class ToolSelectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for showing tools.

    With ``discovery`` the model finds most tools through the discovery tools. ``always`` are names and patterns of the
    tools that are shown nevertheless. None means the tools whose authors advise it; together with the two discovery
    tools at most ``most`` are then shown.
    """

    discovery: bool = False
    always: tuple[str, ...] | None = None
    most: int = 12


def selection_settings(
    discovery: Discovery, always: tuple[str, ...] | None, count: int, above: int
) -> ToolSelectionSettings:
    """Return the settings for ``count`` tools. ``auto`` means discovery when ``count`` exceeds ``above``."""
    return ToolSelectionSettings(
        discovery=discovery == "on" or (discovery == "auto" and count > above), always=always, most=above
    )


def select_tools(
    specs: Sequence[ToolSpec],
    own: Sequence[ToolSpec],
    how: ToolSelectionSettings,
    messages: Iterable[Message],
    restricted: frozenset[str] = frozenset(),
    subset: tuple[str, ...] | None = None,
) -> tuple[ToolSpec, ...]:
    """Return the tools to show after these messages.

    First come the tools that are always shown, by name, then the tools that were loaded or called, in that order. So
    earlier tools keep their place, which prompt caches require. Of the ``restricted`` tools only loaded ones are
    shown. With a ``subset`` of names and patterns, its tools are always shown instead, and all others are found through
    discovery.
    """
    known = {spec.name: spec for spec in (*specs, *own)}
    permitted = [spec for spec in specs if spec.name not in restricted]
    first = [spec.name for spec in permitted]
    if len(permitted) < len(specs):  # lets the model name the tools that a person would have to permit
        first.append(DISCOVER_TOOLS)
    if subset is not None:
        of_subset = (spec.name for spec in permitted if any(_matches(spec, one) for one in subset))
        first = [*of_subset, DISCOVER_TOOLS, LOAD_TOOLS]
    elif how.discovery and DISCOVER_TOOLS in known:
        first = [*_always_shown(permitted, how), DISCOVER_TOOLS, LOAD_TOOLS]
    added = _loaded_or_called(messages, restricted)
    return tuple(known[name] for name in dict.fromkeys([*first, *added]) if name in known)


def missing_tools(
    specs: Sequence[ToolSpec], own: Sequence[ToolSpec], messages: Iterable[Message]
) -> tuple[str, ...]:
    """Return the tools that were loaded and no longer exist."""
    known = {spec.name for spec in (*specs, *own)}
    loaded = dict.fromkeys(name for message in messages for name in _loads(message))
    return tuple(name for name in loaded if name not in known)


def loaded_tools(outcome: ToolOutcome) -> tuple[str, ...]:
    """Return the tools that an outcome loads."""
    return () if isinstance(outcome.loads, msgspec.UnsetType) else outcome.loads


def unknown_tool_names(
    always: Iterable[str], specs: Sequence[ToolSpec], own: Sequence[ToolSpec]
) -> tuple[str, ...]:
    """Return the names and patterns that match no tool."""
    tools = (*specs, *own)
    return tuple(one for one in always if not any(_matches(spec, one) for spec in tools))


def _loaded_or_called(messages: Iterable[Message], restricted: frozenset[str]) -> Iterator[str]:
    """Yield the tools that were loaded, or called without being shown."""
    for message in messages:
        yield from (call.name for call in message.tool_calls if call.name not in restricted)
        yield from _loads(message)


def _loads(message: Message) -> Iterator[str]:
    names = message.metadata.get(LOADED_TOOLS_KEY) if message.role == "tool" and message.metadata else None
    if isinstance(names, list | tuple):
        yield from (name for name in names if isinstance(name, str))


def _always_shown(specs: Sequence[ToolSpec], how: ToolSelectionSettings) -> list[str]:
    """Return the tools that are always shown, by name: the owner's choice without limit, else those whose
    authors advise it.

    When the authors of too many tools advise it, the tools of the platform's plugins take precedence, because any
    author may advise this for the author's tools.
    """
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
