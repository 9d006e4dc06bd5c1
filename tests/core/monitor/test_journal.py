"""The journal of a conversation that two monitors take for their own."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from trunkline.contracts.turns.journal_messages import TurnFinished, TurnResumed, TurnStarted
from trunkline.testing.platform import platform
from trunkline.workers.monitor.journal import Fenced, Journal

sys.path.insert(0, str(Path(__file__).parent))

from test_turn import requested

pytestmark = pytest.mark.anyio

Two = tuple[Journal, Journal]


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    """The journals of one conversation, as two monitors have them."""
    async with platform(tmp_path, workers=()) as running:
        conversation = requested().conversation
        yield Journal(running.bus, "first", conversation), Journal(running.bus, "second", conversation)


async def test_a_former_owner_learns_of_the_takeover_from_the_journal(two: Two) -> None:
    """The first monitor could not write for a while, and another one ended the turn. When the first reads that, it
    must not treat the conversation as its own, or it waits for ever for an ended turn."""
    first, second = two
    request = requested()
    await first.replay(request.turn)
    await first.write(request, 1, (TurnStarted(request=request, model="m"),))
    assert len(await second.replay(request.turn)) == 1
    await second.write(request, 2, (TurnResumed(), TurnFinished(reason="stop")))
    with pytest.raises(Fenced):
        await first.replay(request.turn)


async def test_a_new_owner_reads_entries_of_earlier_owners(two: Two) -> None:
    """Earlier entries are no conflict for a monitor that does not own the conversation yet."""
    first, second = two
    request = requested()
    await first.replay(request.turn)
    await first.write(request, 1, (TurnStarted(request=request, model="m"),))
    await second.replay(request.turn)
    await second.write(request, 2, (TurnResumed(), TurnFinished(reason="stop")))
    first.forget_last_seq()
    assert len(await first.replay(request.turn)) == 2
    assert first.unfinished is None


async def test_a_takeover_is_noticed_without_a_turn(two: Two) -> None:
    """A monitor that waits for a person checks whether another continued the turn."""
    first, second = two
    request = requested()
    assert not await first.is_fenced()
    await first.replay(request.turn)
    await first.write(request, 1, (TurnStarted(request=request, model="m"),))
    assert not await first.is_fenced()
    await second.replay(request.turn)
    await second.write(request, 2, (TurnResumed(),))
    assert await first.is_fenced()
