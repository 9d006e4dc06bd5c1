"""The JetStream protocol: error codes, status headers, records of stored messages. No I/O."""

import base64
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from trunkline_bus.errors import SequenceConflict, StorageFull, StreamError, StreamUnavailable

MSG_ID = "Nats-Msg-Id"
EXPECTED_STREAM = "Nats-Expected-Stream"
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject"
TTL = "Nats-TTL"
INCREMENT = "Nats-Incr"
SCHEDULE, SCHEDULE_TARGET = "Nats-Schedule", "Nats-Schedule-Target"

NO_MESSAGE = 10037
NOT_STORED = (NO_MESSAGE, 10057)
"""The codes of a deletion of a message that does not exist."""

STREAM_NOT_FOUND = 10059
CONSUMER_NOT_FOUND = 10014
NOT_READY = {
    10008,
    10009,
    10041,
    10158,
}  # unavailable, no leader yet, offline, the same message is being stored
_WRONG_LAST = {10071, 10164}
_NO_ROOM = {10002, 10023, 10026, 10028, 10047, 10122}
_NO_ROOM_TEXT = re.compile(r"insufficient|no space|exceeded|disk quota|disk full", re.IGNORECASE)
_LAST = re.compile(r"sequence: (\d+)")


class StoredRecord(msgspec.Struct, frozen=True):
    """A message as a stream stores it, not decoded."""

    seq: int
    subject: str
    time: datetime
    data: bytes
    headers: dict[str, str]


def error_of(error: dict[str, Any], what: str) -> StreamError:
    """Return the bus error for a JetStream API error object."""
    code = int(error.get("err_code", 0))
    text = str(error.get("description", "unknown error"))
    if code in _WRONG_LAST:
        match = _LAST.search(text)
        return SequenceConflict(f"{what}: {text}", code, int(match.group(1)) if match else None)
    if code in _NO_ROOM or _NO_ROOM_TEXT.search(text):
        return StorageFull(f"{what}: not stored, {text}; free disk space or raise the stream's limit", code)
    if code == STREAM_NOT_FOUND:
        return StreamUnavailable(f"{what}: {text}; apply the topology first", code)
    return StreamError(f"{what}: {text} ({code})", code)


def record_of_get(message: dict[str, Any]) -> StoredRecord:
    """Return the record in a ``STREAM.MSG.GET`` reply."""
    return StoredRecord(
        seq=int(message["seq"]),
        subject=str(message["subject"]),
        time=parse_time(str(message["time"])),
        data=base64.b64decode(message.get("data", "")),
        headers=parse_headers(base64.b64decode(message.get("hdrs", ""))),
    )


def record_of_direct(data: bytes, headers: dict[str, str]) -> StoredRecord:
    """Return the record in a ``DIRECT.GET`` reply, which has its metadata in headers."""
    return StoredRecord(
        seq=int(headers["Nats-Sequence"]),
        subject=headers["Nats-Subject"],
        time=parse_time(headers["Nats-Time-Stamp"]),
        data=data,
        headers=headers,
    )


def parse_time(text: str) -> datetime:
    """Return a server timestamp (nanoseconds, RFC 3339) as UTC, truncated to microseconds."""
    head, _, rest = text.partition(".")
    if not rest:
        return datetime.fromisoformat(text).astimezone(UTC)
    digits = re.match(r"\d+", rest)
    fraction = digits.group(0) if digits else ""
    zone = rest[len(fraction) :]
    return datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}{zone}").astimezone(UTC)


def parse_headers(raw: bytes) -> dict[str, str]:
    """Return NATS header bytes as a dict."""
    pairs = (line.decode("utf-8", "replace").partition(":") for line in raw.split(b"\r\n")[1:] if line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def nanoseconds(seconds: float) -> int:
    """Return seconds as integer nanoseconds, the unit of JetStream."""
    return round(seconds * 1_000_000_000)
