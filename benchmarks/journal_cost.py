"""What the journal adds to a turn: how many records, what each waits for, and what it takes of the CPU.

The records of turns that were just answered are written again, as the monitor writes them (synced, by
compare-and-set, one after the other), with nothing else to do; once into a stream like the journal's and once into
one in memory, whose difference is the disk's part.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter

import msgspec

from benchmarks.deployments import Deployment
from benchmarks.machine import cpu_seconds
from trunkline.contracts.streams import JOURNAL_STREAM, STREAMS
from trunkline.contracts.turns.journal_messages import ModelCallPlanned, TurnFinished, TurnRecord, TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline_bus import Bus, Subject, Topic, Topology, apply
from trunkline_bus.streams.retry import request_with_retry

SAMPLE = 300


@dataclass(frozen=True, slots=True)
class JournalCost:
    """Records and bytes of a turn, how many precede its model call, and seconds for each record."""

    records: float
    size: float
    before: float
    waited: float
    waited_in_memory: float
    cpu_writer: float
    cpu_server: float


async def measure(way: Deployment) -> JournalCost:
    """Look at the journal of the turns that were asked over this way, then write such records again."""
    bus = way.bus
    assert bus is not None
    records = [stored.data async for stored in bus.history(JOURNAL, after=0)][-SAMPLE:]
    whole = _complete_turns(records)
    mine = [record for turn in whole for record in turn]
    on_disk = await _time_writes(bus, way, "file", records)
    in_memory = await _time_writes(bus, way, "memory", records)
    return JournalCost(
        records=len(mine) / len(whole),
        size=sum(len(msgspec.json.encode(record)) for record in mine) / len(whole),
        before=mean(
            next(n for n, one in enumerate(turn, 1) if _has(one, ModelCallPlanned)) for turn in whole
        ),
        waited=on_disk[0],
        waited_in_memory=in_memory[0],
        cpu_writer=on_disk[1],
        cpu_server=on_disk[2],
    )


def _complete_turns(records: Sequence[TurnRecord]) -> list[list[TurnRecord]]:
    """The turns whose beginning and end are among the records."""
    turns: dict[str, list[TurnRecord]] = {}
    for record in records:
        turns.setdefault(record.turn, []).append(record)
    return [turn for turn in turns.values() if _has(turn[0], TurnStarted) and _has(turn[-1], TurnFinished)]


def _has(record: TurnRecord, kind: type) -> bool:
    return any(isinstance(entry, kind) for entry in record.entries)


async def _time_writes(
    bus: Bus, way: Deployment, storage: str, records: Sequence[TurnRecord]
) -> tuple[float, float, float]:
    """Seconds waited for each (median), and of CPU for each, here and in the server."""
    like = next(stream for stream in STREAMS if stream.name == JOURNAL_STREAM)
    name = f"BENCH_{storage}"
    spec = msgspec.structs.replace(like, name=name, subjects=(f"bench.{storage}.*",), storage=storage)
    topic = Topic(
        name="bench", subject=Subject(f"bench.{storage}.{{turn}}"), payload=TurnRecord, stream=name, doc=""
    )
    await apply(bus, Topology(streams=(spec,)))
    here, there = cpu_seconds(os.getpid()), cpu_seconds(way.pids["nats-server"])
    waited, last = [], 0
    for record in records:
        began = perf_counter()
        last = (await bus.append(topic, record, expect=last, turn="one")).seq
        waited.append(perf_counter() - began)
    count = len(records)
    cpu = (cpu_seconds(os.getpid()) - here) / count, (cpu_seconds(way.pids["nats-server"]) - there) / count
    await request_with_retry(bus.link, f"STREAM.DELETE.{name}")
    return median(waited), *cpu
