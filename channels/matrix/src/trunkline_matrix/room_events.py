"""The events of rooms, and what each asks of this channel. Pure: what other homeservers send is checked here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

POLLS = ("m.poll.start", "org.matrix.msc3381.poll.start")

Kind = Literal["text", "edited", "encrypted", "unsupported"]


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """A file of a message. ``server`` and ``media`` are its address. ``is_voice`` marks a voice message."""

    server: str
    media: str
    name: str
    media_type: str
    size: int
    is_voice: bool = False


@dataclass(frozen=True, slots=True)
class MatrixMessage:
    """A message of a person. ``thread`` is the message that began its thread, "" outside of threads. For ``edited``
    ``text`` is the id of the message that was changed, for ``unsupported`` the name of what cannot be read. It mentions
    the accounts ``mentions``.
    """

    id: str
    sender: str
    text: str
    thread: str
    at: float
    kind: Kind = "text"
    file: MatrixFile | None = None
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MatrixReaction:
    """A reaction of a person to the post ``target``."""

    id: str
    sender: str
    target: str
    key: str


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """A change of the members of a room. ``was`` is the membership before, "" if not stated."""

    user: str
    membership: str
    was: str = ""


@dataclass(frozen=True, slots=True)
class RoomInvitation:
    """An invitation of the account. ``words`` are the reason and the name of the room, of which one may be a code."""

    inviter: str
    words: tuple[str, ...]
    is_encrypted: bool


RoomEvent = MatrixMessage | MatrixReaction | MembershipChange


def parse_event(raw: Mapping[str, Any]) -> RoomEvent | None:
    """Return what an event asks for; None if it asks for nothing, or is malformed."""
    id, sender, kind = _text(raw, "event_id"), _text(raw, "sender"), _text(raw, "type")
    content = _fields(raw, "content")
    if kind == "m.room.member":
        was = _text(_fields(_fields(raw, "unsigned"), "prev_content"), "membership")
        return MembershipChange(_text(raw, "state_key"), _text(content, "membership"), was)
    if not id or not sender or not content:  # what was deleted has no content
        return None
    relation = _fields(content, "m.relates_to")
    at = raw.get("origin_server_ts")
    if kind == "m.reaction":
        return MatrixReaction(id, sender, _text(relation, "event_id"), _text(relation, "key"))
    thread = _text(relation, "event_id") if relation.get("rel_type") == "m.thread" else ""
    whole = MatrixMessage(id, sender, "", thread, at if isinstance(at, int | float) else 0.0)
    return _message(whole, kind, content, relation)


def _message(
    whole: MatrixMessage, kind: str, content: Mapping[str, Any], relation: Mapping[str, Any]
) -> MatrixMessage | None:
    def of_kind(kind: Kind, text: str, file: MatrixFile | None = None) -> MatrixMessage:
        named = _fields(content, "m.mentions").get("user_ids")
        mentions = tuple(one for one in named if isinstance(one, str)) if isinstance(named, list) else ()
        return MatrixMessage(whole.id, whole.sender, text, whole.thread, whole.at, kind, file, mentions)

    if kind == "m.room.encrypted":
        return of_kind("encrypted", "")
    if kind == "m.sticker" or kind in POLLS:
        return of_kind("unsupported", "sticker" if kind == "m.sticker" else "poll")
    if kind != "m.room.message":
        return None
    if relation.get("rel_type") == "m.replace":
        return of_kind("edited", _text(relation, "event_id"))
    body, name = _text(content, "body"), _text(content, "msgtype")
    match name:
        case "m.text" | "m.emote":
            text = _without_quote(body, relation)
            return of_kind("text", text) if text.strip() else None
        case "m.image" | "m.file" | "m.audio" | "m.video":
            file = _file(content, name)
            caption = body if _text(content, "filename") not in ("", body) else ""
            return of_kind("text", caption, file) if file is not None else of_kind("unsupported", "file")
        case "m.location":
            return of_kind("text", f"My place: {_text(content, 'geo_uri')}")
        case "m.notice" | "":
            return None  # what automatic programs write is not answered
        case _:
            return of_kind("unsupported", "kind of message")


def _file(content: Mapping[str, Any], kind: str) -> MatrixFile | None:
    """Return the file of a message; None if it is encrypted, or has no address."""
    found = re.fullmatch(r"mxc://([A-Za-z0-9.:\[\]-]+)/([A-Za-z0-9_-]+)", _text(content, "url"))
    if found is None:
        return None
    info = _fields(content, "info")
    size = info.get("size")
    defaults = {"m.image": "image/jpeg", "m.audio": "audio/ogg", "m.video": "video/mp4"}
    return MatrixFile(
        server=found[1],
        media=found[2],
        name=_text(content, "filename") or _text(content, "body"),
        media_type=_text(info, "mimetype") or defaults.get(kind, "application/octet-stream"),
        size=size if isinstance(size, int) else 0,
        is_voice=any(name in content for name in ("org.matrix.msc3245.voice", "m.voice")),
    )


def _without_quote(body: str, relation: Mapping[str, Any]) -> str:
    """Return the text of a reply without the lines that older clients quote before it."""
    if not _fields(relation, "m.in_reply_to") or not body.startswith("> "):
        return body
    lines = body.split("\n")
    quoted = next((number for number, line in enumerate(lines) if not line.startswith("> ")), len(lines))
    return "\n".join(lines[quoted:]).strip()


def parse_invitation(events: Sequence[Mapping[str, Any]], account: str) -> RoomInvitation | None:
    """Return the invitation of the account among the events that the homeserver shows of a room."""
    found = next((one for one in events if _is_member(one, account, "invite")), None)
    if found is None:
        return None
    names = (_text(_fields(one, "content"), "name") for one in events if one.get("type") == "m.room.name")
    words = (_text(_fields(found, "content"), "reason"), *names)
    is_encrypted = any(one.get("type") == "m.room.encryption" for one in events)
    return RoomInvitation(_text(found, "sender"), tuple(one for one in words if one), is_encrypted)


def since_invited(events: Sequence[Mapping[str, Any]], account: str) -> Sequence[Mapping[str, Any]]:
    """Return the events since the account was invited last or, if nobody invited it, since it joined."""
    for membership in ("invite", "join"):
        at = [number for number, one in enumerate(events) if _is_member(one, account, membership)]
        if at:
            return events[at[-1] :]
    return events


def has_just_joined(events: Sequence[Mapping[str, Any]], account: str) -> bool:
    """Report whether the account was not in the room before these events."""
    changes = [
        one for one in map(parse_event, events) if isinstance(one, MembershipChange) and one.user == account
    ]
    return any(one.membership == "join" and one.was != "join" for one in changes)


def addressed_text(text: str, account: str, name: str) -> tuple[bool, str]:
    """Report whether a text begins with the account's id or name, or has its id; and return it without this."""
    names = "|".join(re.escape(one) for one in (account, name) if one)
    found = re.match(rf"\s*@?(?:{names})(?:[:,]\s*|\s+|$)", text, re.IGNORECASE)
    if found is not None:
        return True, text[found.end() :].strip()
    return account in text, text.replace(account, "").strip() if account in text else text


def _is_member(raw: Mapping[str, Any], user: str, membership: str) -> bool:
    content = _fields(raw, "content")
    is_change = raw.get("type") == "m.room.member" and raw.get("state_key") == user
    return is_change and content.get("membership") == membership


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _fields(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}
