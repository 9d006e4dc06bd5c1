"""The updates of Telegram, and what each asks of this channel. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

from telegram import Message, Update

Kind = Literal["text", "button", "unsupported", "moved"]

_COMMAND = re.compile(r"/(?P<name>[a-z_]+)(@(?P<bot>\w+))?(\s+(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)

UNSUPPORTED = (
    "voice", "video_note", "audio", "video", "photo", "document", "sticker", "animation", "location", "contact", "poll",
    "venue", "dice",
)  # fmt: skip
"""The contents of a message that this channel cannot pass on."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """An update. ``command`` is the name of a command, and ``text`` what follows it; else ``text`` is the message, the
    words of a button, the content that is not supported, or the id of the supergroup that a group has become.
    """

    update: int
    kind: Kind
    chat: int
    user: int
    text: str
    message: int = 0
    thread: int | None = None
    is_private: bool = True
    command: str = ""
    query: str = ""


def parse_update(id: int, update: Update, username: str, bot: int) -> Incoming | None:
    """Return what an update asks for; None if it is not addressed to the bot."""
    if update.callback_query is not None:
        query, message = update.callback_query, update.callback_query.message
        chat = message.chat.id if message is not None else query.from_user.id
        is_private = message is None or message.chat.type == "private"
        return Incoming(
            id, "button", chat, query.from_user.id, query.data or "", is_private=is_private, query=query.id
        )
    message = update.message
    if message is None:
        return None
    if message.migrate_to_chat_id is not None:
        return Incoming(id, "moved", message.chat.id, 0, str(message.migrate_to_chat_id))
    if message.from_user is None or message.from_user.is_bot:
        return None
    return _message(id, message, username, bot)


def _message(id: int, message: Message, username: str, bot: int) -> Incoming | None:
    assert message.from_user is not None
    text = message.text
    is_private = message.chat.type == "private"
    name, rest = "", text or ""
    found = _COMMAND.fullmatch(text.strip()) if text else None
    if found is not None:
        if (found["bot"] or username).lower() != username.lower():
            return None
        name, rest = found["name"].lower(), (found["rest"] or "").strip()
    elif not is_private:
        words = _addressed(message, username, bot)
        if words is None:
            return None
        rest = words
    kind: Kind = "text"
    if text is None:
        content = next((one for one in UNSUPPORTED if getattr(message, one, None)), None)
        if content is None:
            return None
        kind, rest = "unsupported", content
    thread = message.message_thread_id if message.is_topic_message else None
    return Incoming(
        id, kind, message.chat.id, message.from_user.id, rest, message.message_id, thread, is_private, name
    )


def _addressed(message: Message, username: str, bot: int) -> str | None:
    """Return the text of a message in a group that mentions the bot or replies to it; None for every other message."""
    text = message.text or ""
    mention = re.compile(rf"(?<!\w)@{re.escape(username)}\b[:,]?\s*", re.IGNORECASE)
    if mention.search(text):
        return mention.sub("", text).strip()
    replied = message.reply_to_message
    if replied is not None and replied.from_user is not None and replied.from_user.id == bot:
        return text
    return None
