"""An overview of a platform: live workers, waiting messages, stored data and recent failures. Read-only."""

from collections import deque
from datetime import datetime, timedelta

import anyio
import msgspec

from trunkline.contracts.channels.records import CHANNEL_BUCKET, STATE_PREFIX, AccountState
from trunkline.contracts.models.circuits import CIRCUIT_BUCKET, Circuit
from trunkline.contracts.models.key_pools import KEY_POOL_BUCKET, KeyPool
from trunkline.contracts.streams import DEAD_STREAM, INBOX_STREAM, STREAMS, inbox_consumer
from trunkline.contracts.turns.messages import TurnFact
from trunkline.contracts.turns.subjects import INBOX, TURN_FACT
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.partitions import read_partitioning
from trunkline_bus import Bus, StoredMessage
from trunkline_bus.streams.admin import (
    ConsumerState,
    StreamState,
    consumer_state,
    last_seq_before,
    oldest_time,
    stream_state,
    subject_counts,
)


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """One partition of the inbox.

    ``messages`` is the number of waiting messages, in ``conversations`` conversations; a monitor has claimed
    ``claimed`` of them. ``oldest`` is the age of the first message in seconds. ``pin`` is the server's id of the
    monitor that gets the messages, "" before the first delivery, and ``pinned_at`` the time of the pin.
    """

    partition: int
    messages: int
    conversations: int
    claimed: int
    oldest: float | None = None
    pin: str = ""
    pinned_at: datetime | None = None


class RecentTurns(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of turns that started, parked, finished and failed in the last ``minutes``."""

    minutes: float
    started: int
    parked: int
    finished: int
    failed: int


class ChannelAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an account of a channel in one process."""

    channel: str
    account: AccountState


class PlatformOverview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a platform at ``time`` (UTC) by the server's clock, because the reader's clock may be wrong.

    ``circuits`` are those of models that failed since they last answered; ``key_pools`` are the keys of vendors that
    have several keys or limits; ``accounts`` are those of channels. ``panic`` is the time when the kill switch was
    engaged, "" when it is released. ``in_flight`` is the number of conversations with a message at a monitor; each
    conversation runs one turn at a time.
    """

    time: datetime
    server: str
    workers: tuple[WorkerHeartbeat, ...]
    partitions: tuple[PartitionState, ...]
    in_flight: int
    waiting: int
    streams: tuple[StreamState, ...]
    dead_letters: int
    lately: RecentTurns
    circuits: tuple[Circuit, ...] = ()
    key_pools: tuple[KeyPool, ...] = ()
    accounts: tuple[ChannelAccount, ...] = ()
    panic: str = ""


class OverviewReader:
    """Reads the state of a platform repeatedly; facts that were read are not read again."""

    def __init__(self, bus: Bus, *, minutes: float = 5.0, kill_switch: KillSwitch | None = None) -> None:
        self._kill_switch = kill_switch
        self._bus = bus
        self._span = timedelta(minutes=minutes)
        self._facts: deque[StoredMessage[TurnFact]] = deque()
        self._last_seq: int | None = None

    async def read(self) -> PlatformOverview:
        """Return the current state. Raises BusError when it cannot be read."""
        streams = tuple([await stream_state(self._bus, spec.name) for spec in STREAMS])
        now = streams[0].at
        partitions = await self._partitions(now)
        return PlatformOverview(
            time=now,
            server=self._bus.server_version,
            workers=await self._workers(),
            partitions=partitions,
            in_flight=sum(min(one.claimed, one.conversations) for one in partitions),
            waiting=sum(one.messages - one.claimed for one in partitions),
            streams=streams,
            dead_letters=next(one.messages for one in streams if one.name == DEAD_STREAM),
            lately=await self._lately(now),
            circuits=await self._circuits(),
            key_pools=await self._key_pools(),
            accounts=await self._accounts(),
            panic=self._panic(),
        )

    def _panic(self) -> str:
        engaged = self._kill_switch.read() if self._kill_switch is not None else None
        return "" if engaged is None else engaged.at or "some time ago"

    async def _workers(self) -> tuple[WorkerHeartbeat, ...]:
        entries = await self._bus.kv(WORKER_BUCKET).entries()
        heartbeats = [entry.value for entry in entries if entry.value is not None]
        return tuple(
            sorted(heartbeats, key=lambda heartbeat: (heartbeat.kind, heartbeat.started_at, heartbeat.id))
        )

    async def _circuits(self) -> tuple[Circuit, ...]:
        entries = await self._bus.kv(CIRCUIT_BUCKET).entries()
        circuits = [entry.value for entry in entries if entry.value is not None and entry.value.failures]
        return tuple(sorted(circuits, key=lambda circuit: circuit.model))

    async def _key_pools(self) -> tuple[KeyPool, ...]:
        entries = await self._bus.kv(KEY_POOL_BUCKET).entries()
        pools = [entry.value for entry in entries if entry.value is not None]
        return tuple(sorted(pools, key=lambda pool: pool.adapter))

    async def _accounts(self) -> tuple[ChannelAccount, ...]:
        entries = await self._bus.kv(CHANNEL_BUCKET).entries(f"*.{STATE_PREFIX}.>")
        found = [
            ChannelAccount(
                channel=entry.key.partition(".")[0],
                account=msgspec.json.decode(entry.value, type=AccountState),
            )
            for entry in entries
            if entry.value is not None
        ]
        return tuple(sorted(found, key=lambda one: (one.channel, one.account.text)))

    async def _partitions(self, now: datetime) -> tuple[PartitionState, ...]:
        counts = await subject_counts(self._bus, INBOX_STREAM, INBOX.stored_subject.wildcard_filter())
        found: dict[int, PartitionState] = {}

        async def read(partition: int) -> None:
            mine = [
                n
                for name, n in counts.items()
                if INBOX.stored_subject.parse(name)["partition"] == str(partition)
            ]
            found[partition] = await self._partition(partition, mine, now)

        async with anyio.create_task_group() as tasks:
            for partition in range((await read_partitioning(self._bus)).partitions):
                tasks.start_soon(read, partition)
        return tuple(found[partition] for partition in sorted(found))

    async def _partition(self, partition: int, counts: list[int], now: datetime) -> PartitionState:
        consumer: ConsumerState = await consumer_state(
            self._bus, INBOX_STREAM, inbox_consumer(partition).name
        )
        first = await oldest_time(self._bus, INBOX, partition=str(partition)) if counts else None
        oldest = (now - first).total_seconds() if first is not None else None
        return PartitionState(
            partition=partition,
            messages=sum(counts),
            conversations=len(counts),
            claimed=min(consumer.ack_pending, sum(counts)),
            oldest=None if oldest is None else round(max(0.0, oldest), 3),
            pin=consumer.pin,
            pinned_at=consumer.pinned_at,
        )

    async def _lately(self, now: datetime) -> RecentTurns:
        begin = now - self._span
        if self._last_seq is None:
            self._last_seq = await last_seq_before(self._bus, TURN_FACT, begin)
        async for stored in self._bus.history(TURN_FACT, after=self._last_seq):
            self._last_seq = stored.seq
            self._facts.append(stored)
        while self._facts and self._facts[0].time < begin:
            self._facts.popleft()
        kinds = [stored.data.fact for stored in self._facts]
        return RecentTurns(
            minutes=self._span.total_seconds() / 60,
            started=kinds.count("started"),
            parked=kinds.count("parked"),
            finished=kinds.count("finished"),
            failed=sum(stored.data.reason == "error" for stored in self._facts),
        )
