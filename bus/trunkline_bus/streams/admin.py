"""The administration of streams and consumers for operators: stored messages as bytes, without payload types.

Workers do not use this module; they use topics and endpoints.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from trunkline_bus.connection.bus import Bus
from trunkline_bus.endpoint import Topic
from trunkline_bus.messages import Ack
from trunkline_bus.streams import jetstream
from trunkline_bus.streams.jetstream import publish_to_stream, records, request_api
from trunkline_bus.streams.jetstream_protocol import (
    MSG_ID,
    NO_MESSAGE,
    STREAM_NOT_FOUND,
    StoredRecord,
    error_of,
    parse_time,
    record_of_get,
)
from trunkline_bus.streams.retry import request_with_retry
from trunkline_bus.streams.typed_stream import stream_of


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """The size and the limits of a stream, at the time ``at`` of the server's clock.

    ``bytes`` is the size of the messages on the server. ``first`` is the time of the oldest message. ``max_bytes`` and
    ``max_age`` (seconds) are the limits; None means no limit. A full stream refuses new messages if ``refuses`` is
    True, and otherwise deletes the oldest messages. ``metadata`` is set by programs and by the server.
    """

    name: str
    messages: int
    bytes: int
    at: datetime
    first: datetime | None = None
    max_bytes: int | None = None
    max_age: float | None = None
    refuses: bool = False
    metadata: dict[str, str] = {}

    @property
    def fullness(self) -> float:
        """The size of the stream as a share (0 to 1) of its maximum size; 0 without a limit."""
        return self.bytes / self.max_bytes if self.max_bytes else 0.0


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a consumer.

    ``waiting`` counts the messages that were never delivered, ``ack_pending`` those that were delivered and not
    acknowledged. ``pulls`` counts the pull requests of connected clients that wait for messages. ``pin`` is the id of
    the client to which the consumer is pinned, ``pinned_at`` the time since when.
    """

    name: str
    waiting: int
    ack_pending: int
    pulls: int = 0
    pin: str = ""
    pinned_at: datetime | None = None


async def stream_state(bus: Bus, name: str) -> StreamState:
    """Return the size and the limits of a stream. Raises ``StreamError``."""
    info = await request_api(bus.link, f"STREAM.INFO.{name}")
    state, config = info["state"], info["config"]
    return StreamState(
        name=name,
        messages=state["messages"],
        bytes=state["bytes"],
        at=parse_time(info["ts"]),
        first=parse_time(state["first_ts"]) if state["messages"] else None,
        max_bytes=config["max_bytes"] if config.get("max_bytes", -1) > 0 else None,
        max_age=config["max_age"] / 1e9 if config.get("max_age") else None,
        refuses=config.get("discard") == "new",
        metadata=config.get("metadata") or {},
    )


async def consumer_state(bus: Bus, stream: str, name: str) -> ConsumerState:
    """Return the progress of a consumer. Raises ``StreamError``."""
    info = await request_api(bus.link, f"CONSUMER.INFO.{stream}.{name}")
    group: dict[str, Any] = next(iter(info.get("priority_groups") or ()), {})
    pin = group.get("pinned_client_id", "")
    return ConsumerState(
        name=name,
        waiting=info["num_pending"],
        ack_pending=info["num_ack_pending"],
        pulls=info.get("num_waiting", 0),
        pin=pin,
        pinned_at=parse_time(group["pinned_ts"]) if pin else None,
    )


async def raw_history(
    bus: Bus, topic: Topic[Any], *, after: int = 0, **keys: str
) -> AsyncIterator[StoredRecord]:
    """Yield all stored messages as bytes, the oldest first, also those that cannot be decoded."""
    async for record in records(
        bus.link, stream_of(topic), topic.stored_subject.wildcard_filter(**keys), after=after
    ):
        yield record


async def resend(
    bus: Bus, topic: Topic[Any], data: bytes, *, msg_id: str, headers: Mapping[str, str], **keys: str
) -> Ack:
    """Store the bytes unchanged under the topic's subject, once for each ``msg_id``. Raises ``StreamError``."""
    subject = topic.subject.format(**keys)
    return await publish_to_stream(
        bus.link, stream_of(topic), subject, data, {MSG_ID: msg_id, **headers}, 10.0
    )


async def subject_counts(bus: Bus, stream: str, filter: str) -> dict[str, int]:
    """Return the number of messages of a stream under each subject that matches. Raises ``StreamError``."""
    return await jetstream.subject_counts(bus.link, stream, filter)


async def oldest_time(bus: Bus, topic: Topic[Any], **keys: str) -> datetime | None:
    """Return the time of the oldest stored message that matches; None if there is none."""
    body = {"seq": 1, "next_by_subj": topic.stored_subject.wildcard_filter(**keys)}
    record = await _record(bus, topic, body)
    return None if record is None else record.time


async def last_seq_before(bus: Bus, topic: Topic[Any], time: datetime) -> int:
    """Return a sequence so that a history after it begins with the first matching message stored at ``time`` or later.
    Raises ``StreamError``.
    """
    body = {"start_time": time.isoformat(), "next_by_subj": topic.stored_subject.wildcard_filter()}
    record = await _record(bus, topic, body)
    if record is not None:
        return record.seq - 1
    state = (await request_api(bus.link, f"STREAM.INFO.{stream_of(topic)}"))["state"]
    return int(state["last_seq"])


async def _record(bus: Bus, topic: Topic[Any], body: dict[str, Any]) -> StoredRecord | None:
    reply = await request_with_retry(bus.link, f"STREAM.MSG.GET.{stream_of(topic)}", body)
    if "error" not in reply:
        return record_of_get(reply["message"])
    if reply["error"].get("err_code") == NO_MESSAGE:
        return None
    raise error_of(reply["error"], topic.name)


async def stream_settings(bus: Bus, name: str) -> Mapping[str, Any] | None:
    """Return a stream's settings as the JetStream API names them; None if there is no such stream."""
    reply = await request_with_retry(bus.link, f"STREAM.INFO.{name}")
    if "error" not in reply:
        settings: Mapping[str, Any] = reply["config"]
        return settings
    if reply["error"].get("err_code") == STREAM_NOT_FOUND:
        return None
    raise error_of(reply["error"], f"stream {name}")
