"""The platform at a glance."""

from pathlib import Path

import anyio
import pytest

from trunkline.contracts.turns.messages import TurnCancelRequested, TurnFact
from trunkline.contracts.turns.subjects import INBOX, TURN_FACT
from trunkline.runtime.overview import OverviewReader, PlatformOverview
from trunkline.testing.platform import platform
from trunkline.workers import KINDS

pytestmark = pytest.mark.anyio


async def test_shows_live_workers_and_the_owner_of_a_turns_partition() -> None:
    """All five workers; after a turn, one partition is pinned, and its pin is the monitor's own."""
    async with platform() as running:
        await running.say("hello")
        lookout = OverviewReader(running.bus)
        with anyio.fail_after(60):
            while True:
                seen = await lookout.read()
                pinned = [one for one in seen.partitions if one.pin]
                known = {pin for beat in seen.workers if beat.kind == "monitor" for pin in beat.pins.values()}
                settled = seen.lately.finished == 1 and not any(one.messages for one in seen.partitions)
                if settled and {beat.kind for beat in seen.workers} == set(KINDS) and known:
                    break
                await anyio.sleep(0.1)
        assert [one.pin for one in pinned] == sorted(known)
        assert (seen.in_flight, seen.waiting, seen.dead_letters) == (0, 0, 0)
        assert seen.lately.started == 1 and seen.lately.failed == 0
        assert next(one.messages for one in seen.streams if one.name == "JOURNAL") > 0


async def test_pending_messages_without_a_consumer_are_counted(tmp_path: Path) -> None:
    """Without a monitor messages wait in their partition, with the age of the oldest; failures are counted once."""
    async with platform(tmp_path, workers=("memory",)) as running:
        for number in range(3):
            request = TurnCancelRequested(turn=f"turn_{number}", by="ann")
            await running.bus.append(INBOX, request, conversation="conv_1")
        lookout = OverviewReader(running.bus)
        before: PlatformOverview = await lookout.read()
        fact = TurnFact(turn="t", block="main", conversation="conv_1", fact="finished", reason="error")
        await running.bus.append(TURN_FACT, fact, block="main", fact="finished")
        after = await lookout.read()
        waits = [one for one in after.partitions if one.messages]
        assert [(one.messages, one.conversations, one.claimed, one.pin) for one in waits] == [(3, 1, 0, "")]
        assert waits[0].oldest is not None and waits[0].oldest >= 0
        assert after.waiting == 3 and after.in_flight == 0
        assert (before.lately.failed, after.lately.failed) == (0, 1)
        assert (await lookout.read()).lately.failed == 1
        assert (await OverviewReader(running.bus).read()).lately.failed == 1
        assert (await OverviewReader(running.bus, minutes=1e-6).read()).lately.failed == 0
