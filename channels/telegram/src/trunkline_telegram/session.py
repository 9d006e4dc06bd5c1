"""One session of the bot: from the moment at which this process has the lease until it is cancelled."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from telegram.error import Conflict, TelegramError

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import (
    DeliveryLedger,
    DeliveryState,
    Gateway,
    OutboundDelivery,
    PostRefused,
    parse_decision,
)
from trunkline.api.gateway import MessageAccepted, SendMessage
from trunkline_telegram.account_report import AccountReport
from trunkline_telegram.answer_writer import AnswerWriter, PostWriter
from trunkline_telegram.bot_api import BotApi
from trunkline_telegram.bot_updates import Incoming, parse_update
from trunkline_telegram.chats import Chats
from trunkline_telegram.commands import decide, run_command
from trunkline_telegram.content import plain_contents
from trunkline_telegram.owner_notices import OwnerNotices
from trunkline_telegram.posts import TelegramPosts
from trunkline_telegram.settings import TelegramSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to reach Telegram or the gateway: doubled each time."""

UNSUPPORTED = "I cannot read this ({}) here. Write it as text."


class TelegramSession:
    """Takes messages to the gateway, and answers to Telegram."""

    def __init__(self, settings: TelegramSettings, gateway: Gateway, api: BotApi, account: str) -> None:
        records = gateway.records()
        self._settings = settings
        self._gateway = gateway
        self._api = api
        self._account = account
        self._report = AccountReport(records, account)
        self._posts = TelegramPosts(api, records, account)
        self._ledger = DeliveryLedger(records, account, self._posts)
        self._chats = Chats(records, account, settings.block)
        self.notices = OwnerNotices(self._ledger, self._posts, settings.owners)

    async def run(self) -> None:
        """Serve until cancelled. Raises what the records raise, for example when another process goes on."""
        await self._posts.load()
        left = await self._ledger.recover()
        async with anyio.create_task_group() as tasks:
            await self._go_on(tasks, left)
            await self._poll(tasks)

    async def _go_on(self, tasks: TaskGroup, left: Sequence[OutboundDelivery]) -> None:
        """Continue what a former process left."""
        approvals = [one for one in left if "approval" in one.state.details]
        for delivery in left:
            if delivery.state.turn or "text" in delivery.state.details:
                tasks.start_soon(self._deliver, delivery)
            elif delivery not in approvals:  # a notice, whose sender was told that it may have arrived
                await delivery.settle()
                await delivery.finish()
        tasks.start_soon(self.notices.tell_of_approvals, self._gateway, approvals)

    # Messages ---------------------------------------------------------------------------------------------------

    async def _poll(self, tasks: TaskGroup) -> None:
        """Take updates in their order. The request for the next ones confirms those before, so it is sent last."""
        offset: int | None = None
        pause = FIRST_PAUSE
        while True:
            try:
                updates = await self._api.updates(offset, self._settings.poll_seconds)
            except Conflict as conflict:
                await self._report.failing("another program polls it")
                log.warning(
                    "another program polls this bot; this one tries again in %g s: %s",
                    pause,
                    conflict.message,
                )
            except TelegramError as error:
                await self._report.failing("Telegram does not answer")
                log.warning("Telegram does not answer; the next attempt is in %g s: %s", pause, error)
            else:
                pause = FIRST_PAUSE
                await self._report.serving()
                for id, update in updates:
                    incoming = parse_update(id, update, self._api.username, self._api.id) if update else None
                    if incoming is not None:
                        await self._take(tasks, incoming)
                    offset = id + 1
                continue
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _take(self, tasks: TaskGroup, incoming: Incoming) -> None:
        """Bring one update to where no crash loses it."""
        if incoming.kind == "moved":
            await self._chats.move(incoming.chat, int(incoming.text))
            await self._posts.note_move(incoming.chat, int(incoming.text))
        elif incoming.user not in self._settings.owners:
            await self._meet_stranger(incoming)
        elif incoming.kind == "button":
            await self._press(incoming)
        elif incoming.is_private or self._settings.groups:
            await self._posts.note(incoming.chat, incoming.message)
            await self._answer(tasks, incoming)

    async def _meet_stranger(self, incoming: Incoming) -> None:
        """Say once, in a private chat, that the bot serves nobody else. This asks no model and keeps a bounded list."""
        if incoming.kind == "button":
            await self._api.answer_button(incoming.query, "Only the owner decides.")
        elif incoming.is_private and await self._chats.meet_stranger(incoming.user):
            text = (
                f"This bot is private. If it is yours, add your id {incoming.user} to channels.telegram.owners in "
                "trunkline.toml and start Trunkline again."
            )
            try:
                await self._api.send(incoming.chat, plain_contents(text)[0], thread=None, reply_to=None)
            except (PostRefused, TelegramError) as error:
                log.info("a stranger was not answered: %s", error)

    async def _press(self, incoming: Incoming) -> None:
        said = await self._when_available(lambda: decide(self._gateway, incoming.text))
        try:
            await self._api.answer_button(incoming.query, said or "This button means nothing any more.")
        except TelegramError as error:
            log.info("a button was not answered: %s", error)

    async def _answer(self, tasks: TaskGroup, incoming: Incoming) -> None:
        """Record what answers a message, unless that was done before. The order makes each step harmless to repeat."""
        id = f"update:{incoming.update}"
        if await self._ledger.find(id) is not None:
            return
        details = {"thread": str(incoming.thread or 0)}
        if not incoming.is_private:
            details["reply_to"] = str(incoming.message)
        place = str(incoming.chat)
        answer = await self._when_available(lambda: self._said(incoming))
        if isinstance(answer, str):
            state = DeliveryState(id=id, place=place, details={**details, "text": answer})
        else:
            state = DeliveryState(
                id=id, place=place, details=details, conversation=answer.conversation, turn=answer.turn
            )
        tasks.start_soon(self._deliver, await self._ledger.open(state))

    async def _said(self, incoming: Incoming) -> MessageAccepted | str:
        """Return the turn that answers a message, or the text that does."""
        if incoming.kind == "unsupported":
            return UNSUPPORTED.format(incoming.text)
        if incoming.command:
            return await run_command(self._gateway, self._chats, incoming)
        if parse_decision(incoming.text) is not None and (said := await decide(self._gateway, incoming.text)):
            return said
        try:
            return await self._send(incoming)
        except RemoteFault as fault:
            return fault.message

    async def _send(self, incoming: Incoming) -> MessageAccepted:
        state = await self._chats.get(incoming.chat, incoming.thread)
        known = state.conversation
        message = SendMessage(
            content=incoming.text,
            client_id=f"telegram:{self._account}:{incoming.update}",
            conversation=known,
            block=state.block if known is None else None,
        )
        try:
            accepted = await self._gateway.send(message)
        except RemoteFault as fault:
            if known is None or fault.code != "not_found":
                raise
            forgotten = msgspec.structs.replace(state, conversation=None, turn="")
            await self._chats.put(incoming.chat, incoming.thread, forgotten)
            return await self._send(incoming)
        now = msgspec.structs.replace(state, conversation=accepted.conversation, turn=accepted.turn)
        await self._chats.put(incoming.chat, incoming.thread, now)
        return accepted

    async def _when_available(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the gateway until it answers. Meanwhile Telegram keeps what people write."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await ask()
            except Unavailable as unavailable:
                log.info("messages of Telegram wait for the gateway: %s", unavailable)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    # Answers ----------------------------------------------------------------------------------------------------

    async def _deliver(self, delivery: OutboundDelivery) -> None:
        """Show an answer to its end, however often Telegram fails meanwhile."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._show(delivery)
                return
            except PostRefused as refused:
                log.warning("an answer is not shown: %s", refused)
                await delivery.finish()
                return
            except (TelegramError, Unavailable) as error:
                log.warning("an answer is shown later, after %g s: %s", pause, error)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _show(self, delivery: OutboundDelivery) -> None:
        if delivery.state.turn:
            await AnswerWriter(self._gateway, self._posts, delivery, self._settings.edit_seconds).run()
        else:
            await PostWriter(self._posts, delivery).show(plain_contents(delivery.state.details["text"]))
            await delivery.finish()
