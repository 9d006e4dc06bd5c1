"""What people who operate a platform look at: stored messages as they are, streams and consumers; no payload types.

Workers have no business here: they speak by topics and endpoints.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from trunkline_bus.connection import Bus
from trunkline_bus.endpoint import Topic
from trunkline_bus.jetstream import api, records, store
from trunkline_bus.jsapi import MSG_ID, StoredRecord, parse_time
from trunkline_bus.messages import Ack
from trunkline_bus.streams import stream_of


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """How full a stream is. ``bytes`` is what its messages take on the server, ``first`` the oldest one's time."""

    name: str
    messages: int
    bytes: int
    first: datetime | None = None


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer has come.

    ``waiting`` messages were never delivered, ``held`` ones are delivered and not acknowledged. ``pin`` is the id of
    the client that the consumer is pinned to, ``pinned_at`` since when.
    """

    name: str
    waiting: int
    held: int
    pin: str = ""
    pinned_at: datetime | None = None


async def stream_state(bus: Bus, name: str) -> StreamState:
    """How full a stream is. Raises ``StreamError`` kinds."""
    state = (await api(bus.link, f"STREAM.INFO.{name}"))["state"]
    first = parse_time(state["first_ts"]) if state["messages"] else None
    return StreamState(name=name, messages=state["messages"], bytes=state["bytes"], first=first)


async def consumer_state(bus: Bus, stream: str, name: str) -> ConsumerState:
    """How far a consumer has come. Raises ``StreamError`` kinds."""
    info = await api(bus.link, f"CONSUMER.INFO.{stream}.{name}")
    group: dict[str, Any] = next(iter(info.get("priority_groups") or ()), {})
    pinned = group.get("pinned_ts")
    return ConsumerState(
        name=name,
        waiting=info["num_pending"],
        held=info["num_ack_pending"],
        pin=group.get("pinned_client_id", ""),
        pinned_at=parse_time(pinned) if pinned else None,
    )


async def raw_history(
    bus: Bus, topic: Topic[Any], *, after: int = 0, **keys: str
) -> AsyncIterator[StoredRecord]:
    """All stored messages as they are, oldest first, also those that cannot be decoded."""
    async for record in records(bus.link, stream_of(topic), topic.kept.filter(**keys), after=after):
        yield record


async def send_again(
    bus: Bus, topic: Topic[Any], data: bytes, *, msg_id: str, headers: Mapping[str, str], **keys: str
) -> Ack:
    """Store these very bytes under the topic's subject, once for each ``msg_id``. Raises ``StreamError`` kinds."""
    subject = topic.subject.format(**keys)
    return await store(bus.link, stream_of(topic), subject, data, {MSG_ID: msg_id, **headers}, 10.0)
