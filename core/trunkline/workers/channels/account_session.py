"""One session of a chat service: from the moment at which this process has the lease until it is cancelled."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline.contracts.auth.pairing_codes import is_short_code
from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.errors import Unavailable
from trunkline.workers.channels.answer_writer import AnswerWriter, PostWriter
from trunkline.workers.channels.approval_text import parse_decision
from trunkline.workers.channels.attached_chats import CHAT_KEY, AttachedChats, is_of_attached_chat
from trunkline.workers.channels.chat_account import ChatAccount
from trunkline.workers.channels.chat_commands import decide_by_words, run_chat_command
from trunkline.workers.channels.chat_message import ChatMessage
from trunkline.workers.channels.chat_posts import ChatPosts
from trunkline.workers.channels.chats import Chats
from trunkline.workers.channels.delivery_ledger import (
    DeliveryLedger,
    DeliveryState,
    OutboundDelivery,
    PostRefused,
)
from trunkline.workers.channels.incoming_files import FileRefused, message_with_files
from trunkline.workers.channels.owner_notices import OwnerNotices, is_remembered_notice
from trunkline_bus import RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to reach the service or the gateway: doubled each time."""


class AccountSession(ABC):
    """Takes messages of the owner to the gateway, and answers to the service. A subclass implements ``receive``.

    Guarantees: a message that is delivered twice begins one turn and is answered once. What a former process left is
    continued. While the gateway or the service is away, answers wait.

    Not guaranteed: the order of answers in different chats.

    ``first_pause`` is the pause in seconds before the second attempt to reach the service or the gateway.
    """

    def __init__(
        self, gateway: Gateway, posts: ChatPosts, account: ChatAccount, *, first_pause: float = FIRST_PAUSE
    ) -> None:
        records = gateway.records()
        self._first_pause = first_pause
        self.gateway = gateway
        self.chats = Chats(records, account.id, account.block)
        self._account = account
        self._posts = posts
        self._ledger = DeliveryLedger(records, account.id, posts)
        self.attached = AttachedChats(gateway, self._ledger, account.channel, account.id, self._deliver)
        self._notices = OwnerNotices(self._ledger, posts, account, gateway)
        self._tasks: TaskGroup

    @abstractmethod
    async def receive(self) -> None:
        """Pass each message of the owner to ``answer``, in their order, and confirm it to the service afterwards.
        Return only when cancelled.

        Raises:
            Exception: the channel fails, and is started again as stated for ``Channel.run``.
        """

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Serve until cancelled. ``started`` is called when texts can be sent.

        Raises:
            Unavailable: the bus does not answer.
            RecordChanged: another process goes on.
            Exception: what ``receive`` raises.
        """
        await self._posts.load()
        left = await self._ledger.recover()
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            await self._go_on(left)
            await started()
            await self.receive()

    async def _go_on(self, left: Sequence[OutboundDelivery]) -> None:
        """Continue what a former process left."""
        approvals = [one for one in left if "approval" in one.state.details]
        self._tasks.start_soon(self.attached.run, left)
        for delivery in left:
            if is_of_attached_chat(delivery) or is_remembered_notice(delivery):
                continue  # whoever follows the chat, or sent the notice, goes on with it
            if delivery.state.turn or "text" in delivery.state.details:
                self._tasks.start_soon(self._deliver, delivery)
            elif delivery not in approvals:  # a notice, whose sender was told that it may have arrived
                self._tasks.start_soon(self._give_up, delivery)
        self._tasks.start_soon(self._notices.tell_of_approvals, approvals)

    async def tell(self, text: str, id: str = "") -> None:
        """Send a text to the owner. A text with an ``id`` is sent once, however often this is called with the id.

        Raises:
            Unavailable: no chat of the owner accepts it.
            Exception: the service does not answer; the text may have been sent.
        """
        await self._notices.tell(text, id)

    async def decide(self, words: str) -> str:
        """Carry out the words of a button, and return what to say. Waits while the gateway is away. Raises nothing."""
        said = await self._when_available(lambda: decide_by_words(self.gateway, words))
        return said or self.gateway.sentences("button.unknown")

    async def run_command(self, message: ChatMessage) -> str:
        """Carry out a command that is answered beside the chat, and return what to say. Waits while the gateway is
        away. Raises nothing.
        """
        return await self._when_available(
            lambda: run_chat_command(self.gateway, self.chats, self.attached, message)
        )

    async def is_linked(self, sender: str) -> bool:
        """Report whether a pairing code has linked this sender to the owner. Waits while the gateway is away. Raises
        nothing.
        """
        return any(one.sender == sender for one in await self._when_available(self.gateway.senders))

    def has_code(self, message: ChatMessage) -> bool:
        """Report whether a message has the form of a pairing code, also after ``/start``. Raises nothing."""
        return message.command in ("", "start") and not message.reply and is_short_code(message.text)

    async def link(self, message: ChatMessage, sender: str, name: str) -> bool:
        """Link the sender of a message in a private chat by the pairing code that it is, and say so; report whether the
        code counts. Waits while the gateway is away. Raises as ``answer`` does.
        """
        if not self.has_code(message):
            return False
        linked = await self._when_available(
            lambda: self.gateway.link_sender(message.text, sender, message.place, name)
        )
        if linked:
            await self.answer(replace(message, command="", reply=self.gateway.sentences("person.linked")))
            self._tasks.start_soon(self._notices.show_waiting, message.place)
        return linked

    async def answer(self, message: ChatMessage) -> None:
        """Record what answers a message, unless that was done before. After this no crash loses the message. The order
        of the steps makes each harmless to repeat. Waits while the gateway is away.

        Raises:
            Unavailable: the bus does not answer.
            RecordChanged: another process goes on.
        """
        if await self._ledger.find(message.id) is not None:
            return
        details = {**message.details, CHAT_KEY: message.chat}
        said = await self._when_available(lambda: self._said(message))
        if isinstance(said, str):
            state = DeliveryState(id=message.id, place=message.place, details={**details, "text": said})
        else:
            state = DeliveryState(
                id=message.id,
                place=message.place,
                details=details,
                conversation=said.conversation,
                turn=said.turn,
            )
        self._tasks.start_soon(self._deliver, await self._ledger.open(state))

    async def _said(self, message: ChatMessage) -> MessageAccepted | str:
        """Return the turn that answers a message, or the text that does."""
        if message.reply:
            return message.reply
        if message.command:
            return await run_chat_command(self.gateway, self.chats, self.attached, message)
        if parse_decision(message.text, say=self.gateway.sentences) is not None:
            said = await decide_by_words(self.gateway, message.text)
            if said:
                return said
        try:
            return await self._send(message)
        except FileRefused as refused:
            return self.gateway.sentences.translate(refused.sentence)
        except RemoteFault as fault:
            return self.gateway.sentences.translate(fault.message)

    async def _send(self, message: ChatMessage) -> MessageAccepted:
        state = await self.chats.get(message.chat)
        known = state.conversation
        wanted = SendMessage(
            content=message.text,
            client_id=f"{self._account.channel}:{self._account.id}:{message.id}",
            conversation=known,
            block=state.block if known is None else None,
            metadata=self.attached.metadata(message.chat),
        )
        if message.files is not None:
            files = await message.files()
            wanted = await message_with_files(
                wanted, files, self.gateway.abilities(state.block), self.gateway.sentences
            )
        try:
            accepted = await self.gateway.send(wanted)
        except RemoteFault as fault:
            if known is None or fault.code != "not_found":
                raise
            await self.attached.detach(message.chat)
            await self.chats.put(message.chat, msgspec.structs.replace(state, conversation=None, turn=""))
            return await self._send(message)
        now = msgspec.structs.replace(state, conversation=accepted.conversation, turn=accepted.turn)
        await self.chats.put(message.chat, now)
        return accepted

    async def _when_available(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the gateway until it answers. Meanwhile the service keeps what people write."""
        pause = Backoff(self._first_pause, LONGEST_PAUSE)
        while True:
            try:
                return await ask()
            except Unavailable as unavailable:
                log.info("messages of %s wait for the gateway: %s", self._account.channel, unavailable)
            await pause.sleep()

    async def _deliver(self, delivery: OutboundDelivery) -> None:
        """Show an answer to its end, however often the service fails meanwhile."""
        await self._until_done(delivery, lambda: self._show(delivery))

    async def _give_up(self, delivery: OutboundDelivery) -> None:
        """Find out what became of a notice, and send no more of it."""

        async def settle() -> None:
            await delivery.settle()
            await delivery.finish()

        await self._until_done(delivery, settle)

    async def _until_done(self, delivery: OutboundDelivery, act: Callable[[], Awaitable[None]]) -> None:
        pause = Backoff(self._first_pause, LONGEST_PAUSE)
        passing: tuple[type[Exception], ...] = (*self._posts.away, Unavailable)
        while True:
            try:
                await act()
                return
            except PostRefused as refused:
                log.warning("an answer is not shown: %s", refused)
                await delivery.finish()
                return
            except passing as error:
                log.warning("an answer is shown later, after %g s: %s", pause.delay, error)
            await pause.sleep()

    async def _show(self, delivery: OutboundDelivery) -> None:
        state = delivery.state
        if state.turn:
            chat = self.attached.name(state.details.get(CHAT_KEY, ""))
            await AnswerWriter(self.gateway, self._posts, delivery, self._account.edit_seconds, chat).run()
        else:
            await PostWriter(self._posts, delivery).show(self._posts.plain(delivery.state.details["text"]))
            await delivery.finish()
