"""Bodies whose message was deleted: a purge erases them, waits for them only so long, and reports what it leaves."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.support.buses import bus_at
from tests.support.home_search import files_holding
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.retention import Retention
from trunkline.contracts.workers.subjects import CLAIM_STORE
from trunkline.workers.memory.purge import streams
from trunkline.workers.memory.purge.streams import StreamEraser
from trunkline_bus import Bus
from trunkline_bus.streams.jetstream import publish_to_stream

pytestmark = pytest.mark.anyio

TEXT = b"The combination of the safe is zebra seven four."
PURGE = Purge(target="conv_1", conversations=frozenset({"conv_1"}), lines=frozenset({TEXT}))
WHERE = f"stream {CLAIM_STORE.stream_name}"


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Bus]:
    async with bus_at(tmp_path) as connected:
        yield connected


@pytest.fixture
def eraser(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> StreamEraser:
    monkeypatch.setattr(streams, "ORPHAN_AGE", 0.2)
    return StreamEraser(bus, Retention())


async def test_orphaned_bodies_are_erased_once_no_message_follows(bus: Bus, eraser: StreamEraser) -> None:
    """The other data of a purge is erased without a search for orphaned bodies, which waits."""
    await bus.objects(CLAIM_STORE).put("body", TEXT)
    assert await eraser.erase(PURGE) == []
    assert await bus.objects(CLAIM_STORE).names() == ["body"]
    [erased] = await eraser.erase_orphans(PURGE)
    assert (erased.where, erased.count) == (CLAIM_STORE.stream_name, 1)
    assert [copy for copy in await eraser.remaining(PURGE) if copy.where == WHERE] == []


async def test_bodies_that_keep_arriving_are_reported(bus: Bus, eraser: StreamEraser) -> None:
    """The search ends, and the report names the bodies that it left and when they expire."""

    async def keep_storing() -> None:
        number = 0
        while True:
            number += 1
            await bus.objects(CLAIM_STORE).put(f"body {number}", TEXT)
            await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_storing)
        with anyio.fail_after(60):
            await eraser.erase_orphans(PURGE)
        await bus.objects(CLAIM_STORE).put("last", TEXT)
        tasks.cancel_scope.cancel()
    [left] = [copy for copy in await eraser.remaining(PURGE) if copy.where == WHERE]
    assert left.what == "Messages that arrived during the purge left text of it. Purge it again."
    assert left.until is None or left.until > datetime.now(UTC)


async def test_a_body_that_was_stored_in_part_is_erased(
    bus: Bus, eraser: StreamEraser, tmp_path: Path
) -> None:
    """A sender that is cancelled or killed leaves pieces without metadata, which no list of the bucket has."""
    objects = bus.objects(CLAIM_STORE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(objects.put, "body", TEXT * 500_000)
        while not await objects.fragments():
            pass
        tasks.cancel_scope.cancel()
    assert await objects.names() == [] and files_holding(tmp_path, TEXT)
    [erased] = await eraser.erase_orphans(PURGE)
    assert (erased.where, erased.count) == (CLAIM_STORE.stream_name, 1)
    assert not files_holding(tmp_path, TEXT) and await objects.fragments() == []


async def test_a_body_that_is_being_stored_is_waited_for(
    bus: Bus, eraser: StreamEraser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is erased once it is whole."""
    monkeypatch.setattr(streams, "ORPHAN_AGE", 2.0)
    objects, stored, searched = bus.objects(CLAIM_STORE), anyio.Event(), anyio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield TEXT
        stored.set()
        await searched.wait()
        yield TEXT

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(objects.put_pieces, "body", pieces())
        await stored.wait()
        tasks.start_soon(eraser.erase_orphans, PURGE)
        await anyio.sleep(0.5)
        searched.set()
    assert not files_holding(tmp_path, TEXT)


@pytest.mark.parametrize(
    "mtime",
    [(datetime.now(UTC) + timedelta(days=3_650)).isoformat(), "9999-12-31T23:59:59-12:00", "soon", ""],
    ids=["ten years", "the last year", "no time", "empty"],
)
async def test_the_time_that_a_client_wrote_extends_no_wait(
    bus: Bus, eraser: StreamEraser, mtime: str
) -> None:
    """A body counts as stored now at the latest."""
    info = await bus.objects(CLAIM_STORE).put("body", TEXT)
    subject = (await anext(bus.records(CLAIM_STORE.stream_name, "$O.claims.M.*"))).subject
    later = msgspec.json.encode(msgspec.structs.replace(info, mtime=mtime))
    await publish_to_stream(bus.link, CLAIM_STORE.stream_name, subject, later, {"Nats-Rollup": "sub"}, 10.0)
    with anyio.fail_after(20):
        [erased] = await eraser.erase_orphans(PURGE)
    assert erased.count == 1
    assert await bus.objects(CLAIM_STORE).names() == []
