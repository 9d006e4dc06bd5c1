"""CC-F17, C31: panic while agents work for a turn, schedules are due and workflows wait and run. Everything stops,
nothing begins while panic lasts, and afterwards nothing goes on by itself except what a policy makes up for."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.api.model import ModelAdapter
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.schedules.paths import schedule_path
from trunkline.contracts.turns.journal_messages import ModelCallPlanned, TurnFinished, TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.platform import BLOCK, Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import RemoteFault
from trunkline_pulse.schedule_store import ScheduleStore
from trunkline_workflow.definition import parse_definition
from trunkline_workflow.runs import Runs, RunView

pytestmark = pytest.mark.anyio

LONG = "slow:20000:20"
FAMILY = f"parallel:agent_run {json.dumps({'task': LONG})} agent_run " + json.dumps(
    {"task": f"call:agent_run {json.dumps({'task': LONG})}\nquote"}
)

ASKS = """\
name: asks
description: Ask, and then have an effect.
steps:
  - {id: ask, type: approval, message: 'Go on?', on_approve: act, on_reject: stop}
  - {id: act, type: action, action: mark, args: {name: asked}}
  - {id: stop, type: action, action: mark, args: {name: stopped}}
"""
WAITS = """\
name: waits
description: Wait, and then have an effect.
steps:
  - {id: sleep, type: action, action: wait, args: {seconds: 3600}, next: act, on_error: act}
  - {id: act, type: action, action: mark, args: {name: waited}}
"""


class Background:
    """A plugin with a scripted model, and a tool whose effects can be counted."""

    def __init__(self) -> None:
        self.model = ScriptedModel()
        self.marks: Counter[str] = Counter()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="write")
        def mark(name: str) -> str:
            """Have an effect."""
            self.marks[name] += 1
            return f"did {name}"

        return [mark]


@pytest.fixture
def background() -> Background:
    return Background()


@pytest.fixture
async def running(background: Background, tmp_path: Path) -> AsyncIterator[Platform]:
    config = {"runtime.provider_adapter": "scripted", "plugins.pulse.time_zone": "UTC"}
    async with platform(tmp_path / "home", plugins=[background], config=config) as one:
        yield one


async def begin(runs: Runs, text: str) -> RunView:
    definition = parse_definition(text)
    await runs.files.install(definition.name, text, proposed=False)
    return await runs.view(await runs.begin(definition, {}))


async def when(runs: Runs, view: RunView, *statuses: str) -> RunView:
    with anyio.fail_after(60):
        while view.status not in statuses or (view.status == "waiting_approval" and not view.approvals):
            await anyio.sleep(0.05)
            view = await runs.view(view.record)
    return view


async def family_works(running: Platform, accepted: MessageAccepted) -> None:
    """Wait until the three agents below a turn have begun to answer."""
    with anyio.fail_after(60):
        while True:
            tasks = (await running.gateway.agents(conversation=accepted.conversation)).tasks
            counts = await entry_counts(running)
            if len(tasks) == 3 and all(counts[task.id, ModelCallPlanned] for task in tasks):
                return
            await anyio.sleep(0.05)


async def entry_counts(running: Platform) -> Counter[tuple[str, type]]:
    """The number of entries of each kind in the journal of each turn."""
    return Counter(
        [
            (stored.data.turn, type(entry))
            async for stored in running.bus.history(JOURNAL, after=0)
            for entry in stored.data.entries
        ]
    )


async def write_schedule(running: Platform, name: str, text: str) -> None:
    request = WriteManyMemory(files={schedule_path(BLOCK, name): text}, actor="owner")
    await running.bus.call(MEMORY_WRITE_MANY, request, timeout=20.0)


async def latched(running: Platform, name: str) -> None:
    """Wait until the schedule is armed and its due time has passed."""
    store = ScheduleStore(running.bus)
    with anyio.fail_after(60):
        while True:
            state = await store.state(BLOCK, name)
            if (
                state is not None
                and state.next_due is not None
                and utc_now() > state.next_due + timedelta(seconds=1)
            ):
                assert not state.runs
                return
            await anyio.sleep(0.05)


async def all_ended(running: Platform) -> None:
    """Wait until every turn that began has ended, except those that wait for a person."""
    with anyio.fail_after(60):
        while any(task.is_running for task in (await running.gateway.agents()).tasks):  # noqa: ASYNC110
            await anyio.sleep(0.05)


async def test_CC_F17_panic_stops_agents_schedules_and_workflows(
    running: Platform, background: Background
) -> None:
    """A family of agents answers, a workflow waits in a step, another waits for a person and is approved during the
    panic, and a schedule is due meanwhile. No model is asked and nothing has an effect until the release; after it the
    due time runs once, and no agent and no workflow has begun anything again."""
    runs = Runs(running.bus, BLOCK)
    accepted = await running.send(FAMILY)
    await family_works(running, accepted)
    asks = await when(runs, await begin(runs, ASKS), "waiting_approval")
    waits = await when(runs, await begin(runs, WAITS), "running")
    due = utc_now().replace(microsecond=0) + timedelta(seconds=10)  # the file must be stored before
    switch = KillSwitch(running.home.path)
    switch.engage("a test")
    try:
        await write_schedule(
            running, "late", f'instruction = \'call:mark {{"name": "due"}}\'\nat = {due:%Y-%m-%dT%H:%M:%SZ}\n'
        )
        ended = (await running.answer(accepted)).ended
        assert ended.code == "panic" or ended.reason in ("cancelled", "stopped")
        await all_ended(running)
        waits = await when(runs, waits, "cancelled", "failed")
        asked = len(background.model.requests)
        (question,) = asks.approvals
        try:
            await runs.gateway.decide(question.turn, question.call, question.call_hash, allow=True)
        except RemoteFault as fault:
            assert fault.code in ("forbidden", "conflict", "not_found", "panic"), fault
        assert (await running.say(FAMILY)).ended.code == "panic"
        await latched(running, "late")
        assert len(background.model.requests) == asked
        assert not background.marks
    finally:
        switch.release()
    with anyio.fail_after(60):
        while not background.marks["due"]:  # noqa: ASYNC110 - the platform runs beside the test
            await anyio.sleep(0.05)
    await when(runs, asks, "cancelled", "failed", "waiting_approval")
    later = await when(runs, await begin(runs, ASKS), "waiting_approval")
    (question,) = later.approvals
    await runs.gateway.decide(question.turn, question.call, question.call_hash, allow=True)
    await when(runs, later, "completed")
    assert background.marks["asked"] == 1, "what was approved during the panic acted after its release"
    counts = await entry_counts(running)
    family = [task.id for task in (await running.gateway.agents(conversation=accepted.conversation)).tasks]
    for turn in (accepted.turn, waits.record.turn, *family):
        assert (counts[turn, TurnStarted], counts[turn, TurnFinished]) == (1, 1)
    assert background.marks["due"] == 1 and not background.marks["waited"]
