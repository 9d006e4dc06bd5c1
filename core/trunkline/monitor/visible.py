"""Which tools a model is given. Pure: it follows from the block's tools and the transcript alone, so it survives
whatever these survive, and a fork has it too."""

from collections.abc import Iterable, Sequence

import msgspec

from trunkline.messages.conversation import Message
from trunkline.messages.tools import ToolOutcome, ToolSchema, ToolSpec

LOADS = "loads"
"""Where the metadata of a tool's result names the tools that are given from then on."""


def loads_of(outcome: ToolOutcome) -> tuple[str, ...]:
    """The tools that an outcome brings along."""
    return () if isinstance(outcome.loads, msgspec.UnsetType) else outcome.loads


def loaded(messages: Iterable[Message]) -> tuple[str, ...]:
    """The tools that were loaded so far, the first one first."""
    found: dict[str, None] = {}
    for message in messages:
        if message.role == "tool" and message.metadata:
            names = message.metadata.get(LOADS)
            found.update(dict.fromkeys(name for name in names or () if isinstance(name, str)))
    return tuple(found)


def visible(
    tools: Sequence[ToolSchema], own: Sequence[ToolSpec], messages: Iterable[Message]
) -> tuple[ToolSchema, ...]:
    """All tools of the block, and those of the platform's own that were loaded, behind them and in that order: what was
    given before stays where it was, as a provider's cache wants it."""
    known = {spec.name: spec.schema for spec in own}
    return (*tools, *(known[name] for name in loaded(messages) if name in known))
