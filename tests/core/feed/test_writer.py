"""The writer of a feed: after a crash of the server its items are whole again."""

import anyio
import pytest

from trunkline.contracts.turns.feed_messages import FeedItem, TextDelta
from trunkline.contracts.turns.subjects import FEED
from trunkline.workers.monitor.feed_writer import FeedWriter
from trunkline_bus import Bus, StoredMessage

pytestmark = pytest.mark.anyio

KEYS = {"conversation": "c", "turn": "t"}


def delta(number: int) -> TextDelta:
    return TextDelta(step=0, offset=number, text="x")


async def every(bus: Bus) -> list[StoredMessage[FeedItem]]:
    return [one async for one in bus.history(FEED, after=0, **KEYS)]


async def stored(bus: Bus, count: int) -> list[StoredMessage[FeedItem]]:
    """Return the content of the stream, once it has that many items: the feed publishes without waiting for the
    store."""
    with anyio.fail_after(60):
        while len(found := await every(bus)) != count:  # noqa: ASYNC110 - the server stores by itself
            await anyio.sleep(0.01)
    return found


async def test_lost_items_are_resent_although_newer_ones_exist(bus: Bus) -> None:
    """A crash loses the last items, and text sent right after the reconnection follows the hole."""
    feed = FeedWriter(bus, "main", "c", "t", 1)
    await feed.emit(*map(delta, range(5)))
    for lost in (await stored(bus, 5))[1:3]:
        await bus.delete(FEED, lost.seq)
    await feed.repair()
    assert [one.data.index for one in await stored(bus, 5)] == [0, 3, 4, 1, 2]


async def test_a_former_owner_repairs_nothing(bus: Bus) -> None:
    """The new owner has published everything again."""
    former, owner = FeedWriter(bus, "main", "c", "t", 1), FeedWriter(bus, "main", "c", "t", 2)
    await former.emit(delta(0))
    await owner.emit(delta(0))
    await bus.delete(FEED, (await stored(bus, 2))[0].seq)
    await former.repair()
    await owner.emit(delta(1))
    assert [one.data.epoch for one in await stored(bus, 2)] == [2, 2]
