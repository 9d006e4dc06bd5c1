"""Reads and changes the number of inbox partitions. The number is stored only in the configuration of the server's
stream.

The number can be changed only while all monitors are stopped. During the change the inbox accepts no messages: senders
find no subscriber and try again. Every waiting message is stored again, in order, under its new partition; then the
inbox accepts messages again. After an interruption the inbox accepts none until the change is repeated. The message ids
show which messages were already moved.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from msgspec.structs import replace

from trunkline.contracts.streams import DEFAULT_PARTITIONS, INBOX_STREAM, inbox_consumer, inbox_transform
from trunkline.contracts.turns.subjects import INBOX, MOVED_INBOX
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.errors import Unavailable
from trunkline_bus import Bus, ConsumerSpec, StreamSpec, Topology, apply
from trunkline_bus.streams.admin import consumer_state, raw_history, resend, stream_settings, stream_state
from trunkline_bus.streams.jetstream_protocol import StoredRecord

log = logging.getLogger(__name__)

_PARTITION_COUNT = re.compile(r"partition\((\d+),")
_MESSAGE_ID = "Nats-Msg-Id"


@dataclass(frozen=True, slots=True)
class InboxPartitioning:
    """The number of inbox partitions. ``shut`` is true while the inbox refuses messages because the number is being
    changed."""

    partitions: int
    shut: bool = False


async def read_partitioning(bus: Bus) -> InboxPartitioning:
    """Return the partitioning on the server; the default when there is no inbox yet. Raises ``StreamError``
    kinds."""
    settings: Mapping[str, Any] = await stream_settings(bus, INBOX_STREAM) or {}
    transform = settings.get("subject_transform") or {}
    found = _PARTITION_COUNT.search(transform.get("dest", ""))
    shut = transform.get("src") == MOVED_INBOX.subject.wildcard_filter()
    return InboxPartitioning(int(found[1]) if found else DEFAULT_PARTITIONS, shut)


async def require_partition_count(bus: Bus) -> int:
    """Return the number of partitions, for a monitor that pulls them.

    Raises:
      Unavailable: the number of partitions is being changed, or a change was interrupted.
    """
    now = await read_partitioning(bus)
    if now.shut:
        raise Unavailable(
            f"The number of inbox partitions is being changed to {now.partitions}.",
            hint=f'Wait; if that was interrupted, run "trunkline partitions {now.partitions}" again.',
        )
    return now.partitions


async def waiting_pulls(bus: Bus, partition: int) -> int:
    """Return the number of live monitors that wait for messages of a partition. The pinned monitor gets the messages.

    Raises ``StreamError`` kinds.
    """
    spec = inbox_consumer(partition)
    return (await consumer_state(bus, spec.stream, spec.name)).pulls


async def with_current_partitions(bus: Bus, topology: Topology) -> Topology:
    """Return ``topology`` with the server's present partitions; without its inbox while the number is being
    changed."""
    if not any(stream.name == INBOX_STREAM for stream in topology.streams):
        return topology
    now = await read_partitioning(bus)
    others = tuple(consumer for consumer in topology.consumers if consumer.stream != INBOX_STREAM)
    if now.shut:
        log.error(
            'the number of partitions is being changed; if not, run "trunkline partitions %d" again',
            now.partitions,
        )
        streams = tuple(stream for stream in topology.streams if stream.name != INBOX_STREAM)
        return replace(topology, streams=streams, consumers=others)
    return replace(
        topology,
        streams=tuple(_with_partitions(stream, now.partitions) for stream in topology.streams),
        consumers=(*_consumers(now.partitions), *others),
    )


async def repartition(bus: Bus, topology: Topology, partitions: int) -> int:
    """Change the inbox of ``topology`` to this number of partitions; return the number of moved messages.

    Raises:
      Unavailable: a monitor is running.
      StreamError: the server refused; repeat the change.
    """
    await _require_no_monitors(bus)
    inbox = next(stream for stream in topology.streams if stream.name == INBOX_STREAM)
    source = MOVED_INBOX.subject.wildcard_filter()
    shut = replace(inbox, subjects=(source,), transform=inbox_transform(source, partitions))
    await apply(bus, Topology(streams=(shut,), consumers=_consumers(partitions)))
    moved = await _move(bus, f"moved-{partitions}-")
    await apply(bus, Topology(streams=(_with_partitions(inbox, partitions),)))
    return moved


def _with_partitions(stream: StreamSpec, partitions: int) -> StreamSpec:
    if stream.transform is None:
        return stream
    return replace(stream, transform=inbox_transform(stream.transform.source, partitions))


def _consumers(partitions: int) -> tuple[ConsumerSpec, ...]:
    return tuple(inbox_consumer(partition) for partition in range(partitions))


async def _move(bus: Bus, prefix: str) -> int:
    """Store every message again, in order. Skip the messages with the prefix: they were moved before an
    interruption."""
    old = [
        record
        for record in await _read_waiting(bus)
        if not record.headers.get(_MESSAGE_ID, "").startswith(prefix)
    ]
    for record in old:
        conversation = INBOX.stored_subject.parse(record.subject)["conversation"]
        headers = {name: text for name, text in record.headers.items() if name != _MESSAGE_ID}
        await resend(
            bus,
            MOVED_INBOX,
            record.data,
            msg_id=f"{prefix}{record.seq}",
            headers=headers,
            conversation=conversation,
        )
        await bus.delete(INBOX, record.seq)
    return len(old)


async def _read_waiting(bus: Bus) -> list[StoredRecord]:
    """Return all messages that the stream's leader has. Read again when a replica that is behind answered."""
    while True:
        found = [record async for record in raw_history(bus, INBOX)]
        if len(found) >= (await stream_state(bus, INBOX_STREAM)).messages:
            return found
        await anyio.sleep(0.1)


async def _require_no_monitors(bus: Bus) -> None:
    entries = await bus.kv(WORKER_BUCKET).entries()
    living = [entry.value for entry in entries if entry.value is not None and entry.value.kind == "monitor"]
    if living:
        raise Unavailable(
            f"{len(living)} monitors are running: {', '.join(map(_place, living))}.",
            hint="Stop all monitors (SIGTERM); other workers may keep running. Messages wait until monitors run again.",
        )


def _place(beat: WorkerHeartbeat) -> str:
    return f"process {beat.pid} on {beat.host}"
