"""Lanes over two monitors of real processes, each with one slot, and a kill while preempted turns wait."""

import os
import signal
from collections.abc import AsyncIterator

import anyio
import pytest

from tests.background_turns import entries_of, in_background, records_of, streams, until
from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.journal_messages import TurnFinished, TurnPreempted, TurnResumed, TurnStarted
from trunkline.contracts.workers.subjects import WORKER_BUCKET

from .shared_platforms import ALL_WORKERS

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

BACKGROUND, PERSON = "slow:60:50", "slow:40:50"


@pytest.fixture
async def running(provider: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessPlatform]:
    config = {
        "runtime.provider_adapter": "openai",
        "adapters.openai.base_url": provider,
        "adapters.openai.model": "scripted",
        "monitor.concurrency": 1,
    }
    async with process_platform(tmp_path_factory.mktemp("lanes"), config=config, workers=ALL_WORKERS) as one:
        await one.start("monitor", "second")
        yield one


async def test_CC_T2_a_preempted_turn_survives_its_monitor(running: ProcessPlatform) -> None:
    """Background turns stream on both monitors, and persons write until one turn is preempted. Its monitor is killed
    while the turn waits. Every turn is answered in full and finishes exactly once."""
    background = [await in_background(running, BACKGROUND) for _ in range(4)]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:

            async def first(one: MessageAccepted) -> None:
                await streams(running, one)
                tasks.cancel_scope.cancel()

            for one in background:
                tasks.start_soon(first, one)
    persons = [await running.send(PERSON) for _ in range(6)]
    owner = ""

    async def one_waits() -> bool:
        nonlocal owner
        for one in background:
            records = await records_of(running, one)
            if records and isinstance(records[-1].entries[-1], TurnPreempted):
                owner = records[-1].owner
        return bool(owner)

    await until(one_waits)
    beat = await running.bus.kv(WORKER_BUCKET).get(owner)
    assert beat is not None
    os.kill(beat.value.pid, signal.SIGKILL)
    for one in (*persons, *background):
        answer = await running.answer(one)
        assert answer.ended.reason == "stop"
        words = 60 if one in background else 40
        assert answer.text.split() == [f"word-{number}" for number in range(1, words + 1)]
        entries = await entries_of(running, one)
        kinds = (TurnStarted, TurnFinished)
        assert [sum(isinstance(entry, kind) for entry in entries) for kind in kinds] == [1, 1]
        view = await running.gateway.conversation(one.conversation)
        assert [message.role for message in view.messages] == ["user", "assistant"]
    preempted = [await entries_of(running, one) for one in background]
    assert any(isinstance(entry, TurnPreempted) for entries in preempted for entry in entries)
    assert any(isinstance(entry, TurnResumed) for entries in preempted for entry in entries)
