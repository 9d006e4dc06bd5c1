"""The contract of a channel, and the gateway's methods that a channel calls."""

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
    """A reader of a turn's feed by position. It continues after a reconnect, a restart and a takeover."""

    position: str
    """The position after the last event, as an opaque text: the value of ``Last-Event-ID``."""

    def __aiter__(self) -> AsyncIterator[FeedEvent]:
        """Iterate over the events, without gap or repetition, up to and including ``TurnEnded``."""
        ...


class Gateway(Protocol):
    """The gateway as a channel sees it.

    Every async method raises RemoteFault with a code and a sentence for people, and Unavailable when no gateway
    answers. After Unavailable the request may or may not have been carried out; all of them may be repeated.
    """

    async def send(self, message: SendMessage) -> MessageAccepted:
        """Send a message. When this returns, the message is on disk and will be answered, even if every process is
        killed. Messages with the same ``client_id`` in the same conversation are one message, however often they are
        sent. When the answer arrives is not guaranteed.

        Raises:
            RemoteFault: ``not_found``: there is no such block or conversation. ``conflict``: the block is switched off,
                or the conversation belongs to another block. ``too_large``: the message exceeds its limit.
                ``forbidden``: the channel has no access. ``storage_failure``: the disk is nearly full.
        """
        ...

    def watch(self, conversation: str, turn: str, *, after: str = "") -> TurnStream:
        """Return the events of a turn after a position, from the beginning without one. Nothing is requested before
        the iteration begins.

        Raises:
            ValueError: ``after`` is no position.
        """
        ...

    async def cancel(self, turn: str, *, mode: Literal["now", "after_step"] = "now") -> None:
        """Cancel a turn, at once or after its running step. A turn that has ended stays as it is. The turn may still
        run when this returns; its feed ends with ``TurnEnded``.

        Raises:
            RemoteFault: ``not_found``: there is no such turn.
        """
        ...

    async def decide(
        self,
        turn: str,
        call: str,
        call_hash: str,
        *,
        allow: bool,
        scope: ApprovalScope = "once",
        answer: str = "",
    ) -> None:
        """Decide about a call that waits for approval. The first decision counts. It holds for the call with this
        ``call_hash`` only; with a wider ``scope``, approval also covers later calls like it. A question
        (``detail.is_question``) takes an ``answer``; ``allow=False`` declines to answer.

        Raises:
            RemoteFault: ``conflict``: another decision was made first, and the sentence names its author.
                ``forbidden``: this person is not the owner. ``not_found``: no such approval waits.
        """
        ...

    async def waiting(self) -> tuple[Approval, ...]:
        """Return the calls that wait for a decision now, whichever channel began their turns."""
        ...

    def approvals(self) -> AsyncGenerator[Approval, None]:
        """Iterate over the calls that wait for a decision, then over each change of one: requested, reminded of
        (``reminded_at``), decided. The iteration does not end by itself. It waits while the bus is unreachable."""
        ...

    async def turn(self, turn: str) -> TurnView:
        """Return the state of a turn, which may change at any time.

        Raises:
            RemoteFault: ``not_found``: there is no such turn.
        """
        ...

    async def conversation(self, conversation: str, *, include_tools: bool = False) -> ConversationView:
        """Return a conversation with its messages, those of the running turn included.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation.
        """
        ...

    async def conversations(self, query: ListConversations) -> ConversationPage:
        """Return a page of conversations, newest first. Two pages are not one snapshot: a conversation that changes
        between two calls may appear twice or be skipped."""
        ...

    async def rename_conversation(self, conversation: str, title: str | None) -> ConversationSummary:
        """Set the title of a conversation. None restores the title that is derived from the first message.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation. ``invalid_request``: a list cannot show the
                title.
        """
        ...

    async def answerer(self, block: str | None = None) -> Answerer:
        """Return the model that answers in a block, or in the default block, to be shown before the first message.

        Raises:
            RemoteFault: ``not_found``: there is no such block.
            Unavailable: no monitor replies at once. Messages are accepted nevertheless.
        """
        ...

    async def blocks(self) -> tuple[Block, ...]:
        """Return all blocks that are not archived."""
        ...


class Channel(ABC):
    """One channel, run by a channels worker."""

    name: str
    """Lower-case. It is part of the subjects on which the channel may publish."""

    shows: str = ""
    """The format that a person sees here, in a sentence or two for the model, such as "Plain text: Markdown is not
    rendered."; at most ``MAX_SHOWS`` characters. "" tells the model nothing."""

    render: Callable[[FeedEvent], str | None] | None = None
    """The text that plugins give an event (hook ``trunkline_render``). The channels worker sets this attribute. None,
    here or as a result, leaves the text to the channel; "" omits the event. A channel never omits the end of a turn
    or an approval."""

    async def tell_owner(self, text: str) -> None:
        """Send the owner a text that is no reply to a message: a call waits for approval, or an agent has news. The
        channel accepted the text when this returns; whether the owner has read it is not known.

        Raises:
            Unavailable: this channel cannot reach its owner now, or never can, as by default.
        """
        raise Unavailable(f"The channel {self.name} cannot tell its owner anything that answers no message.")

    @abstractmethod
    async def run(self, gateway: Gateway) -> None:
        """Send people's messages to the gateway and show them the replies, until cancelled.

        Return only when the channel has finished, for example because a person left the terminal. After an exception
        the channels worker logs it and starts the channel again after a pause. Do not acknowledge a message to its
        sender's service before ``Gateway.send`` returns.
        """
