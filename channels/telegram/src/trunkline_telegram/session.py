"""One session of the bot: from the moment at which this process has the lease until it is cancelled."""

import logging
from pathlib import Path

import anyio
from telegram.error import Conflict, TelegramError

from trunkline.api.channel import (
    AccountReport,
    AccountSession,
    ChatAccount,
    ChatMessage,
    Gateway,
    IncomingFile,
    PostRefused,
    Sentences,
    http_listener,
    serve_app,
)
from trunkline_telegram.albums import whole_albums
from trunkline_telegram.bot_api import BotApi, ChatMoved
from trunkline_telegram.bot_updates import Incoming, parse_updates
from trunkline_telegram.content import plain_contents
from trunkline_telegram.posts import TelegramPosts
from trunkline_telegram.retry_times import RetryTimes
from trunkline_telegram.settings import TelegramSettings
from trunkline_telegram.webhook_updates import UpdateReceiver

log = logging.getLogger(__name__)

WATCH_SECONDS = 20.0
"""Seconds between two looks at the webhook."""

UNREACHED = (
    "Telegram sends nothing to the owner: nobody is linked to the bot or in channels.telegram.owners, or all have "
    "blocked it."
)


class TelegramSession(AccountSession):
    """Takes messages to the gateway, and answers to Telegram."""

    def __init__(
        self,
        settings: TelegramSettings,
        gateway: Gateway,
        api: BotApi,
        account: str,
        report: AccountReport,
        times: RetryTimes,
        home: Path,
    ) -> None:
        self._home = home
        self._times = times
        self._settings = settings
        self._api = api
        self._report = report
        self._chat_posts = TelegramPosts(api, gateway.records(), account, times, gateway.file)
        super().__init__(
            gateway,
            self._chat_posts,
            ChatAccount(
                channel="telegram",
                id=account,
                owners=tuple(map(str, settings.owners)),
                unreached=UNREACHED,
                block=settings.block,
                edit_seconds=settings.edit_seconds,
            ),
            first_pause=times.first_pause,
        )

    async def receive(self) -> None:
        """Take updates in their order."""
        if self._settings.webhook_url:
            await self._receive_requests()
        else:
            await self._poll()

    async def _receive_requests(self) -> None:
        """Take the updates that Telegram sends. Each is confirmed when it is taken."""
        receiver = UpdateReceiver(self._api.webhook_secret)
        host, _, port = self._settings.listen.rpartition(":")
        listener = http_listener(
            host.strip("[]"),
            int(port),
            home=self._home,
            purpose="messages of Telegram (channels.telegram)",
            credential="the secret that Telegram was given",
        )
        with listener as listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_app, receiver.app(), listening)
                tasks.start_soon(self._watch_webhook)
                while True:
                    waiting = await receiver.next_update()
                    update = (int(waiting.raw.get("update_id", 0)), self._api.read_update(waiting.raw))
                    incoming = parse_updates([update], self._api.username, self._api.id)
                    if incoming is not None:
                        await self._take(incoming)
                    waiting.taken.set()

    async def _watch_webhook(self) -> None:
        """Report what Telegram says of the webhook."""
        while True:
            try:
                problem = await self._api.webhook_problem(self._settings.webhook_url)
            except TelegramError as error:
                problem = f"Telegram does not answer: {error}"
            if problem:
                await self._report.failing(problem)
            else:
                await self._report.serving()
            await anyio.sleep(WATCH_SECONDS)

    async def _poll(self) -> None:
        """Ask for updates, and take them in their order. The request for the next ones confirms those before, so it is
        sent last.
        """
        offset: int | None = None
        pause = self._times.first_pause
        while True:
            try:
                albums = await whole_albums(
                    self._api.updates, offset, self._settings.poll_seconds, self._times.album
                )
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
                pause = self._times.first_pause
                await self._report.serving()
                for album in albums:
                    incoming = parse_updates(album, self._api.username, self._api.id)
                    if incoming is not None:
                        await self._take(incoming)
                    offset = album[-1][0] + 1
                continue
            await anyio.sleep(pause)
            pause = min(2 * pause, self._times.longest_pause)

    async def _take(self, incoming: Incoming) -> None:
        """Bring one update to where no crash loses it."""
        if incoming.kind == "moved":
            await self.chats.move(_chat_key(incoming.chat), _chat_key(int(incoming.text)))
            await self._chat_posts.note_move(incoming.chat, int(incoming.text))
            await self.attached.move(_chat_key(incoming.chat), _chat_key(int(incoming.text)), incoming.text)
        elif incoming.kind == "button":
            await self._press(incoming)
        else:
            await self._chat_posts.note(incoming.chat, incoming.message)
            await self._hear(incoming, self._message(incoming))

    async def _hear(self, incoming: Incoming, message: ChatMessage) -> None:
        if incoming.is_private and await self.link(message, str(incoming.user), incoming.person):
            return
        if not await self._serves(incoming.user):
            await self._meet_stranger(incoming, message)
        elif incoming.is_private or self._settings.groups:
            await self.answer(message)

    async def _serves(self, user: int) -> bool:
        return user in self._settings.owners or await self.is_linked(str(user))

    async def _meet_stranger(self, incoming: Incoming, message: ChatMessage) -> None:
        """Say each sentence once to a stranger. This asks no model and keeps a bounded list."""
        key, about = ("person.private", "") if incoming.is_private else ("", "")
        if self.has_code(message):
            key, about = (
                ("person.no_code", "-code") if incoming.is_private else ("person.code_here", "-group")
            )
        if not key or not await self.chats.meet_stranger(f"{incoming.user}{about}"):
            return
        text = self.gateway.sentences(key, channel="telegram")
        try:
            await self._api.send(
                incoming.chat, plain_contents(text)[0], thread=incoming.thread, reply_to=None
            )
        except (PostRefused, TelegramError, ChatMoved) as error:
            log.info("a stranger was not answered: %s", error)

    async def _press(self, incoming: Incoming) -> None:
        allowed = await self._serves(incoming.user)
        said = await self.decide(incoming.text) if allowed else self.gateway.sentences("decision.owner")
        try:
            await self._api.answer_button(incoming.query, said)
        except TelegramError as error:
            log.info("a button was not answered: %s", error)

    def _message(self, incoming: Incoming) -> ChatMessage:
        """Return the message of an update, which is answered as a reply in groups."""
        details = {"thread": str(incoming.thread or 0)}
        if not incoming.is_private:
            details["reply_to"] = str(incoming.message)

        async def files() -> list[IncomingFile]:
            return [await self._api.download(file) for file in incoming.media]

        return ChatMessage(
            id=f"update:{incoming.update}",
            chat=_chat_key(incoming.chat, incoming.thread),
            place=str(incoming.chat),
            text=incoming.text,
            command=incoming.command,
            reply=_reply(incoming, self.gateway.sentences),
            files=files if incoming.media else None,
            details=details,
        )


def _reply(incoming: Incoming, say: Sentences) -> str:
    """Return what answers an update without an agent, "" if an agent does."""
    if incoming.kind == "edited":
        return say("message.edited")
    return say("message.unsupported", kind=incoming.text) if incoming.kind == "unsupported" else ""


def _chat_key(chat: int, thread: int | None = None) -> str:
    return f"{chat}.{thread or 0}"
