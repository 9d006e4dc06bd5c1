"""One session of the app: from the moment at which this process has the lease until it is cancelled."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import msgspec

from trunkline.api.channel import (
    AccountReport,
    AccountSession,
    ChatAccount,
    ChatMessage,
    Gateway,
    PostRefused,
    Sentences,
    parse_chat_command,
)
from trunkline_slack.bot import AWAY, SlackBot
from trunkline_slack.bot_events import Connected, SlackMessage, SlackPress
from trunkline_slack.content import plain_contents
from trunkline_slack.posts import SlackPosts
from trunkline_slack.settings import SlackSettings

log = logging.getLogger(__name__)

REPORT_SECONDS = 20.0
"""Seconds between two looks at the connection, for ``trunkline doctor``."""

MARGIN = 60.0
"""Seconds before the last seen message from which missed messages are read: in other channels they may be older."""

LONGEST_ABSENCE = 86_400.0
"""Seconds of an absence of which missed messages are read."""

MAX_THREADS = 50
"""Threads in which missed messages are looked for: those in which the owner spoke last."""

UNREACHED = (
    "Slack sends nothing to the owner: nobody is linked to the bot, and nobody in channels.slack.owners accepts its "
    "direct messages."
)


class SeenMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The time of the newest message that the gateway has, of all channels: Slack's times grow. ``threads`` are those
    in which the owner spoke, the newest last, as ``CHANNEL:TIME``.
    """

    newest: float = 0.0
    threads: tuple[str, ...] = ()


class SlackSession(AccountSession):
    """Takes messages to the gateway, and answers to Slack."""

    def __init__(
        self, settings: SlackSettings, gateway: Gateway, bot: SlackBot, account: str, report: AccountReport
    ) -> None:
        self._settings = settings
        self._bot = bot
        self._report = report
        self._records = gateway.records()
        self._seen_key = f"seen.{account}"
        self._seen = SeenMessages()
        self._slack_posts = SlackPosts(bot, gateway.file)
        super().__init__(
            gateway,
            self._slack_posts,
            ChatAccount(
                channel="slack",
                id=account,
                owners=tuple(bot.dms.values()),
                unreached=UNREACHED,
                block=settings.block,
                edit_seconds=settings.edit_seconds,
            ),
        )

    async def run(self, *, started: Callable[[], Awaitable[None]]) -> None:
        """Serve as every session does. Raises ConfigError if Slack refuses a token, however many calls fail by that."""
        try:
            await super().run(started=started)
        except Exception:
            self._bot.raise_refused()
            raise

    async def receive(self) -> None:
        """Take events in their order."""
        record = await self._records.get(self._seen_key, SeenMessages)
        if record is not None:
            self._seen = record.value
        else:
            await self._note_seen(time.time() - MARGIN)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._bot.until_refused)
            tasks.start_soon(self._report_state)
            while True:
                event = await self._bot.next_event()
                match event:
                    case Connected():
                        await self._read_missed()
                    case SlackPress():
                        tasks.start_soon(self._answer_press, event)
                    case SlackMessage():
                        await self._take(event)
                        await self._bot.confirm(event.envelope)

    async def _report_state(self) -> None:
        while True:
            if await self._bot.is_connected():
                await self._report.serving()
            else:
                await self._report.failing("Slack is not connected")
            await anyio.sleep(REPORT_SECONDS)

    # Messages ---------------------------------------------------------------------------------------------------

    async def _read_missed(self) -> None:
        """Take what was written while nothing was connected, in its order: what is read in part is read again."""
        since = f"{max(self._seen.newest - MARGIN, time.time() - LONGEST_ABSENCE):.6f}"
        linked = await self._when_available(self.gateway.senders)
        private = {*self._bot.dms.values(), *(one.place for one in linked)}
        threads = dict.fromkeys(self._seen.threads)
        found: list[SlackMessage] = []
        channels = await self._bot.channels() if self._settings.mentions else []
        for channel in (*private, *channels):
            messages, began = await self._bot.missed(channel, "", since, is_private=channel in private)
            found += messages
            threads |= dict.fromkeys(f"{channel}:{ts}" for ts in began)
        for name in threads:
            channel, _, thread = name.partition(":")
            if channel in private or channel in channels:
                messages, _ = await self._bot.missed(channel, thread, since, is_private=channel in private)
                found += messages
        for incoming in sorted(found, key=lambda one: float(one.ts)):
            await self._take(incoming)

    async def _take(self, incoming: SlackMessage) -> None:
        """Bring one message to where no crash loses it."""
        message = _message(incoming, self.gateway.sentences)
        private = replace(message, place=incoming.channel)
        if incoming.is_private and await self.link(private, incoming.user, incoming.user):
            return
        if not await self._serves(incoming.user):
            await self._meet_stranger(incoming, message)
        elif incoming.is_private or self._settings.mentions:
            self._slack_posts.note(incoming.ts)
            await self.answer(message)
            await self._note_seen(float(incoming.ts), _thread_of(incoming))

    async def _serves(self, user: str) -> bool:
        return user in self._settings.owners or await self.is_linked(user)

    async def _note_seen(self, newest: float, thread: str = "") -> None:
        """Remember how far messages were taken, and the thread."""
        threads = self._seen.threads
        if thread and (not threads or threads[-1] != thread):
            threads = (*(one for one in threads if one != thread), thread)[-MAX_THREADS:]
        seen = SeenMessages(newest=max(newest, self._seen.newest), threads=threads)
        if seen != self._seen:
            self._seen = seen
            await self._records.put(self._seen_key, seen)

    async def _meet_stranger(self, incoming: SlackMessage, message: ChatMessage) -> None:
        """Say each sentence once to a stranger, in direct messages. This asks no model and keeps a bounded list."""
        key, about = ("person.no_code", "-code") if self.has_code(message) else ("person.private", "")
        text = self.gateway.sentences(key, channel="slack")
        if incoming.is_private and await self.chats.meet_stranger(f"{incoming.user}{about}"):
            try:
                await self._bot.send(incoming.channel, "", plain_contents(text)[0], nonce="")
            except (PostRefused, *AWAY) as error:
                log.info("a stranger was not answered: %s", error)

    async def _answer_press(self, press: SlackPress) -> None:
        await self._bot.answer_press(press.reply_url, await self._said_to(press))

    async def _said_to(self, press: SlackPress) -> str:
        """Carry out a press or a command, and return what to say."""
        if not await self._serves(press.user):
            return self.gateway.sentences("decision.owner")
        if not press.is_command:
            return await self.decide(press.words)
        command, _, words = press.words.removeprefix("/").partition(" ")
        return await self.run_command(
            ChatMessage(
                id=f"command:{press.id}",
                chat=press.channel.lower(),
                place=press.channel,
                text=words.strip(),
                command=command.lower() or "help",
            )
        )


def _thread_of(incoming: SlackMessage) -> str:
    """Return the thread in which a message is answered, as ``CHANNEL:TIME``: in channels the one that it begins; ""
    for direct messages outside of threads.
    """
    thread = incoming.thread or ("" if incoming.is_private else incoming.ts)
    return f"{incoming.channel}:{thread}" if thread else ""


def _message(incoming: SlackMessage, say: Sentences) -> ChatMessage:
    command, text = parse_chat_command(incoming.text)
    place = _thread_of(incoming) or incoming.channel
    return ChatMessage(
        id=f"message:{incoming.channel}:{incoming.ts}",
        chat=place.lower().replace(".", "-").replace(":", "."),
        place=place,
        text=text,
        command=command,
        reply=say("message.unsupported", kind=incoming.content) if incoming.content else "",
    )
