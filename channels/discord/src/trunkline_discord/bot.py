"""The bot: the calls and events of Discord that this channel uses, with Discord's errors as what they mean for it."""

import logging
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

import aiohttp
import anyio
import hikari

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import FileRefused, IncomingFile, PostRefused, Sentences
from trunkline_discord.bot_events import (
    DiscordMessage,
    Event,
    Press,
    SessionBegan,
    own_roles,
    parse_message,
    parse_server,
    words_of,
)
from trunkline_discord.content import DiscordContent
from trunkline_discord.settings import DiscordSettings

log = logging.getLogger(__name__)

INTENTS = (
    hikari.Intents.GUILDS
    | hikari.Intents.GUILD_MESSAGES
    | hikari.Intents.DM_MESSAGES
    | hikari.Intents.MESSAGE_CONTENT
)
"""The events that Discord shall send. The last one must be permitted on the page of the application."""

DISALLOWED_INTENTS, REFUSED_TOKEN = 4014, 4004
"""Codes with which Discord closes a connection."""

REFUSALS = (hikari.BadRequestError, hikari.ForbiddenError, hikari.NotFoundError)
"""Discord's answers to a call that it will always refuse."""

FILE_TOO_LARGE = 413
"""Discord's status for a file that it does not take."""

IN_ROW = 5
"""Buttons in a row."""

MAX_LABEL = 80
"""Characters of a button's label."""

FILE_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest file that is passed on."""

TOO_LARGE = "This file is larger than 20 MB. Send a smaller one, or put it into the workspace."

MAX_MISSED = 500
"""Messages of one channel that are read after an absence."""


class DiscordBot:
    """The connection of one bot. Use it as an asynchronous context manager; ``next_event`` returns what happened.

    The library connects again, resumes sessions, and waits where Discord limits a call. Methods raise
    hikari.HTTPError when Discord does not answer or answers in another way than expected.
    """

    def __init__(self, settings: DiscordSettings, say: Sentences | None = None) -> None:
        self._settings = settings
        self._say = say or Sentences()
        self._bot = hikari.GatewayBot(
            settings.reveal_token(),
            banner=None,
            logs=None,
            suppress_optimization_warning=True,
            auto_chunk_members=False,
            cache_settings=hikari.impl.CacheSettings(components=hikari.api.CacheComponents.NONE),
            intents=INTENTS,
            rest_url=settings.api_url.rstrip("/"),
        )
        self._send_event, self._events = anyio.create_memory_object_stream[Event](math.inf)
        self.id = 0
        self._application = 0
        self._roles: set[int] = set()
        self.dms: dict[int, int] = {}
        """The channels of the owner's direct messages, by user."""

    async def __aenter__(self) -> "DiscordBot":
        """Sign in and connect. Raises ConfigError if Discord refuses the token or the intents."""
        self._bot.subscribe(hikari.ShardReadyEvent, self._on_ready)
        self._bot.subscribe(hikari.ShardPayloadEvent, self._on_payload)
        self._bot.subscribe(hikari.MessageCreateEvent, self._on_message)
        self._bot.subscribe(hikari.InteractionCreateEvent, self._on_interaction)
        try:
            await self._bot.start(check_for_updates=False)
            await self._open_direct_messages()
        except BaseException as error:
            await self._close()
            if isinstance(error, Exception):
                self._raise_refused(error)
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(5, shield=True):
            if self._bot.is_alive:
                await self._bot.close()

    def _raise_refused(self, error: Exception) -> None:
        """Raise ConfigError if Discord refused the token or the intents."""
        code = getattr(error, "code", None)
        if isinstance(error, hikari.UnauthorizedError) or code == REFUSED_TOKEN:
            raise ConfigError(
                f"channels.discord.token: Discord refuses the bot's token in {self._settings.variable}.",
                hint="It may have been reset. Copy the current one from the page Bot of your application at "
                "discord.com/developers, set the variable, and start again.",
            ) from None
        if code == DISALLOWED_INTENTS:
            raise ConfigError(
                "channels.discord: Discord does not permit the bot to read messages.",
                hint="Switch on Message Content Intent on the page Bot of your application at discord.com/developers, "
                "and start again.",
            ) from None

    async def _open_direct_messages(self) -> None:
        for owner in self._settings.owners:
            try:
                self.dms[owner] = int((await self._bot.rest.create_dm_channel(owner)).id)
            except REFUSALS as refused:
                log.warning("Discord opens no direct messages with the owner %d: %s", owner, refused)

    # Events -----------------------------------------------------------------------------------------------------

    async def next_event(self) -> Event:
        """Return the next event, in the order in which Discord sent them."""
        return await self._events.receive()

    async def until_closed(self) -> NoReturn:
        """Wait until the connection ends for good. Raises ConfigError as the context manager does, and
        hikari.GatewayError otherwise.
        """
        try:
            await self._bot.join()
        except hikari.GatewayError as error:
            self._raise_refused(error)
            raise
        raise hikari.GatewayError("The connection to Discord was closed.")

    @property
    def is_connected(self) -> bool:
        """Report whether events arrive now."""
        return any(shard.is_connected for shard in self._bot.shards.values())

    async def _on_ready(self, event: hikari.ShardReadyEvent) -> None:
        self.id, self._application = int(event.my_user.id), int(event.application_id)
        self._send_event.send_nowait(SessionBegan(frozenset(map(int, event.unavailable_guilds))))

    async def _on_payload(self, event: hikari.ShardPayloadEvent) -> None:
        if event.name == "GUILD_CREATE":
            self._roles |= own_roles(event.payload, self.id)
            self._send_event.send_nowait(parse_server(event.payload))

    async def _on_message(self, event: hikari.MessageCreateEvent) -> None:
        is_private = isinstance(event, hikari.DMMessageCreateEvent)
        incoming = self._parse(event.message, is_private=is_private)
        if incoming is not None:
            self._send_event.send_nowait(incoming)

    def _parse(self, message: hikari.Message, *, is_private: bool) -> DiscordMessage | None:
        return parse_message(message, self.id, self._roles, is_private=is_private)

    async def _on_interaction(self, event: hikari.InteractionCreateEvent) -> None:
        """Acknowledge a press or a command at once, because Discord waits only three seconds."""
        interaction = event.interaction
        if not isinstance(interaction, hikari.ComponentInteraction | hikari.CommandInteraction):
            return
        ephemeral = hikari.MessageFlag.EPHEMERAL
        try:
            if int(interaction.user.id) not in self._settings.owners:
                await interaction.create_initial_response(
                    hikari.ResponseType.MESSAGE_CREATE, self._say("decision.owner"), flags=ephemeral
                )
                return
            await interaction.create_initial_response(
                hikari.ResponseType.DEFERRED_MESSAGE_CREATE, flags=ephemeral
            )
        except hikari.HTTPError as error:
            log.info("a press or command was not acknowledged: %s", error)
            return
        channel = int(interaction.channel.id)
        if isinstance(interaction, hikari.ComponentInteraction):
            press = Press(interaction, channel, interaction.custom_id)
        else:
            press = Press(interaction, channel, words_of(interaction), interaction.command_name)
        self._send_event.send_nowait(press)

    # Calls ------------------------------------------------------------------------------------------------------

    async def set_commands(self, commands: Mapping[str, str]) -> None:
        """Set the bot's slash commands, unless they are set already: Discord limits how often."""
        words = hikari.CommandOption(
            type=hikari.OptionType.STRING,
            name="words",
            description="What follows the command",
            is_required=False,
        )
        known = await self._bot.rest.fetch_application_commands(self._application)
        if {one.name: getattr(one, "description", "") for one in known} == dict(commands):
            return
        wanted = [
            self._bot.rest.slash_command_builder(name, text).add_option(words)
            for name, text in commands.items()
        ]
        await self._bot.rest.set_application_commands(self._application, wanted)

    async def send(
        self, channel: int, content: DiscordContent, data: bytes = b"", *, nonce: str, reply_to: int | None
    ) -> int:
        """Send a message and return its id. ``data`` is the content of its file. For some minutes the same nonce gives
        the same message. Raises PostRefused if Discord refuses it.
        """
        file = content.file
        shown = hikari.Bytes(data, file.name, file.media_type) if file is not None else hikari.UNDEFINED
        try:
            message = await self._bot.rest.create_message(
                channel,
                content.text or hikari.UNDEFINED,
                attachment=shown,
                components=self._rows(content),
                nonce=nonce or hikari.UNDEFINED,
                reply=reply_to or hikari.UNDEFINED,
                reply_must_exist=False if reply_to else hikari.UNDEFINED,
                flags=hikari.MessageFlag.SUPPRESS_EMBEDS,
                mentions_everyone=False,
                mentions_reply=False,
                user_mentions=False,
                role_mentions=False,
            )
        except (*REFUSALS, hikari.ClientHTTPResponseError) as refused:
            if not isinstance(refused, REFUSALS) and refused.status != FILE_TOO_LARGE:
                raise
            raise PostRefused(f"Discord refuses a message to the channel {channel}: {refused}") from refused
        return int(message.id)

    async def find_own(self, channel: int, after: int, nonce: str) -> int | None:
        """Return the first message of the bot in a channel after ``after`` that may have this nonce."""
        try:
            async for message in self._bot.rest.fetch_messages(channel, after=after).limit(MAX_MISSED):
                own = message.author.id == self.id and message.interaction_metadata is None
                if own and message.nonce in (None, nonce):
                    return int(message.id)
        except REFUSALS as refused:
            log.warning("the messages of channel %d cannot be read: %s", channel, refused)
        return None

    async def missed(self, channel: int, after: int, *, is_private: bool) -> Sequence[DiscordMessage]:
        """Return the messages after ``after`` that are addressed to the bot, none where it may not read them."""
        found = []
        try:
            async for message in self._bot.rest.fetch_messages(channel, after=after).limit(MAX_MISSED):
                incoming = self._parse(message, is_private=is_private)
                if incoming is not None:
                    found.append(incoming)
        except REFUSALS as refused:
            log.info("the messages of channel %d cannot be read: %s", channel, refused)
        return found

    async def download(self, file: hikari.Attachment, *, is_voice: bool) -> IncomingFile:
        """Return a file of a message.

        Raises:
            FileRefused: the file is too large, or no longer there.
            Unavailable: Discord does not answer now.
        """
        if file.size > FILE_LIMIT:
            raise FileRefused(TOO_LARGE)
        try:
            data = await file.read()
        except REFUSALS as refused:
            log.info("a file was not read: %s", refused)
            raise FileRefused("Discord no longer has this file. Send it again.") from refused
        except (hikari.HTTPError, aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable("Discord does not return a file now.") from error
        return IncomingFile(file.filename, file.media_type or "application/octet-stream", data, is_voice)

    async def edit(self, channel: int, message: int, content: DiscordContent) -> None:
        """Change a message of the bot, if it exists."""
        try:
            await self._bot.rest.edit_message(
                channel,
                message,
                content.text,
                components=self._rows(content),
                mentions_everyone=False,
                user_mentions=False,
                role_mentions=False,
            )
        except REFUSALS as refused:
            log.info("a message of channel %d was not changed: %s", channel, refused)

    async def delete(self, channel: int, message: int) -> None:
        """Delete a message of the bot, if it exists."""
        try:
            await self._bot.rest.delete_message(channel, message)
        except REFUSALS as refused:
            log.info("a message of channel %d was not deleted: %s", channel, refused)

    async def show_typing(self, channel: int) -> None:
        """Show that the bot is writing, for ten seconds. Does nothing if that fails."""
        try:
            await self._bot.rest.trigger_typing(channel)
        except hikari.HTTPError as error:
            log.debug("no typing is shown in channel %d: %s", channel, error)

    async def answer_press(self, press: Press, text: str) -> None:
        """Show a text to the person who pressed a button or gave a command. Does nothing if that is too long ago."""
        try:
            await press.interaction.edit_initial_response(text, user_mentions=False, role_mentions=False)
        except hikari.HTTPError as error:
            log.info("a press or command was not answered: %s", error)

    def _rows(self, content: DiscordContent) -> list[hikari.api.MessageActionRowBuilder]:
        rows = []
        for start in range(0, len(content.buttons), IN_ROW):
            row = self._bot.rest.build_message_action_row()
            for label, words in content.buttons[start : start + IN_ROW]:
                row.add_interactive_button(hikari.ButtonStyle.SECONDARY, words, label=label[:MAX_LABEL])
            rows.append(row)
        return rows
