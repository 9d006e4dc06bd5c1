"""Repartitioning the inbox."""

from collections import Counter
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.streams import inbox_consumer
from trunkline.contracts.topology import topology
from trunkline.contracts.turns.messages import TurnCancelRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import Unavailable
from trunkline.runtime.partitions import (
    InboxPartitioning,
    read_partitioning,
    repartition,
    require_partition_count,
)
from trunkline.testing.platform import platform
from trunkline_bus import Bus

pytestmark = pytest.mark.anyio

CONVERSATIONS = [f"conv_{number}" for number in range(20)]


async def fill(bus: Bus) -> None:
    """Ten messages for each conversation, in turn."""
    for number in range(10):
        for conversation in CONVERSATIONS:
            request = TurnCancelRequested(turn=f"turn_{number}", by="ann")
            await bus.append(INBOX, request, conversation=conversation)


async def waiting(bus: Bus) -> dict[str, list[str]]:
    """The turns of each conversation, in the order in which their messages lie in the inbox."""
    found: dict[str, list[str]] = {}
    async for stored in bus.history(INBOX):
        found.setdefault(stored.keys["conversation"], []).append(stored.data.turn)
    return found


async def test_pending_items_are_repartitioned_in_order(tmp_path: Path) -> None:
    """Into more and into fewer partitions: each message is there once, in its conversation's order, where the
    consumers of the new partitions find it; and what comes later is dealt in the same way."""
    async with platform(tmp_path, workers=("memory",)) as running:
        await fill(running.bus)
        before = await waiting(running.bus)
        for partitions in (16, 3):
            assert await repartition(running.bus, topology(), partitions) == 200
            assert await require_partition_count(running.bus) == partitions
            assert await waiting(running.bus) == before
            await running.bus.append(
                INBOX, TurnCancelRequested(turn="later", by="ann"), conversation="conv_0"
            )
            where: dict[str, set[str]] = {}
            async for stored in running.bus.history(INBOX):
                where.setdefault(stored.keys["conversation"], set()).add(stored.keys["partition"])
            assert all(len(places) == 1 and int(min(places)) < partitions for places in where.values())
            assert len({min(places) for places in where.values()}) > 2
            async with running.bus.pinned(inbox_consumer(int(min(where["conv_0"]))), INBOX) as items:
                with anyio.fail_after(60):
                    while (item := await anext(items)).data.turn != "later":
                        pass
                await item.ack(confirm=True)


async def test_an_interrupted_repartitioning_is_repeated(tmp_path: Path) -> None:
    """While the inbox is closed no monitor may pull, the platform starts all the same, and repeating the command
    neither loses nor duplicates an item and keeps the order."""
    async with platform(tmp_path, workers=("memory",)) as running:
        await fill(running.bus)
        before = await waiting(running.bus)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(repartition, running.bus, topology(), 16)
            with anyio.fail_after(60):
                while sum(map(len, (await waiting(running.bus)).values())) == 200 and not (
                    await moved(running.bus)
                ):
                    pass
            tasks.cancel_scope.cancel()
        assert await read_partitioning(running.bus) == InboxPartitioning(16, shut=True)
        with pytest.raises(Unavailable, match="being changed to 16"):
            await require_partition_count(running.bus)
    async with platform(tmp_path, workers=("memory",)) as running:
        assert (await read_partitioning(running.bus)).shut
        assert 0 < await repartition(running.bus, topology(), 16) < 200
        assert await waiting(running.bus) == before
        assert await require_partition_count(running.bus) == 16


async def moved(bus: Bus) -> bool:
    """Report whether some messages were moved already."""
    return Counter([int(s.keys["partition"]) >= 8 async for s in bus.history(INBOX)])[True] > 5


async def test_repartitioning_is_refused_while_a_monitor_lives() -> None:
    """A monitor that pulled by the old number would run a conversation beside the one that pulls by the new."""
    async with platform() as running:
        with anyio.fail_after(60):
            while not await has_heartbeat(running.bus):  # noqa: ASYNC110 - another task tells it
                await anyio.sleep(0.05)
        with pytest.raises(Unavailable, match="1 monitors are running: process"):
            await repartition(running.bus, topology(), 16)
        assert await read_partitioning(running.bus) == InboxPartitioning(8)
        assert (await running.say("hello")).text


async def has_heartbeat(bus: Bus) -> bool:
    """Report whether a monitor has sent a heartbeat."""
    from trunkline.contracts.workers.subjects import WORKER_BUCKET

    return any(key.startswith("monitor") for key in await bus.kv(WORKER_BUCKET).keys())
