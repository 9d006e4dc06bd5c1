"""A channel: a way in and out for people. It knows the gateway's face and nothing behind it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Literal, Protocol

from trunkline.contracts.approvals.messages import Approval, ApprovalScope
from trunkline.contracts.blocks.messages import Block
from trunkline.contracts.conversations.messages import (
    ConversationPage,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import ConversationView, MessageAccepted, SendMessage, TurnView
from trunkline.contracts.turns.messages import FeedEvent
from trunkline.errors import Unavailable


class TurnStream(Protocol):
    """A reader of a turn's feed by position; it survives reconnects, restarts and takeovers."""

    position: str
    """Where the reader stands, as text to be taken as it is: what ``Last-Event-ID`` carries."""

    def __aiter__(self) -> AsyncIterator[FeedEvent]:
        """The events, without gap or repeat, ending with ``TurnEnded``."""
        ...


class Gateway(Protocol):
    """The gateway as a channel sees it. Every method raises RemoteFault with a code and a sentence for people, or
    Unavailable when no gateway answers; none of them loses a message that was accepted.

    ``waiting`` are the calls that wait for a person now. ``approvals`` gives the same, whichever channel began their
    turns, then each change of one: asked, reminded of (``reminded_at``), settled. It never ends by itself and waits
    while the bus is away. A channel shows them to its owner and hands in what the owner says by ``decide``, bound to
    ``call_hash``: a yes or no, or to a question (``detail.is_question``) an ``answer``, which ``allow=False`` declines
    to give. Who comes second is refused with ``conflict`` and a sentence that says who was first.

    ``answerer`` is the model that answers in a block, to be shown before anything is said."""

    async def send(self, message: SendMessage) -> MessageAccepted: ...
    def watch(self, conversation: str, turn: str, *, after: str = "") -> TurnStream: ...
    async def cancel(self, turn: str, *, mode: Literal["now", "after_step"] = "now") -> None: ...
    async def decide(
        self,
        turn: str,
        call: str,
        call_hash: str,
        *,
        allow: bool,
        scope: ApprovalScope = "once",
        answer: str = "",
    ) -> None: ...
    async def waiting(self) -> tuple[Approval, ...]: ...
    def approvals(self) -> AsyncGenerator[Approval, None]: ...
    async def turn(self, turn: str) -> TurnView: ...
    async def conversation(self, conversation: str, *, include_tools: bool = False) -> ConversationView: ...
    async def conversations(self, query: ListConversations) -> ConversationPage: ...
    async def rename_conversation(self, conversation: str, title: str | None) -> ConversationSummary: ...
    async def answerer(self, block: str | None = None) -> Answerer: ...
    async def blocks(self) -> tuple[Block, ...]: ...


class Channel(ABC):
    """One channel, run by a channels worker."""

    name: str
    """Lower-case; it is a subject key, so the channel's credentials speak for nobody else."""

    shows: str = ""
    """What a person sees here of an answer, in a sentence or two for the model, such as "Plain text: Markdown is not
    drawn."; at most ``MAX_SHOWS`` characters. "" says nothing."""

    render: Callable[[FeedEvent], str | None] | None = None
    """How plugins want an event worded (``trunkline_render``); whoever runs the channel sets it. None or an answer of
    None leaves the wording to the channel; "" leaves the event out. Ends of turns and approvals are never left out."""

    async def tell_owner(self, text: str) -> None:
        """Tell the owner something that answers no message: a call of some turn waits, or an agent has news.

        Raises:
            Unavailable: the owner cannot be told anything through this channel, now or ever, as here.
        """
        raise Unavailable(f"The channel {self.name} cannot tell its owner anything that answers no message.")

    @abstractmethod
    async def run(self, gateway: Gateway) -> None:
        """Take people's messages in and show what comes back, until cancelled.

        Returning means that the channel is done (a person left the terminal). An exception is logged and the
        channel is started again after a pause.
        """
