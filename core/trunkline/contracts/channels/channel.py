"""The contract of a channel, and the gateway's methods that a channel calls."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import datetime
from typing import Literal, Protocol

from trunkline.contracts.approvals.messages import Approval, ApprovalScope
from trunkline.contracts.auth.linked_senders import LinkedSender
from trunkline.contracts.blocks.messages import Block
from trunkline.contracts.channels.owner_notice import OwnerNotice
from trunkline.contracts.channels.records import ChannelRecords
from trunkline.contracts.conversations.messages import (
    Attachment,
    ConversationPage,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.report_messages import CostTotals, Grouping
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import ConversationView, MessageAccepted, SendMessage, TurnView
from trunkline.contracts.models.abilities_client import ModelAbilities
from trunkline.contracts.models.listing import AdapterListing
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.contracts.turns.begun_turn import BegunTurn
from trunkline.contracts.turns.context_view import ContextView
from trunkline.contracts.turns.feed_messages import FeedEvent
from trunkline.errors import Unavailable


class TurnStream(Protocol):
    """A reader of a turn's feed by position.

    Guarantees: the events arrive in order, without gap or repetition, also after a reconnect, a restart and a takeover.

    Not guaranteed: when the next event arrives.
    """

    position: str
    """The position after the last event, as an opaque text: the value of ``Last-Event-ID``."""

    def __aiter__(self) -> AsyncIterator[FeedEvent]:
        """Iterate over the events up to and including ``TurnEnded``. Iterate only once.

        Raises:
            RemoteFault: while iterating: ``not_found``: there is no such turn.
            Unavailable: while iterating: the feed cannot be read now. Continue with ``Gateway.watch`` after
                ``position``.
        """
        ...


class Gateway(Protocol):
    """The gateway as a channel sees it.

    Guarantees: every request may be repeated. What a request changes is stored when its method returns, even if every
    process is killed then.

    Not guaranteed: after Unavailable, whether the request was carried out.

    Errors: every async method raises Unavailable when no gateway answers, and RemoteFault with a code and a sentence
    for people. The code is ``engine_unavailable`` if a worker behind the gateway does not answer.
    """

    sentences: Sentences
    """The sentences of the platform and of plugins, in the language that the owner prefers. The language may change."""

    async def send(self, message: SendMessage) -> MessageAccepted:
        """Send a message. When this returns, the message is on disk and will be answered, even if every process is
        killed. Messages with the same ``client_id`` in the same conversation are one message, however often they are
        sent.

        Not guaranteed: when the answer arrives.

        Raises:
            RemoteFault: ``not_found``: there is no such block or conversation. ``conflict``: the block is switched off,
                or the conversation belongs to another block. ``invalid_request``: the message is empty. ``too_large``:
                the message exceeds its limit. ``forbidden``: the channel has no access. ``rate_limited``: the
                conversation's queue is full. ``storage_failure``: the disk is nearly full. An admission rule may refuse
                with any code.
            Unavailable: no gateway answers. The message may have been accepted; send it again.
        """
        ...

    def watch(self, conversation: str, turn: str, *, after: str = "") -> TurnStream:
        """Return the events of a turn after a position, from the beginning without one. Nothing is requested before the
        iteration begins.

        Raises:
            ValueError: ``after`` is no position.
        """
        ...

    def turns(self, conversation: str, *, after: str | None = None) -> AsyncGenerator[BegunTurn, None]:
        """Iterate over the turns of a conversation as they begin, whichever channel their messages come from: those
        after the turn ``after``, or all that are kept with ``after=""``. None begins with the turn that runs, if there
        is one. The iteration does not end by itself. Close it to end it.

        Guarantees: the turns come in the order in which the agent answers, the same for every reader. None is missed or
        repeated. While the bus is unreachable it waits.

        Not guaranteed: turns that are no longer kept (``retention.journal_days``).

        Raises nothing.
        """
        ...

    async def cancel(self, turn: str, *, mode: Literal["now", "after_step"] = "now") -> None:
        """Cancel a turn, at once or after its running step. A turn that has ended stays as it is.

        Not guaranteed: that the turn has ended when this returns. Its feed ends with ``TurnEnded``.

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
        (``detail.is_question``) takes an ``answer``; ``allow=False`` declines to answer. The same decision may be sent
        again.

        Raises:
            RemoteFault: ``conflict``: another decision was made first, and the sentence names its author; or the turn
                has ended, or the call has changed since it was shown. ``forbidden``: this person is not the owner.
                ``not_found``: no such approval waits. ``invalid_request``: the scope is not possible for this call, or
                the answer does not fit. ``too_large``: the answer is too long.
        """
        ...

    async def waiting(self) -> tuple[Approval, ...]:
        """Return the calls that wait for a decision now, whichever channel began their turns. Raises nothing besides
        the errors of every method.
        """
        ...

    def approvals(self) -> AsyncGenerator[Approval, None]:
        """Iterate over the calls that wait for a decision, then over each change of one: requested, reminded of
        (``reminded_at``), decided. The iteration does not end by itself. Close it to end it.

        Guarantees: once the iteration has begun, no change is missed or repeated. While the bus is unreachable it
        waits.

        Not guaranteed: that a call appears which was decided before the iteration saw it.

        Raises nothing.
        """
        ...

    def budget_events(self) -> AsyncGenerator[BudgetEvent, None]:
        """Iterate over the events of budgets from now on: a budget is used up, or was reset
        (``describe_budget_event``). The iteration does not end by itself. Close it to end it.

        The channels worker sends used-up budgets to ``Channel.tell_owner``. Only a channel that shows them in another
        way calls this.

        Guarantees: once the iteration has begun, no event is missed or repeated. While the bus is unreachable it waits.

        Not guaranteed: events from before the iteration began.

        Raises nothing.
        """
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
        """Return a page of conversations, newest first.

        Not guaranteed: one snapshot. A conversation that changes between two calls may appear twice or be skipped.

        Raises nothing besides the errors of every method.
        """
        ...

    async def rename_conversation(self, conversation: str, title: str | None) -> ConversationSummary:
        """Set the title of a conversation. None restores the title that is derived from the first message.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation. ``invalid_request``: a list cannot show the
                title.
        """
        ...

    async def mark_conversation(
        self, conversation: str, *, pinned: bool | None = None, archived: bool | None = None
    ) -> ConversationSummary:
        """Pin or archive a conversation, or undo that. None leaves it unchanged. A list leaves an archived conversation
        out, and a new message takes it out of the archive.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation. ``invalid_request``: both are None.
        """
        ...

    async def choose_model(self, conversation: str | None, model: str | None) -> Answerer:
        """Choose the model of a conversation, from the next message on, and return who answers there. None removes the
        choice, so that the settings of the block and the owner decide. Without a conversation the model is only
        checked.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation. ``invalid_request``: the model cannot be had; the
                sentence names the nearest ones.
        """
        ...

    async def models(self, *, refresh: bool = False) -> tuple[AdapterListing, ...]:
        """Return the models of the configured adapters; with ``refresh`` the vendors are asked again.

        Raises nothing besides the errors of every method.
        """
        ...

    async def file(self, file: Attachment) -> bytes:
        """Return the content of a file that a tool gave to the person (``ToolEnded.files``), or of a file of a message.

        Raises:
            RemoteFault: ``not_found``: the file is no longer stored, or its conversation is not the caller's.
        """
        ...

    async def context(
        self, conversation: str, turn: str | None = None, *, texts: bool = False
    ) -> ContextView:
        """Return what a model was sent in the last model call of a turn; None selects the conversation's last turn.
        With ``texts`` the parts have their texts.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation or turn, its journal is no longer kept, or the
                turn asked no model.
        """
        ...

    async def answerer(self, block: str | None = None, *, conversation: str | None = None) -> Answerer:
        """Return the model that answers in a block, or in the default block, to be shown before the first message; or
        in a conversation.

        Raises:
            RemoteFault: ``not_found``: there is no such block or conversation.
            Unavailable: no monitor replies at once. Messages are accepted nevertheless.
        """
        ...

    async def costs(
        self,
        since: datetime,
        *,
        by: Grouping = "block",
        block: str | None = None,
        conversation: str | None = None,
    ) -> CostTotals:
        """Return what models cost since a time, in sum and by one property; of one block or conversation if it is
        given. An answer counts a moment after its end.

        Raises:
            RemoteFault: ``not_found``: there is no such block.
        """
        ...

    async def senders(self) -> tuple[LinkedSender, ...]:
        """Return the people of this channel's service whom a pairing code has linked to the owner. Raises nothing
        besides the errors of every method.
        """
        ...

    async def link_sender(self, code: str, sender: str, place: str, name: str) -> bool:
        """Link the sender of a pairing code to the owner; report whether the code does so. ``sender`` is the id that
        the service gave to the person, ``place`` the chat for notices, ``name`` the name for people. Only pass on
        codes that nobody else can read: not those of a group.

        Guarantees: a code links one sender. After a few wrong codes no code of the same sender counts for a while.

        Raises nothing besides the errors of every method.
        """
        ...

    async def blocks(self) -> tuple[Block, ...]:
        """Return all blocks that are not archived. Raises nothing besides the errors of every method."""
        ...

    def records(self) -> ChannelRecords:
        """Return the records of this channel on the bus. Raises nothing; its methods raise Unavailable."""
        ...

    def abilities(self, block: str | None = None) -> ModelAbilities:
        """Return the client for transcripts, speech and vectors by the models of a block, or of the default block. A
        channel transcribes voice messages with it. Raises nothing; its methods raise CompletionError.
        """
        ...


class Channel(ABC):
    """One channel, run by a channels worker.

    Guarantees: ``run`` runs once at a time. A channel that fails affects no other channel, and the turns of its
    messages continue.

    Not guaranteed: that ``run`` is running when ``tell_owner`` is called.
    """

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
        """Send the owner a text that is no reply to a message: a call waits for approval, an agent has news, or a
        budget is used up. The channel accepted the text when this returns; whether the owner has read it is not known.

        Raises:
            Unavailable: this channel cannot reach its owner now, or never can, as by default. Nothing was sent. For any
                other exception the sender is told that a part may have arrived, and the log has the exception.
        """
        raise Unavailable(f"The channel {self.name} can send its owner only answers to messages.")

    remembers_notices: bool = False
    """Whether ``tell`` finds out by the notice's id what a killed process told, so that it may be called again."""

    async def tell(self, notice: OwnerNotice) -> None:
        """Send the owner a notice, by ``tell_owner`` unless overridden. Raises as ``tell_owner`` does."""
        await self.tell_owner(notice.text)

    @abstractmethod
    async def run(self, gateway: Gateway) -> None:
        """Send people's messages to the gateway and show them the replies, until cancelled.

        Return only when the channel has finished, for example because a person left the terminal. Do not acknowledge a
        message to its sender's service before ``Gateway.send`` returns.

        Raises:
            Exception: the channel failed. The channels worker logs the exception and runs this method again after 1 to
                60 seconds.
        """
