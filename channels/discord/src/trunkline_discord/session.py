"""One session of the bot: from the moment at which this process has the lease until it is cancelled."""

import logging
import time

import anyio
import msgspec

from trunkline.api.channel import (
    AccountReport,
    AccountSession,
    ChatAccount,
    ChatMessage,
    Gateway,
    IncomingFile,
    PostRefused,
    command_menu,
    parse_chat_command,
)
from trunkline_discord.bot import DiscordBot
from trunkline_discord.bot_events import DiscordMessage, Press, ServerSeen, SessionBegan
from trunkline_discord.content import plain_contents
from trunkline_discord.posts import DiscordPosts
from trunkline_discord.settings import DiscordSettings

log = logging.getLogger(__name__)

REPORT_SECONDS = 20.0
"""Seconds between two looks at the connection, for ``trunkline doctor``."""

MARGIN = 60.0
"""Seconds before the last seen message from which missed messages are read: in other channels they may be older."""

LONGEST_ABSENCE = 86_400.0
"""Seconds of an absence of which missed messages are read."""

DISCORD_EPOCH = 1_420_070_400_000
"""Milliseconds from 1970 to the time of Discord's id 0."""

UNREACHED = (
    "Discord sends nothing to the owner: nobody in channels.discord.owners shares a server with the bot and accepts "
    "its direct messages."
)


class SeenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The newest message that the gateway has, of all channels: Discord's ids grow with the time."""

    id: int


class DiscordSession(AccountSession):
    """Takes messages to the gateway, and answers to Discord."""

    def __init__(
        self,
        settings: DiscordSettings,
        gateway: Gateway,
        bot: DiscordBot,
        account: str,
        report: AccountReport,
    ) -> None:
        self._settings = settings
        self._bot = bot
        self._report = report
        self._records = gateway.records()
        self._seen_key = f"seen.{account}"
        self._seen = 0
        self._since = 0
        self._unread: frozenset[int] = frozenset()
        self._channel_posts = DiscordPosts(bot, self._records, account, gateway.file)
        super().__init__(
            gateway,
            self._channel_posts,
            ChatAccount(
                channel="discord",
                id=account,
                owners=tuple(str(channel) for channel in bot.dms.values()),
                unreached=UNREACHED,
                block=settings.block,
                edit_seconds=settings.edit_seconds,
            ),
        )

    async def receive(self) -> None:
        """Take events in their order. The error with which the connection ends for good is passed on."""
        record = await self._records.get(self._seen_key, SeenMessage)
        self._seen = record.value.id if record is not None else 0
        if not self._seen:
            await self._note_seen(_id_at(time.time() - MARGIN))
        await self._bot.set_commands(command_menu(self.gateway.sentences))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._bot.until_closed)
            tasks.start_soon(self._report_state)
            while True:
                event = await self._bot.next_event()
                match event:
                    case SessionBegan():
                        await self._read_missed(event)
                    case ServerSeen():
                        await self._read_server(event)
                    case Press():
                        await self._bot.answer_press(event, await self._said_to(event))
                    case DiscordMessage():
                        await self._take(event)

    async def _report_state(self) -> None:
        while True:
            if self._bot.is_connected:
                await self._report.serving()
            else:
                await self._report.failing("Discord is not connected")
            await anyio.sleep(REPORT_SECONDS)

    # Messages ---------------------------------------------------------------------------------------------------

    async def _read_missed(self, began: SessionBegan) -> None:
        """Read the direct messages that were missed. Those of servers follow, when Discord has told their channels."""
        self._since = max(self._seen - _duration(MARGIN), _id_at(time.time() - LONGEST_ABSENCE))
        self._unread = began.servers if self._settings.servers else frozenset()
        for channel in self._bot.dms.values():
            for incoming in await self._bot.missed(channel, self._since, is_private=True):
                await self._take(incoming)

    async def _read_server(self, server: ServerSeen) -> None:
        if server.server not in self._unread:
            return
        for channel, newest in server.newest.items():
            if newest > self._since:
                for incoming in await self._bot.missed(channel, self._since, is_private=False):
                    await self._take(incoming)
        self._unread -= {server.server}

    async def _take(self, incoming: DiscordMessage) -> None:
        """Bring one message to where no crash loses it."""
        if incoming.user not in self._settings.owners:
            await self._meet_stranger(incoming)
        elif incoming.is_private or self._settings.servers:
            self._channel_posts.note(incoming.channel, incoming.message)
            await self.answer(self._message(incoming))
        await self._note_seen(incoming.message)

    async def _note_seen(self, message: int) -> None:
        """Remember how far messages were taken. While a server is unread, older ones of it may be left."""
        if message > self._seen and not self._unread:
            self._seen = message
            await self._records.put(self._seen_key, SeenMessage(id=message))

    async def _meet_stranger(self, incoming: DiscordMessage) -> None:
        """Say once, in direct messages, that the bot serves nobody else. This asks no model."""
        if incoming.is_private and await self.chats.meet_stranger(str(incoming.user)):
            text = self.gateway.sentences("person.private.id", id=incoming.user, channel="discord")
            try:
                await self._bot.send(incoming.channel, plain_contents(text)[0], nonce="", reply_to=None)
            except (PostRefused, *DiscordPosts.away) as error:
                log.info("a stranger was not answered: %s", error)

    def _message(self, incoming: DiscordMessage) -> ChatMessage:
        """Return the owner's message, which is answered as a reply in servers."""
        command, text = parse_chat_command(incoming.text)
        unsupported = self.gateway.sentences("message.unsupported", kind=incoming.content)

        async def files() -> list[IncomingFile]:
            return [await self._bot.download(file, is_voice=incoming.is_voice) for file in incoming.files]

        return ChatMessage(
            id=f"message:{incoming.message}",
            chat=str(incoming.channel),
            place=str(incoming.channel),
            text=text,
            command=command,
            reply=unsupported if incoming.content else "",
            files=files if incoming.files else None,
            details={} if incoming.is_private else {"reply_to": str(incoming.message)},
        )

    async def _said_to(self, press: Press) -> str:
        """Carry out a press or a command, and return what to say."""
        if press.command:
            channel = str(press.channel)
            text = await self.run_command(
                ChatMessage(
                    id=f"interaction:{press.interaction.id}",
                    chat=channel,
                    place=channel,
                    text=press.words,
                    command=press.command,
                )
            )
        else:
            text = await self.decide(press.words)
        return plain_contents(text)[0].text


def _id_at(seconds: float) -> int:
    """Return the first id of Discord at a time."""
    return max(0, int(seconds * 1000) - DISCORD_EPOCH) << 22


def _duration(seconds: float) -> int:
    return int(seconds * 1000) << 22
