"""Two gateways that are killed while a schedule is due every second: each due time has exactly one turn."""

import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.api.memory import utc_now
from trunkline.api.turn import JOURNAL, TurnRequested, TurnStarted
from trunkline.contracts.turns.subjects import INBOX
from trunkline_pulse.schedule_changes import run_now
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

QUEUES = max(4, KILLS // 3)

QUEUE = """
instruction = "say:{name}"
every = 1
overlap = "queue"
missed = "all"
start = {start}
expires = {end}
"""

GATEWAYS = ("gateway", "gateway-2")


@asynccontextmanager
async def two_gateways() -> AsyncIterator[ProcessPlatform]:
    """A platform with two gateways, either of which processes what is due."""
    async with process_platform(
        config={"runtime.provider_adapter": "scripted"},
        plugins={"models": MODEL},
        workers=("memory", "tools", "monitor", "gateway"),
    ) as running:
        await running.start("gateway", GATEWAYS[1])
        yield running


async def test_MB_T16_every_due_time_is_one_turn_through_ten_kills() -> None:
    """SIGKILL at any moment: between the claim, the message, the record and the next timer. No due time is lost, and
    none has two turns."""
    chance = random.Random(16)
    async with two_gateways() as running:
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
        last = await _settled(running, "tick")
        turns = Counter(due for due, _ in await _turns(running))
    seconds = int((last - start).total_seconds())
    expected = {start + timedelta(seconds=number) for number in range(seconds)}
    assert set(turns) == expected, running.logs()[-5_000:]
    assert {due: count for due, count in turns.items() if count != 1} == {}


async def test_a_queue_begun_by_hand_is_one_conversation_through_kills() -> None:
    """Each queue is new, and its first run is by hand, one second before a due time: SIGKILL of the gateway that began
    the conversation must not let another run begin a second one, or the first run happen twice."""
    chance = random.Random(17)
    async with two_gateways() as running:
        for number in range(QUEUES):
            name = f"queue-{number}"
            start = utc_now().replace(microsecond=0) + timedelta(seconds=2)
            text = QUEUE.format(
                name=name,
                start=f"{start:%Y-%m-%dT%H:%M:%SZ}",
                end=f"{start + timedelta(seconds=3):%Y-%m-%dT%H:%M:%SZ}",
            )
            await write_schedule_file(running.bus, "main", name, text)
            await run_now(running.bus, name, "main")
            await anyio.sleep(chance.random() / 2)
            for victim in GATEWAYS:  # one of both has the run
                running.kill(victim)
            for victim in GATEWAYS:
                await running.restart(victim)
            await _settled(running, name)
        texts = {f"queue-{number}": await _runs_of(running, f"queue-{number}") for number in range(QUEUES)}
    for name, (dues, conversations) in texts.items():
        assert len(conversations) == 1, (name, running.logs()[-5_000:])
        assert len(dues) == 4 and set(dues.values()) == {1}, (name, dues, running.logs()[-5_000:])


async def _runs_of(running: ProcessPlatform, name: str) -> tuple[Counter[datetime], set[str]]:
    """Return the times at which a schedule ran, each with the number of its turns, and its conversations."""
    runs = [request for due, request in await _turns(running) if f"The schedule {name!r} of" in str(request)]
    dues = Counter(due for due, request in await _turns(running) if request in runs)
    return dues, {request.conversation for request in runs}


async def _runs_begin(running: ProcessPlatform) -> None:
    with anyio.fail_after(120):
        while not await _turns(running):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)


async def _settled(running: ProcessPlatform, name: str) -> datetime:
    """Wait until the schedule has expired and every claimed due time has its turn, and return when it ended."""
    store = ScheduleStore(running.bus)
    with anyio.fail_after(120):
        while True:
            found, state = await store.find("main", name), await store.state("main", name)
            if state is not None and state.next_due is None and not state.claimed and found is not None:
                schedule = found.schedule
                if schedule is not None and schedule.expires is not None and state.version == found.file.hash:
                    return schedule.expires
            await anyio.sleep(0.1)


async def _turns(running: ProcessPlatform) -> list[tuple[datetime, TurnRequested]]:
    """Return the turns of schedules that the monitor has begun, each with its due time."""
    with anyio.fail_after(120):
        while await _waiting(running):  # noqa: ASYNC110  asked over the bus
            await anyio.sleep(0.1)
    turns: dict[str, tuple[datetime, TurnRequested]] = {}
    async for stored in running.bus.history(JOURNAL):
        for entry in stored.data.entries:
            if isinstance(entry, TurnStarted):
                request = entry.request
                said = re.search(r"sent this message at (\S+);", str(request.instructions))
                if request.trigger == "schedule" and said is not None:
                    turns[request.turn] = datetime.fromisoformat(said[1]).astimezone(UTC), request
    return list(turns.values())


async def _waiting(running: ProcessPlatform) -> bool:
    """Report whether messages wait for the monitor."""
    return bool(await running.bus.last_seq(INBOX))
