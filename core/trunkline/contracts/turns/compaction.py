"""Compaction: the contract of the stage that replaces the first messages of a conversation by a summary."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.models.completer import Completer

CompactionCause = Literal["automatic", "command", "overflow"]
"""The reason for a compaction: the context grew, a person asked for it, or a model refused a request as too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """A conversation to compact.

    ``messages`` are all stored messages, with old results of tools shortened as in a request. ``previous`` is the
    record in effect. ``window`` is the number of tokens that the conversation's model accepts, ``summary_window`` that
    of the model that summarises. ``focus`` is what a person asked to keep. ``progress`` shows a sentence to people.
    ``completer`` asks models; its purpose must be ``summary``. With ``rebirth`` a person asked for a rebirth: no
    message stays, and the summary is also written to the block's ``memory.md``. ``memory`` is the memory of the block;
    None if nothing may be remembered there.
    """

    messages: tuple[Message, ...]
    previous: SummaryRecord | None
    window: int
    summary_window: int
    cause: CompactionCause
    completer: Completer
    progress: Callable[[str], Awaitable[None]]
    focus: str = ""
    rebirth: bool = False
    memory: Memory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDraft:
    """A summary of the first ``count`` messages of a job; ``model`` wrote it (``adapter/model``)."""

    text: str
    count: int
    model: str


class Compactor(ABC):
    """Decides when a conversation is compacted, and summarises its first messages.

    Guarantees: every monitor uses the first compactor of all plugins. A job is given again if the monitor that ran it
    died; of several drafts one is stored.

    Not guaranteed: that a draft is stored. Another record may have been stored in the meantime.
    """

    @abstractmethod
    def is_due(self, tokens: int, window: int) -> bool:
        """Report whether a conversation is compacted whose last request had this many tokens, of those that the model
        accepts. Raises nothing.
        """

    @abstractmethod
    async def compact(self, job: CompactionJob) -> SummaryDraft | None:
        """Return a summary that contains everything that ``previous`` tells; None if no message is older than those
        that stay. A message that stays must not hold the result of a call that does not stay.

        Raises:
            CompletionError: no model wrote a summary. The conversation stays as it is.
            ToolError: memory refused ``memory.md``. The conversation stays as it is.
        """
