"""The updates of Telegram, and what each asks of this channel. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from telegram import Message, Update

from trunkline_telegram.message_media import MediaFile, media_of, place_words

Kind = Literal["text", "button", "unsupported", "edited", "moved"]

_COMMAND = re.compile(r"/(?P<name>[a-z_]+)(@(?P<bot>\w+))?(\s+(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)

UNSUPPORTED = {
    "sticker": "sticker", "poll": "poll", "contact": "contact", "animation": "GIF", "video": "video",
    "video_note": "video message", "dice": "dice", "story": "story", "game": "game", "checklist": "checklist",
    "paid_media": "paid picture",
}  # fmt: skip
"""The contents of a message that this channel cannot pass on, with their names for people."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """An update. ``command`` is the name of a command, and ``text`` what follows it; else ``text`` is the message, the
    words of a button, the content that is not supported, or the id of the supergroup that a group has become.
    ``media`` are the files of the message; those of an album are one message.
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
    media: tuple[MediaFile, ...] = ()
    person: str = ""


def parse_updates(updates: Sequence[tuple[int, Update | None]], username: str, bot: int) -> Incoming | None:
    """Return what the updates of one album, or a single update, ask for; None if they are not addressed to the bot."""
    read = [(id, update) for id, update in updates if update is not None]
    if not read:
        return None
    id, update = read[0]
    if update.callback_query is not None:
        return _button(id, update)
    messages = [one.message for _, one in read if one.message is not None]
    if not messages:
        return _edited(id, update, username, bot)
    lead = next((one for one in messages if one.caption), messages[0])
    if lead.migrate_to_chat_id is not None:
        return Incoming(id, "moved", lead.chat.id, 0, str(lead.migrate_to_chat_id))
    if lead.from_user is None or lead.from_user.is_bot:
        return None
    media = tuple(file for file in map(media_of, messages) if file is not None)
    return _message(id, lead, media, username, bot)


def _button(id: int, update: Update) -> Incoming:
    assert update.callback_query is not None
    query, message = update.callback_query, update.callback_query.message
    chat = message.chat.id if message is not None else query.from_user.id
    is_private = message is None or message.chat.type == "private"
    return Incoming(
        id, "button", chat, query.from_user.id, query.data or "", is_private=is_private, query=query.id
    )


def _edited(id: int, update: Update, username: str, bot: int) -> Incoming | None:
    """Return an edit of a person. A place that moves is edited every few seconds, and no person edits it."""
    message = update.edited_message
    if message is None or message.from_user is None or message.from_user.is_bot or message.location:
        return None
    is_private = message.chat.type == "private"
    if not is_private and _addressed(message, username, bot) is None:
        return None
    return Incoming(
        id,
        "edited",
        message.chat.id,
        message.from_user.id,
        "",
        message.message_id,
        _thread(message),
        is_private,
    )


def _message(
    id: int, message: Message, media: tuple[MediaFile, ...], username: str, bot: int
) -> Incoming | None:
    assert message.from_user is not None
    text = message.text
    is_private = message.chat.type == "private"
    name, rest = "", text or message.caption or ""
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
    if text is None and not media:
        place = place_words(message)
        content = next((one for one in UNSUPPORTED if getattr(message, one, None)), None)
        if not place and content is None:
            return None
        kind, rest = ("text", place) if place else ("unsupported", UNSUPPORTED[content or ""])
    return Incoming(
        id, kind, message.chat.id, message.from_user.id, rest, message.message_id, _thread(message), is_private,
        name, media=media, person=message.from_user.full_name,
    )  # fmt: skip


def _thread(message: Message) -> int | None:
    return message.message_thread_id if message.is_topic_message else None


def _addressed(message: Message, username: str, bot: int) -> str | None:
    """Return the text of a message in a group that mentions the bot or replies to it; None for every other message."""
    text = message.text or message.caption or ""
    mention = re.compile(rf"(?<!\w)@{re.escape(username)}\b[:,]?\s*", re.IGNORECASE)
    if mention.search(text):
        return mention.sub("", text).strip()
    replied = message.reply_to_message
    if replied is not None and replied.from_user is not None and replied.from_user.id == bot:
        return text
    return None
