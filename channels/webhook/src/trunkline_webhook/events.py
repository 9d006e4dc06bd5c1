"""The bodies of the requests that Trunkline sends: ``{"type": …, "timestamp": …, "data": …}``."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline import RemoteFault
from trunkline.api.channel import Attachment

MAX_FILES = 10 * 1024 * 1024
"""Bytes of all files that are sent with an answer."""


class AnsweredFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that the agent gives. ``data`` is its content, in the body as base64. It is missing if the files of the
    answer exceed ``MAX_FILES``, or the file is no longer stored. ``stored`` is the file as the gateway knows it: it is
    in the record of a delivery and not in the body of a request.
    """

    name: str
    media_type: str
    size: int
    data: bytes | None = None
    stored: Attachment | None = None


class AnswerData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a request. ``request`` is the id of that request. ``reason`` is how the turn ended: ``stop``,
    ``cancelled``, ``error`` or what else a turn can end with. ``files`` are those that the agent gives.
    """

    request: str
    thread: str
    conversation: str
    turn: str
    reason: str
    text: str
    files: tuple[AnsweredFile, ...] = ()


class NoticeData(msgspec.Struct, frozen=True, kw_only=True):
    """A notice to the owner."""

    text: str


class ApprovalData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call or question that waits for the owner, or was settled: ``allowed`` then says how, and ``text`` by whom."""

    id: str
    block: str
    channel: str
    question: str
    text: str
    expires_at: datetime
    allowed: bool | None = None


EventType = Literal["message.answered", "owner.notice", "approval.requested", "approval.settled"]

EventData = AnswerData | NoticeData | ApprovalData


class WebhookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request. ``timestamp`` is when the delivery began; a repeated request has the same body."""

    type: EventType
    timestamp: datetime
    data: EventData


def encode_event(kind: EventType, began: datetime, data: EventData) -> str:
    """Return the body of a request. Raises nothing."""
    return msgspec.json.encode(WebhookEvent(type=kind, timestamp=began, data=data)).decode()


class AnswerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request with an answer, as ``WebhookEvent``."""

    type: EventType
    timestamp: datetime
    data: AnswerData


def has_files(content: str) -> bool:
    """Report whether a recorded body has files whose content is not there yet. Raises nothing."""
    event = msgspec.json.decode(content, type=dict[str, Any])
    return event["type"] == "message.answered" and bool(event["data"].get("files"))


async def with_files(content: str, read: Callable[[Attachment], Awaitable[bytes]]) -> str:
    """Return a recorded body with the content of its files. It is the same for each repetition of the request, as
    long as the files are stored. Raises what ``read`` raises besides RemoteFault.
    """
    event = msgspec.json.decode(content, type=AnswerEvent)
    left, files = MAX_FILES, []
    for file in event.data.files:
        data = None
        if file.stored is not None and file.size <= left:
            with suppress(RemoteFault):
                data = await read(file.stored)
                left -= file.size
        files.append(msgspec.structs.replace(file, data=data, stored=None))
    filled = msgspec.structs.replace(event.data, files=tuple(files))
    return encode_event(event.type, event.timestamp, filled)
