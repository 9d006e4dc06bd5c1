"""Attached chats: chats that show everything that is said in a conversation, through whatever channel.

An attached chat is a record on the bus, and each turn that it shows is a delivery. So the chat goes on after a crash
where it was, and shows each turn once.
"""

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline._util.text import printable
from trunkline.contracts.approvals.messages import describe_channel
from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.channels.records import ChannelRecord, RecordChanged
from trunkline.contracts.conversations.messages import ConversationSummary, Message
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline.contracts.turns.begun_turn import BegunTurn
from trunkline.errors import Unavailable
from trunkline.workers.channels.delivery_ledger import DeliveryLedger, DeliveryState, OutboundDelivery
from trunkline_bus.backoff import Backoff

T = TypeVar("T")

ASKED = "asked"
"""The detail of a delivery that quotes what the person wrote on another channel, as Markdown."""

CHAT_KEY = "chat"
"""The key in a message's metadata under which the message names the chat that it was written in."""

MAX_QUOTED = 1_000
"""The largest number of characters that are quoted of a person's message."""

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two attempts to reach the bus: doubled each time."""

_DELIVERY = "turn:"


class AttachedChat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chat that shows a conversation. ``chat`` is the channel's name of the chat or topic, and ``place`` and
    ``details`` are those of its deliveries. ``after`` is the last turn of which the chat has a delivery, or needs none.
    """

    chat: str
    place: str
    conversation: str
    after: str = ""
    details: dict[str, str] = {}


class AttachedChats:
    """The attached chats of one account of a channel.

    Guarantees: from ``attach`` on, each turn of the conversation is one delivery in the chat, in the order in which
    the agent answers, also after a restart and a kill of this process. A turn that runs at that moment is shown from
    its beginning. What was written in this chat itself is left to the channel, which answers it anyway.

    Not guaranteed: that a turn is shown which ended while the journal was cut (``retention.journal_days``).

    Args:
        channel: The name of the channel, under which its messages arrive.
        account: A word of a-z, 0-9, ``-`` and ``_`` that names the account.
        show: Shows a delivery to its end. It is called for one delivery of a chat at a time.
    """

    def __init__(
        self,
        gateway: Gateway,
        ledger: DeliveryLedger,
        channel: str,
        account: str,
        show: Callable[[OutboundDelivery], Awaitable[None]],
    ) -> None:
        self._gateway = gateway
        self._ledger = ledger
        self._channel = channel
        self._account = account
        self._prefix = f"attached.{account}"
        self._show = show
        self._following: dict[str, anyio.CancelScope] = {}
        self._in_order: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None

    async def run(self, left: Sequence[OutboundDelivery] = ()) -> None:
        """Show what attached chats have to show, until cancelled. ``left`` are the deliveries that a former process did
        not finish; those that are not of an attached chat are passed over.

        Raises:
            RecordChanged: another process goes on with a chat.
        """
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for delivery in left:
                if is_of_attached_chat(delivery):
                    tasks.start_soon(self._show_in_order, delivery)
            for record in await self._ledger.records.list(self._prefix, AttachedChat):
                tasks.start_soon(self._follow, record)
            await anyio.sleep_forever()

    def name(self, chat: str) -> str:
        """Return the name of a chat among those of all channels. Raises nothing."""
        return f"{self._channel}.{self._account}.{chat}"

    def metadata(self, chat: str) -> dict[str, object]:
        """Return the metadata of a message that is written in this chat, so that the chat does not quote it. Raises
        nothing.
        """
        return {CHAT_KEY: self.name(chat)}

    async def attach(
        self, chat: str, conversation: str, *, place: str, details: Mapping[str, str] | None = None
    ) -> ConversationSummary:
        """Let a chat show a conversation from now on, and return what the conversation is. A chat shows one
        conversation: it leaves the one that it showed before.

        Raises:
            RemoteFault: ``not_found``: there is no such conversation.
            Unavailable: the gateway or the bus does not answer. Attach again.
        """
        view = await self._gateway.conversation(conversation)
        await self.detach(chat)
        ended = (one.turn for one in reversed(view.messages) if one.turn and one.turn != view.running)
        state = AttachedChat(
            chat=chat,
            place=place,
            conversation=conversation,
            after=next(ended, ""),
            details=dict(details or {}),
        )
        await self._begin(state)
        return view.summary

    async def detach(self, chat: str) -> bool:
        """Let a chat show nothing any more but the answers to its own messages; report whether it was attached. The
        turn that it shows is shown to its end.

        Raises:
            Unavailable: the bus does not answer. Detach again.
        """
        if (scope := self._following.pop(chat, None)) is not None:
            scope.cancel()
        was_attached = await self.attached_to(chat) is not None
        if was_attached:
            await self._ledger.records.delete(self._key(chat))
        return was_attached

    async def move(self, chat: str, to: str, place: str) -> None:
        """Let the chat ``to`` at ``place`` show what ``chat`` showed, from the same turn on: the service moved the
        chat. Raises Unavailable if the bus does not answer.
        """
        record = await self._ledger.records.get(self._key(chat), AttachedChat)
        if record is not None:
            await self.detach(chat)
            await self._begin(msgspec.structs.replace(record.value, chat=to, place=place))

    async def attached_to(self, chat: str) -> str | None:
        """Return the conversation that a chat shows. Raises Unavailable if the bus does not answer."""
        record = await self._ledger.records.get(self._key(chat), AttachedChat)
        return record.value.conversation if record is not None else None

    async def _begin(self, state: AttachedChat) -> None:
        key = self._key(state.chat)
        record = ChannelRecord(key, state, await self._ledger.records.put(key, state))
        if self._tasks is not None:
            self._tasks.start_soon(self._follow, record)

    async def _follow(self, record: ChannelRecord[AttachedChat]) -> None:
        state, revision = record.value, record.revision
        with anyio.CancelScope() as scope:
            self._following[state.chat] = scope
            async with aclosing(self._gateway.turns(state.conversation, after=state.after)) as turns:
                async for begun in turns:
                    # Whoever detaches the chat meanwhile finds the delivery recorded and shown, or not begun.
                    with anyio.CancelScope(shield=True):
                        delivery = await self._until_available(partial(self._recorded, state, begun))
                        if delivery is not None and self._tasks is not None:
                            self._tasks.start_soon(self._show_in_order, delivery)
                        state = msgspec.structs.replace(state, after=begun.turn)
                        write = partial(self._ledger.records.put, record.key, state, revision=revision)
                        try:
                            revision = await self._until_available(write)
                        except RecordChanged:
                            if not scope.cancel_called:
                                raise

    async def _recorded(self, chat: AttachedChat, begun: BegunTurn) -> OutboundDelivery | None:
        """Return the new delivery that shows a turn; None if the chat shows it already, or answers it itself."""
        if self._is_own(chat, begun):
            return None
        id = f"{_DELIVERY}{begun.turn}:{chat.chat}"
        if await self._ledger.find(id) is not None:
            return None
        details = {**chat.details, CHAT_KEY: chat.chat, ASKED: quote_message(begun, self._gateway.sentences)}
        return await self._ledger.open(
            DeliveryState(
                id=id, place=chat.place, details=details, conversation=begun.conversation, turn=begun.turn
            )
        )

    async def _until_available(self, act: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            try:
                return await act()
            except Unavailable:
                await backoff.sleep()

    async def _show_in_order(self, delivery: OutboundDelivery) -> None:
        async with self._in_order[delivery.state.details[CHAT_KEY]]:
            await self._show(delivery)

    def _is_own(self, chat: AttachedChat, begun: BegunTurn) -> bool:
        if begun.message is None or begun.channel != self._channel:
            return False
        return begun.message.metadata.get(CHAT_KEY) == self.name(chat.chat)

    def _key(self, chat: str) -> str:
        return f"{self._prefix}.{hashlib.sha256(chat.encode()).hexdigest()[:32]}"


def is_of_attached_chat(delivery: OutboundDelivery) -> bool:
    """Report whether ``AttachedChats.run`` shows this delivery. Raises nothing."""
    return delivery.state.id.startswith(_DELIVERY)


def quote_message(begun: BegunTurn, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return the message of a turn as a quotation in Markdown, with its author and channel; "" without a message.
    Raises nothing.
    """
    if begun.message is None:
        return ""
    return _quoted(describe_speaker(begun, say), begun.message)


def describe_speaker(begun: BegunTurn, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return who wrote the message of a turn, and where, such as "You, in the terminal". Raises nothing."""
    is_owner = begun.actor == "owner" or begun.actor.startswith("channel:")
    place = describe_channel(begun.channel, say)
    return (
        say("speaker.you", place=place) if is_owner else say("speaker.other", name=begun.actor, place=place)
    )


def quote_steering(message: Message, say: Sentences = ENGLISH_SENTENCES) -> str:
    """Return a message that was added to a running turn as a quotation in Markdown. Raises nothing."""
    return _quoted(say("speaker.added"), message)


def _quoted(label: str, message: Message) -> str:
    names = ", ".join(file.name for file in message.attachments)
    text = printable(message.content).strip() or names
    if len(text) > MAX_QUOTED:
        text = f"{text[:MAX_QUOTED]}…"
    return "\n".join(f"> {line}".rstrip() for line in f"**{label}:** {text}".split("\n"))
