"""An interrupted turn waits for one running turn at most, for any number of waiting turns."""

from pathlib import Path

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.journal_messages import TurnFinished, TurnStarted
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline.runtime.overview import OverviewReader
from trunkline.testing.scripted_provider import provider_process

from .partition_assignment import settled

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

SEATED = 2.0
"""Seconds after which both monitors know of each other's partitions."""


async def test_an_interrupted_turn_overtakes_turns_not_started(tmp_path: Path) -> None:
    """The survivor has a long queue of its own and one slot. The dead one's turn ends before that queue does."""
    with provider_process() as provider:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": provider,
            "adapters.openai.model": "scripted",
            "monitor.concurrency": 1,
        }
        async with process_platform(
            tmp_path, config=config, workers=("gateway", "memory", "tools")
        ) as running:
            async with anyio.create_task_group() as starting:
                for name in ("dies", "survives"):
                    starting.start_soon(running.start, "monitor", name)
            survivor = running.processes["survives"]
            said = [await running.send("wait:1 ;; say:x") for _ in range(80)]
            await settled(running, lambda found: list(found.values()) == [4, 4])
            await anyio.sleep(SEATED)
            own = await waiting_at(running, survivor.pid)
            cut = await interrupted(running, said, own)
            await end_of(running, cut)
            begun = {stored.keys["turn"] async for stored in running.bus.history(JOURNAL)}
    assert own - begun, "the survivor's own queue was worked off first"


async def waiting_at(running: ProcessPlatform, pid: int) -> set[str]:
    """The turns in the partitions of a monitor."""
    seen = await OverviewReader(running.bus).read()
    (pins,) = (beat.pins for beat in seen.workers if beat.pid == pid)
    found = [s async for s in running.bus.history(INBOX, after=0)]
    return {stored.data.turn for stored in found if int(stored.keys["partition"]) in pins}


async def interrupted(running: ProcessPlatform, said: list[MessageAccepted], own: set[str]) -> str:
    """Kill the other monitor while it runs a turn; returns that turn."""
    others = {accepted.turn for accepted in said} - own
    before = others & await running_turns(running)
    with anyio.fail_after(60):
        while not (cut := others & await running_turns(running) - before):  # noqa: ASYNC110 - as below
            await anyio.sleep(0.05)
    running.kill("dies")  # a turn that has just begun
    return cut.pop()


async def running_turns(running: ProcessPlatform) -> set[str]:
    """The turns that have begun and not ended."""
    found: set[str] = set()
    async for stored in running.bus.history(JOURNAL):
        for entry in stored.data.entries:
            if isinstance(entry, TurnStarted):
                found.add(stored.keys["turn"])
            elif isinstance(entry, TurnFinished):
                found.discard(stored.keys["turn"])
    return found


async def end_of(running: ProcessPlatform, turn: str) -> None:
    """Wait until it has ended."""
    with anyio.fail_after(60):
        while turn in await running_turns(running):  # noqa: ASYNC110 - what is waited for is in other processes
            await anyio.sleep(0.2)
