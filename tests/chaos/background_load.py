"""Schedules that are due every few seconds and workflows that begin one after the other, until both are ended."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.schedules.messages import ScheduleRun
from trunkline.contracts.schedules.paths import schedule_path
from trunkline.errors import ErrorCode, TrunklineError
from trunkline.testing.platform import BLOCK
from trunkline_bus import Bus, BusError, RemoteFault
from trunkline_pulse.schedule_store import ScheduleStore
from trunkline_workflow.definition import parse_definition
from trunkline_workflow.records import RunRecord
from trunkline_workflow.runs import Runs, RunView

from .programs import transfer
from .retries import until_answered

EVERY: Mapping[str, int] = {"parallel": 4, "queue": 5, "skip": 3}
"""The schedules, named by their ``overlap``, with their intervals in seconds. All missed times are made up for."""

WRITE_SECONDS = 20.0

DEFINITION = """\
name: chaos
description: Two effects, a question, and one of two effects more.
inputs: {file: null, mark: null}
steps:
  - {id: one, type: action, action: transfer, next: two, on_error: two,
     args: {file: '{{ file }}', mark: '{{ mark }}-one', before: 0.2, after: 0.4}}
  - {id: two, type: action, action: transfer, next: review, on_error: review,
     args: {file: '{{ file }}', mark: '{{ mark }}-two', before: 0.4, after: 0.2}}
  - {id: review, type: approval, message: 'Go on with {{ mark }}?', on_approve: go, on_reject: stay}
  - {id: go, type: action, action: transfer, next: end, on_error: end,
     args: {file: '{{ file }}', mark: '{{ mark }}-go', after: 0.3}}
  - {id: stay, type: action, action: transfer, next: end, on_error: end,
     args: {file: '{{ file }}', mark: '{{ mark }}-stay', after: 0.3}}
  - {id: end, type: action, action: look, args: {mark: '{{ mark }}'}}
"""


@dataclass(slots=True)
class BegunRun:
    """A run of the workflow: its mark, the decision that a person makes, and its last view."""

    mark: str
    allow: bool
    view: RunView | None = None


@dataclass(slots=True)
class BegunSchedule:
    """A schedule, with what its states said about each due time."""

    name: str
    start: datetime
    end: datetime | None = None
    runs: dict[datetime, ScheduleRun] = field(default_factory=dict)

    @property
    def dues(self) -> list[datetime]:
        """Every due time, in order; those of a schedule that has ended."""
        assert self.end is not None
        every = EVERY[self.name]
        count = -(-int((self.end - self.start).total_seconds()) // every)
        return [self.start + timedelta(seconds=every * number) for number in range(count)]


class BackgroundLoad:
    """Begins schedules and workflows until it is finished. ``file`` has their effects; ``problems``: refusals."""

    def __init__(self, bus: Bus, seed: int, file: Path, tasks: TaskGroup) -> None:
        self._bus = bus
        self._seed = seed
        self._draw = random.Random(f"background/{seed}")
        self.file = file
        self._tasks = tasks
        self._stopping = anyio.Event()
        self._over = anyio.Event()
        self._store = ScheduleStore(bus)
        self.runs: list[BegunRun] = []
        self.schedules: list[BegunSchedule] = []
        self.problems: list[str] = []

    async def begin(self) -> None:
        """Write the schedules, and begin the first workflow."""
        start = utc_now().replace(microsecond=0) + timedelta(seconds=2)
        self.schedules = [BegunSchedule(name, start) for name in EVERY]
        await self._write_schedules()
        self._tasks.start_soon(self._follow_schedules)
        self._tasks.start_soon(self._begin_workflows)

    async def finish(self) -> None:
        """End the schedules and return once they and every workflow have ended."""
        self._stopping.set()
        end = utc_now().replace(microsecond=0) + timedelta(seconds=15)  # the files must be stored before
        for one in self.schedules:
            one.end = end
        await self._write_schedules()
        await self._over.wait()
        for one in self.schedules:
            while not await self._settled(one):  # noqa: ASYNC110 - asked over the bus
                await anyio.sleep(0.2)

    # Schedules ------------------------------------------------------------------------------------------------

    async def _write_schedules(self) -> None:
        files = {schedule_path(BLOCK, one.name): self._text(one) for one in self.schedules}
        request = WriteManyMemory(files=files, actor="owner")
        await until_answered(lambda: self._bus.call(MEMORY_WRITE_MANY, request, timeout=WRITE_SECONDS))

    def _text(self, one: BegunSchedule) -> str:
        draw = random.Random(f"{self._seed}/{one.name}")
        slow = "slow:40:100\n" if one.name == "skip" else ""
        program = f"{slow}call:{transfer(draw, f'due-{one.name}', str(self.file))}\nsay:done"
        lines = [
            f"instruction = '''{program}'''",
            f"every = {EVERY[one.name]}",
            f'overlap = "{one.name}"',
            'missed = "all"',
            f"start = {one.start:%Y-%m-%dT%H:%M:%SZ}",
        ]
        if one.end is not None:
            lines.append(f"expires = {one.end:%Y-%m-%dT%H:%M:%SZ}")
        return "\n".join(lines) + "\n"

    async def _follow_schedules(self) -> None:
        """Keep what the states say: a state forgets its oldest runs."""
        while True:
            for one in self.schedules:
                await self._settled(one)
            await anyio.sleep(1.0)

    async def _settled(self, one: BegunSchedule) -> bool:
        """Note the runs of a schedule, and report whether it has expired and each of its runs has ended."""
        try:
            state = await self._store.state(BLOCK, one.name)
            found = await self._store.find(BLOCK, one.name)
        except (BusError, TrunklineError):
            return False
        if state is None or found is None or found.schedule is None:
            return False
        one.runs.update((run.due_at, run) for run in state.runs)
        current = state.version == found.file.hash and found.schedule.expires is not None
        waits = state.claimed or any(run.outcome == "started" for run in state.runs)
        return current and state.next_due is None and not waits

    # Workflows ------------------------------------------------------------------------------------------------

    async def _begin_workflows(self) -> None:
        number = 0
        async with anyio.create_task_group() as watching:
            while not self._stopping.is_set():
                one = BegunRun(f"w{self._seed}n{number}", self._draw.random() < 0.7)
                self.runs.append(one)
                watching.start_soon(self._run, one)
                number += 1
                with anyio.move_on_after(self._draw.uniform(2.0, 6.0)):
                    await self._stopping.wait()
        self._over.set()

    async def _run(self, one: BegunRun) -> None:
        """Begin a run, decide its question, and follow it to its end."""
        runs = Runs(self._bus, BLOCK)
        try:
            record = await until_answered(lambda: self._begun(runs, one))
            while True:
                one.view = view = await until_answered(partial(runs.view, record))
                record = view.record
                if view.ended:
                    return
                for asked in view.approvals:
                    await self._decide(runs, asked.turn, asked.call, asked.call_hash, one.allow)
                await anyio.sleep(0.5)
        except RemoteFault as fault:
            self.problems.append(f"the run {one.mark} gave up: {fault.code} {fault.message}")

    async def _begun(self, runs: Runs, one: BegunRun) -> RunRecord:
        """Begin a run, unless an earlier request began it without an answer."""
        for record in await runs.list():
            if record.start.inputs["mark"] == one.mark:
                return record
        inputs = {"file": str(self.file), "mark": one.mark}
        return await runs.begin(parse_definition(DEFINITION), inputs)

    async def _decide(self, runs: Runs, turn: str, call: str, call_hash: str, allow: bool) -> None:
        try:
            await until_answered(lambda: runs.gateway.decide(turn, call, call_hash, allow=allow))
        except RemoteFault as fault:
            if fault.code != ErrorCode.CONFLICT:  # an earlier request was accepted without an answer
                raise
