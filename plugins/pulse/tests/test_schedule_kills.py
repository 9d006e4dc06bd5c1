"""Two gateways that are killed while a schedule is due every second: each due time has exactly one turn."""

import os
import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.api.memory import utc_now
from trunkline.api.turn import JOURNAL, TurnStarted
from trunkline.contracts.turns.subjects import INBOX
from trunkline_pulse.schedule_store import ScheduleStore

from .pulse_platform import write_schedule_file

pytestmark = [pytest.mark.anyio, pytest.mark.kill, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("SCHEDULE_KILLS", "10"))
"""The number of kills; whoever looks for what nobody thought of takes more."""

MODEL = """
import trunkline
from trunkline.testing.scripted_model import ScriptedModel

@trunkline.hookimpl
def trunkline_models():
    return [ScriptedModel()]
"""

TICK = 'instruction = "say:tick"\nevery = 1\noverlap = "parallel"\nmissed = "all"\nstart = {start}\n'

GATEWAYS = ("gateway", "gateway-2")


async def test_MB_T16_every_due_time_is_one_turn_through_ten_kills() -> None:
    """SIGKILL at any moment: between the claim, the message, the record and the next timer. No due time is lost, and
    none has two turns."""
    chance = random.Random(16)
    async with process_platform(
        config={"runtime.provider_adapter": "scripted"},
        plugins={"models": MODEL},
        workers=("memory", "tools", "monitor", "gateway"),
    ) as running:
        await running.start("gateway", GATEWAYS[1])
        start = utc_now().replace(microsecond=0)
        text = TICK.format(start=f"{start:%Y-%m-%dT%H:%M:%SZ}")
        await write_schedule_file(running.bus, "main", "tick", text)
        await _runs_begin(running)
        for number in range(KILLS):
            await anyio.sleep(chance.random())  # a kill at any moment of a second
            victim = GATEWAYS[number % 2]
            running.kill(victim)
            await running.restart(victim)
        end = utc_now().replace(microsecond=0) + timedelta(seconds=2)
        await write_schedule_file(running.bus, "main", "tick", f"{text}expires = {end:%Y-%m-%dT%H:%M:%SZ}\n")
        last = await _settled(running)
        turns = await _turns(running)
    seconds = int((last - start).total_seconds())
    expected = {start + timedelta(seconds=number) for number in range(seconds)}
    assert set(turns) == expected, running.logs()[-5_000:]
    assert {due: count for due, count in turns.items() if count != 1} == {}


async def _runs_begin(running: ProcessPlatform) -> None:
    with anyio.fail_after(120):
        while not await _turns(running):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)


async def _settled(running: ProcessPlatform) -> datetime:
    """Wait until the schedule has expired and every claimed due time has its turn, and return when it ended."""
    store = ScheduleStore(running.bus)
    with anyio.fail_after(120):
        while True:
            found, state = await store.find("main", "tick"), await store.state("main", "tick")
            if state is not None and state.next_due is None and not state.claimed and found is not None:
                schedule = found.schedule
                if schedule is not None and schedule.expires is not None and state.version == found.file.hash:
                    return schedule.expires
            await anyio.sleep(0.1)


async def _turns(running: ProcessPlatform) -> Counter[datetime]:
    """Return the due times of the turns that the monitor has begun, each with the number of its turns."""
    with anyio.fail_after(120):
        while await _waiting(running):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)
    turns: dict[str, datetime] = {}
    async for stored in running.bus.history(JOURNAL):
        for entry in stored.data.entries:
            if isinstance(entry, TurnStarted):
                request = entry.request
                said = re.search(r"sent this message at (\S+);", str(request.instructions))
                if request.trigger == "schedule" and said is not None:
                    turns[request.turn] = datetime.fromisoformat(said[1]).astimezone(UTC)
    return Counter(turns.values())


async def _waiting(running: ProcessPlatform) -> bool:
    """Report whether messages wait for the monitor."""
    return bool(await running.bus.last_seq(INBOX))
