"""A turn that ended, as the learner looks at it. Values only; where they come from is ``reading``."""

from datetime import datetime

import msgspec

from trunkline import Message
from trunkline.api.memory import OWNER
from trunkline.api.turn import FinishReason


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of a learned item; every derived line carries one. ``person`` is who spoke, "" for the owner."""

    block: str
    conversation: str
    turn: str
    message: str = ""
    person: str = ""

    @property
    def audience(self) -> "Audience":
        """The audience that may receive it."""
        return self.block, self.person


Audience = tuple[str, str]
"""A block, and the person who speaks there. What is learned of one person in a block is shown to nobody else."""


def person_behind(actor: str) -> str:
    """The person behind an actor: "" for the owner, who also speaks through every channel; else the actor's id."""
    return "" if actor == OWNER or actor.startswith("channel:") else actor


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of a turn. ``output`` is what the model received, ``kind`` the kind of its error."""

    name: str
    failed: bool
    kind: str = ""
    output: str = ""


class FinishedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with all that may be learned from. ``model`` is ``adapter/model``, "" when it is not known any more.

    ``messages`` are the person's messages, ``by_person`` whether a person sent them.
    ``strategies`` are the ids that stood in its context, ``facts`` what was told there as known.
    """

    source: Provenance
    model: str
    messages: tuple[Message, ...]
    answer: str
    tools: tuple[ToolUse, ...] = ()
    strategies: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    by_person: bool = True
    reason: FinishReason = "stop"
    at: datetime

    @property
    def task(self) -> str:
        """The person's request."""
        return "\n".join(message.content for message in self.messages)

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that were used, each once, in order."""
        return tuple(dict.fromkeys(tool.name for tool in self.tools))
