"""Counters: numbers that many processes change atomically, by JetStream's message counters (NATS ADR-49).

The stream must have ``allow_counter``. The server replaces the body of each increment with the total after it, so the
messages of a subject are the history of its number.
"""

from collections.abc import AsyncIterator

import msgspec

from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.endpoint import Counter
from trunkline_bus.ids import new_id
from trunkline_bus.messages import Increment
from trunkline_bus.streams.jetstream import last_record, publish_to_stream, records
from trunkline_bus.streams.jetstream_protocol import INCREMENT, MSG_ID, StoredRecord

_LABEL = "Trunkline-Label"


class _Body(msgspec.Struct):
    val: str


async def increment(
    link: NatsConnection,
    counter: Counter,
    amount: int,
    *,
    msg_id: str | None,
    label: str,
    timeout: float,
    keys: dict[str, str],
) -> int:
    """See ``Bus.increment``."""
    subject = counter.subject.format(**keys)
    headers = {INCREMENT: f"{amount:+d}", MSG_ID: msg_id or new_id()}
    if label:
        headers[_LABEL] = label
    ack = await publish_to_stream(link, counter.stream, subject, b"", headers, timeout)
    return await total(link, counter, timeout, keys) if ack.total is None else ack.total


async def total(link: NatsConnection, counter: Counter, timeout: float, keys: dict[str, str]) -> int:
    """See ``Bus.total``."""
    record = await last_record(link, counter.stream, counter.subject.format(**keys), timeout=timeout)
    return 0 if record is None else _total_of(record)


async def increments(
    link: NatsConnection, counter: Counter, after: int, keys: dict[str, str]
) -> AsyncIterator[Increment]:
    """See ``Bus.increments``."""
    async for record in records(link, counter.stream, counter.subject.wildcard_filter(**keys), after=after):
        yield Increment(
            seq=record.seq,
            keys=counter.subject.parse(record.subject),
            time=record.time,
            amount=int(record.headers[INCREMENT]),
            total=_total_of(record),
            label=record.headers.get(_LABEL, ""),
        )


def _total_of(record: StoredRecord) -> int:
    return int(msgspec.json.decode(record.data, type=_Body).val)
