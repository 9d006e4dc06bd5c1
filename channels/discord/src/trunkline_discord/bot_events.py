"""The events of Discord, and what each asks of this channel. Pure."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import hikari

REPLY_TYPES = (hikari.MessageType.DEFAULT, hikari.MessageType.REPLY)
"""The types of messages that people write."""


@dataclass(frozen=True, slots=True)
class DiscordMessage:
    """A message that is addressed to the bot. ``content`` is "" or names what it has instead of text and files.
    ``is_voice`` marks a message whose file is a voice message.
    """

    message: int
    channel: int
    user: int
    text: str
    is_private: bool
    content: str = ""
    files: tuple[hikari.Attachment, ...] = ()
    is_voice: bool = False


@dataclass(frozen=True, slots=True)
class SessionBegan:
    """Discord began a new session, so events may have been missed. ``servers`` are those whose channels follow."""

    servers: frozenset[int]


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """A server, with the newest message of each of its channels and threads that has one."""

    server: int
    newest: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Press:
    """A press of a button, or a slash command, which is acknowledged. ``words`` are those of the button, or what
    follows the command.
    """

    interaction: hikari.ComponentInteraction | hikari.CommandInteraction
    channel: int
    words: str
    command: str = ""


Event = DiscordMessage | SessionBegan | ServerSeen | Press


def parse_message(
    message: hikari.Message, bot: int, roles: Collection[int], *, is_private: bool
) -> DiscordMessage | None:
    """Return what a message asks for; None if it is not addressed to the bot, which has these roles of its own."""
    if message.author.is_bot or message.author.is_system or message.type not in REPLY_TYPES:
        return None
    text = message.content or ""
    if not is_private:
        words = _addressed(message, text, bot, roles)
        if words is None:
            return None
        text = words
    content = "" if text or message.attachments else _content(message)
    if not (text or content or message.attachments):
        return None
    return DiscordMessage(
        message=int(message.id),  # not the library's own class of numbers
        channel=int(message.channel_id),
        user=int(message.author.id),
        text=text,
        is_private=is_private,
        content=content,
        files=tuple(message.attachments),
        is_voice=bool(message.flags & hikari.MessageFlag.IS_VOICE_MESSAGE),
    )


def _addressed(message: hikari.Message, text: str, bot: int, roles: Collection[int]) -> str | None:
    """Return the text of a message that mentions the bot or replies to it; None for every other message."""
    names = "|".join([f"!?{bot}", *(f"&{role}" for role in roles)])
    mention = re.compile(rf"<@(?:{names})>[:,]?\s*")
    if mention.search(text):
        return mention.sub("", text).strip()
    replied = message.referenced_message
    if isinstance(replied, hikari.PartialMessage) and replied.author and replied.author.id == bot:
        return text
    return None


def _content(message: hikari.Message) -> str:
    """Return the name of what a message without text has."""
    if message.stickers:
        return "sticker"
    return "poll" if message.poll else ""


def parse_server(payload: Mapping[str, Any]) -> ServerSeen:
    """Return the newest messages of a server's channels and threads. The library's own type needs a hundred fields
    that are not used here, and each could be missing.
    """
    channels = [*payload.get("channels", ()), *payload.get("threads", ())]
    newest = {int(one["id"]): int(one["last_message_id"]) for one in channels if one.get("last_message_id")}
    return ServerSeen(int(payload["id"]), newest)


def own_roles(payload: Mapping[str, Any], bot: int) -> set[int]:
    """Return the roles that a server made for the bot. They have its name, so people mention them as the bot."""
    roles = payload.get("roles", ())
    return {int(one["id"]) for one in roles if one.get("tags", {}).get("bot_id") == str(bot)}


def words_of(interaction: hikari.CommandInteraction) -> str:
    """Return the words that follow a slash command."""
    return " ".join(str(option.value) for option in interaction.options or () if option.value is not None)
