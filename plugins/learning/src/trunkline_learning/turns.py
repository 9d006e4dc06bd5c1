"""A turn that ended, as the learner looks at it. Values only; where they come from is ``reading``."""

from datetime import datetime

import msgspec

from trunkline.messages.conversation import Message
from trunkline.messages.turn import FinishReason


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where something was learned: every derived line carries one."""

    block: str
    conversation: str
    turn: str
    message: str = ""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a turn. ``output`` is what the model was given."""

    name: str
    failed: bool
    output: str = ""


class FinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with all that may be learned from. ``model`` is ``adapter/model``, "" when it is not known any more.

    ``said`` are the person's messages, ``by_person`` whether a person sent them (no schedule, no webhook).
    ``strategies`` are the ids that stood in its context.
    """

    source: Source
    model: str
    said: tuple[Message, ...]
    answer: str
    tools: tuple[ToolUse, ...] = ()
    strategies: tuple[str, ...] = ()
    by_person: bool = True
    reason: FinishReason = "stop"
    at: datetime

    @property
    def task(self) -> str:
        """What the person asked for."""
        return "\n".join(message.content for message in self.said)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that were used, each once, in order."""
        return tuple(dict.fromkeys(tool.name for tool in self.tools))
