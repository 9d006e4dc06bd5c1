"""Learners are killed: every turn is learned from once, for any process that dies and any number of learners."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.memory.chunks import ListChunks
from trunkline.contracts.memory.subjects import MEMORY_CHUNKS
from trunkline.contracts.streams import FACT_STREAM, LEARNER_CONSUMER
from trunkline_bus.streams.admin import consumer_state

from .learning_platform import WORDS_ALONE

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

KINDS = ("gateway", "monitor", "tools", "memory")

DIES = '''
"""Ends the process at a moment of learning that the test names in a file, once."""
import os
import sys
from pathlib import Path
import trunkline

MOMENT = Path(__file__).with_name("moment")
seen = {}

class Dying:
    async def __call__(self, message, proceed):
        subject = message.subject.rpartition(".")[2]
        mine = getattr(message.envelope.data, "actor", "") == "learner"
        if mine and message.direction == "out" and MOMENT.exists():
            seen[subject] = seen.get(subject, 0) + 1
        wanted = MOMENT.read_text().split() if MOMENT.exists() else [""]
        paths = getattr(message.envelope.data, "paths", ())
        committed = message.direction == "in" and mine and "learning/position.json" in paths
        reached = committed if wanted[0] == "committed" else wanted == [subject, str(seen.get(subject))]
        if mine and reached:
            MOMENT.unlink()
            os._exit(9)
        await proceed(message)

@trunkline.hookimpl
def trunkline_bus_middleware():
    return [Dying()] if "monitor" in sys.argv else []
'''


def state(running: ProcessPlatform) -> tuple[int, int]:
    """From how many turns was learned, and how many messages the profile counts."""
    try:
        position = json.loads((running.home.memory / "learning/position.json").read_text())
        profile = json.loads((running.home.memory / "profile.json").read_text())
    except FileNotFoundError:
        return 0, 0
    return position["count"], profile["interaction_count"]


async def until_learned(running: ProcessPlatform, turns: int) -> None:
    """Wait until so many turns are learned from, and acknowledged."""
    with anyio.fail_after(60):
        while state(running) < (turns, turns) or not await acknowledged(running):  # noqa: ASYNC110 - other processes write the files
            await anyio.sleep(0.05)


async def acknowledged(running: ProcessPlatform) -> bool:
    consumer = await consumer_state(running.bus, FACT_STREAM, LEARNER_CONSUMER.name)
    return consumer.waiting == consumer.ack_pending == 0


async def facts(running: ProcessPlatform) -> list[str]:
    request = ListChunks(actor="owner", block="main", tags=("learned",))
    return sorted(chunk.content for chunk in (await running.bus.call(MEMORY_CHUNKS, request)).chunks)


def switch_on(running: ProcessPlatform) -> None:
    (running.home.memory / "preferences.toml").write_text(WORDS_ALONE)


async def test_a_learner_killed_at_any_step_counts_each_turn_once(tmp_path: Path) -> None:
    """The learner is killed between two facts, before the commit, and after the commit before it is published: each
    turn counts once."""
    config: dict[str, Any] = {"runtime.provider_adapter": "offline", "plugins.max_crashes": 0}
    async with process_platform(
        tmp_path / "home", config=config, plugins={"dies": DIES}, workers=KINDS
    ) as running:
        switch_on(running)
        moment_file = running.home.path / "test-plugins/moment"
        moments = ("remember 2", "write-many 1", "committed")
        places = ("Lisbon", "Porto", "Faro")
        for number, (moment, place) in enumerate(zip(moments, places, strict=True), start=1):
            moment_file.write_text(moment)
            await running.say(f"My aunt{number} lives in {place}. I prefer colour{number} walls.")
            assert await running.processes["monitor"].gone() == 9, moment
            await running.start("monitor")
            await until_learned(running, number)
        assert state(running) == (3, 3)
        kept = await facts(running)
        assert kept == sorted(
            [f"My aunt{n} lives in {place}." for n, place in enumerate(places, start=1)]
            + [f"I prefer colour{n} walls." for n in (1, 2, 3)]
        )


async def test_one_monitor_learns_and_another_takes_over_when_it_is_killed(
    tmp_path: Path,
) -> None:
    """Turns are answered by both; each is learned from once, also when the one that learns or the bus is killed."""
    config: dict[str, Any] = {"runtime.provider_adapter": "offline", "plugins.max_crashes": 0}
    async with process_platform(tmp_path / "home", config=config, workers=KINDS) as running:
        switch_on(running)
        await running.start("monitor", "other")
        for number in range(6):
            if number == 2:
                running.kill("monitor")
            if number == 3:
                running.kill("nats")  # it comes back by itself
            if number == 4:
                await running.start("monitor")
                running.kill("other")
            await running.say(f"I prefer colour{number} walls.")
        await until_learned(running, 6)
        assert state(running) == (6, 6)
        assert await facts(running) == [f"I prefer colour{number} walls." for number in range(6)]
