"""Typed operations on the messages of streams: append, last message, history, delete and purge."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from trunkline_bus.connection.inbound_pipeline import InboundPipeline
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.connection.outbound_pipeline import OutboundPipeline
from trunkline_bus.endpoint import Topic
from trunkline_bus.envelope import Scope
from trunkline_bus.errors import BusError, StreamError
from trunkline_bus.messages import Ack, StoredMessage
from trunkline_bus.streams.jetstream import (
    ExpectedSequence,
    last_record,
    publish_to_stream,
    records,
    request_api,
)
from trunkline_bus.streams.jetstream_protocol import (
    EXPECTED_LAST,
    EXPECTED_LAST_SUBJECT,
    MSG_ID,
    NOT_STORED,
    SCHEDULE,
    SCHEDULE_TARGET,
    TTL,
    StoredRecord,
)

T = TypeVar("T")


async def append(
    link: NatsConnection,
    outbound: OutboundPipeline,
    topic: Topic[T],
    payload: T,
    *,
    scope: Scope,
    msg_id: str | None,
    expect: int | None,
    expect_filter: str | None,
    timeout: float,
    headers: Mapping[str, str] | None,
    keys: dict[str, str],
) -> Ack:
    """See ``Bus.append``."""
    subject = topic.subject.format(**keys)
    stream = stream_of(topic)
    envelope = outbound.wrap(payload, scope)
    final = {**(headers or {}), MSG_ID: msg_id or envelope.id}
    if expect is not None:
        final[EXPECTED_LAST] = str(expect)
    if expect_filter is not None:
        final[EXPECTED_LAST_SUBJECT] = expect_filter

    fence = None
    if expect is not None:
        fence = ExpectedSequence(
            stream, expect_filter or topic.stored_subject.wildcard_filter(**keys), expect
        )

    async def transmit(target: str, body: bytes, final_headers: dict[str, str]) -> Ack:
        return await publish_to_stream(link, stream, target, body, final_headers, timeout, fence)

    return await outbound.send(subject, envelope, final, transmit)


def ttl_headers(ttl: float | None, headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
    """Return the headers of a message that its stream deletes after ``ttl`` seconds."""
    return headers if ttl is None else {**(headers or {}), TTL: f"{max(1, round(ttl))}s"}


def schedule_headers(at: datetime, target: str) -> dict[str, str]:
    """Return the headers of a message that the server stores under ``target`` at the time ``at``."""
    return {SCHEDULE: f"@at {at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", SCHEDULE_TARGET: target}


async def last(
    link: NatsConnection, inbound: InboundPipeline, topic: Topic[T], timeout: float, keys: dict[str, str]
) -> StoredMessage[T] | None:
    """See ``Bus.last``."""
    record = await last_record(
        link, stream_of(topic), topic.stored_subject.wildcard_filter(**keys), timeout=timeout
    )
    return None if record is None else await decode_record(inbound, topic, record)


async def last_seq(link: NatsConnection, topic: Topic[Any], keys: dict[str, str]) -> int:
    """See ``Bus.last_seq``."""
    record = await last_record(link, stream_of(topic), topic.stored_subject.wildcard_filter(**keys))
    return 0 if record is None else record.seq


async def history(
    link: NatsConnection, inbound: InboundPipeline, topic: Topic[T], after: int, keys: dict[str, str]
) -> AsyncIterator[StoredMessage[T]]:
    """See ``Bus.history``."""
    async for record in records(
        link, stream_of(topic), topic.stored_subject.wildcard_filter(**keys), after=after
    ):
        yield await decode_record(inbound, topic, record)


async def delete(link: NatsConnection, topic: Topic[Any], seq: int, missing_ok: bool) -> None:
    """See ``Bus.delete``."""
    try:
        await request_api(link, f"STREAM.MSG.DELETE.{stream_of(topic)}", {"seq": seq, "no_erase": True})
    except StreamError as error:
        if not missing_ok or error.code not in NOT_STORED:
            raise


async def purge(link: NatsConnection, topic: Topic[Any], keys: dict[str, str]) -> None:
    """See ``Bus.purge``."""
    await request_api(
        link, f"STREAM.PURGE.{stream_of(topic)}", {"filter": topic.stored_subject.wildcard_filter(**keys)}
    )


async def decode_record(inbound: InboundPipeline, topic: Topic[T], record: StoredRecord) -> StoredMessage[T]:
    """Return the typed message of a record. Raises ``DecodeError`` or ``SubjectError``."""
    envelope = await inbound.open(topic.payload, record.data, record.headers)
    return StoredMessage(
        record.seq, record.subject, topic.stored_subject.parse(record.subject), record.time, envelope
    )


def stream_of(topic: Topic[Any]) -> str:
    """Return the stream that a topic names. Raises ``BusError`` if the topic names none."""
    if topic.stream is None:
        raise BusError(
            f"topic {topic.name} names no stream, so nothing stores it; use publish, or give it one"
        )
    return topic.stream
