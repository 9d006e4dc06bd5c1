"""The checks of agents, schedules and workflows after a run, from journals, records, states and effects. Reads only."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import anyio

from trunkline.contracts.agents.messages import AgentTask
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    AgentReportRecorded,
    ApprovalRecorded,
    CancelRecorded,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    TurnStarted,
)
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.platform import PlatformClient
from trunkline_workflow.runs import RunView

from .agent_programs import answer_of
from .auditor import QUIET, Broken, Past, Sort, reported_effect
from .background_load import EVERY, BackgroundLoad, BegunRun, BegunSchedule
from .effects import happened
from .load import Sent

SENT_AT = re.compile(r"The schedule '(\w+)' of this block sent this message at (\S+);")

Violation = tuple[Sort, str, str]


@dataclass(slots=True)
class BackgroundAccount:
    """The findings: tasks by state, due times by outcome, runs by status, and how many steps had which outcome."""

    tasks: Counter[str] = field(default_factory=Counter)
    dues: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    turns: int = 0
    broken: list[Broken] = field(default_factory=list)


async def audit_background(
    client: PlatformClient, sent: Sequence[Sent], file: Path, load: BackgroundLoad
) -> BackgroundAccount:
    """Compare everything that was begun with what is stored, when all is quiet. ``file`` has effects of ``sent``."""
    await _tasks_ended(client)
    account, pasts = BackgroundAccount(), await _pasts(client)
    account.turns = len(pasts)
    found: list[Violation] = [*_unended(pasts)]
    for one in sent:
        if one.request.tasks:
            listed = (await client.gateway.agents(conversation=one.conversation)).tasks
            tasks = [task for task in listed if task.parent.root == one.turn]
            account.tasks.update(task.state for task in tasks)
            account.tasks.update(["not begun"] * _unavailable(one, tasks, pasts))
            found += _family(one, tasks, pasts, happened(file))
    in_background = happened(load.file)
    for schedule in load.schedules:
        turns = _turns_of(schedule, pasts)
        found += _schedule(schedule, turns, account)
        found += _due_effects(schedule, turns, in_background)
    for run in load.runs:
        found += _run(run, pasts, in_background, account)
    account.broken = [Broken(*one) for one in found]
    account.broken += [Broken("broken", "background", problem) for problem in load.problems]
    return account


async def _tasks_ended(client: PlatformClient) -> None:
    """Wait until no task of an agent runs, at most as long as until the inbox must be empty."""
    with anyio.move_on_after(QUIET):
        while any(task.is_running for task in (await client.gateway.agents()).tasks):  # noqa: ASYNC110
            await anyio.sleep(0.2)


async def _pasts(client: PlatformClient) -> dict[str, Past]:
    pasts: dict[str, Past] = {}
    async for stored in client.bus.history(JOURNAL, after=0):
        past = pasts.setdefault(stored.data.turn, Past(first=stored.seq))
        past.entries.extend(stored.data.entries)
        past.last = stored.seq
    return pasts


def _unended(pasts: Mapping[str, Past]) -> Iterator[Violation]:
    """Every turn of the run, whoever began it, began once and ended once."""
    for turn, past in pasts.items():
        for kind in (TurnStarted, TurnFinished):
            count = len(past.all(kind))
            if count != 1:
                yield "doubled" if count else "lost", turn, f"{count} {kind.__name__} in its journal"


# Agents -------------------------------------------------------------------------------------------------------


def _family(
    one: Sent, tasks: Sequence[AgentTask], pasts: Mapping[str, Past], effects: Mapping[str, int]
) -> Iterator[Violation]:
    where = f"{one.request.kind} {one.request.mark} {one.conversation} {one.turn}"
    cancelled = bool(pasts[one.turn].all(CancelRecorded)) if one.turn in pasts else False
    fewer = cancelled or bool(_unavailable(one, tasks, pasts))
    if len(tasks) > len(one.request.tasks) or (len(tasks) < len(one.request.tasks) and not fewer):
        yield "lost", where, f"has {len(tasks)} tasks, not {len(one.request.tasks)}"
    for task in tasks:
        if task.is_running or (task.state != "done" and not cancelled):
            yield "lost", where, f"the task {task.id} is {task.state}"
        yield from _reported(where, task, pasts, cancelled)
        yield from _effects_of(where, pasts.get(task.id, Past()), effects)
    if not fewer:
        yield from _quoted(where, one, pasts)


def _unavailable(one: Sent, tasks: Sequence[AgentTask], pasts: Mapping[str, Past]) -> int:
    """The number of calls in a family that say that nothing was begun, because no gateway answered."""
    family = [pasts.get(turn, Past()) for turn in (one.turn, *(task.id for task in tasks))]
    outcomes = [entry.outcome for past in family for entry in past.all(ToolFinished)]
    return sum(outcome.error_kind == "unavailable" for outcome in outcomes)


def _reported(where: str, task: AgentTask, pasts: Mapping[str, Past], cancelled: bool) -> Iterator[Violation]:
    """The result of a task is once in the journal of the turn that waits for it."""
    above = pasts.get(task.parent.turn, Past())
    count = sum(entry.report.task == task.id for entry in above.all(AgentReportRecorded))
    if count > 1 or (count == 0 and not cancelled):
        yield "doubled" if count else "lost", where, f"the result of {task.id} came {count} times"
    if task.id not in pasts and not cancelled:
        yield "lost", where, f"the task {task.id} has no turn"


def _quoted(where: str, one: Sent, pasts: Mapping[str, Past]) -> Iterator[Violation]:
    """The results that the calling turn got are those of its tasks, each once."""
    outcomes = pasts.get(one.turn, Past()).all(ToolFinished)
    text = "\n".join(entry.outcome.output for entry in outcomes)
    for task in one.request.tasks:
        if "-" in task.partition("-")[2]:
            continue  # the result of an agent below, which the agent above quotes
        count = text.count(answer_of(task))
        if count != 1:
            yield "doubled" if count else "lost", where, f"the answer of {task} came {count} times"


# Schedules ----------------------------------------------------------------------------------------------------


def _turns_of(schedule: BegunSchedule, pasts: Mapping[str, Past]) -> list[tuple[datetime, Past]]:
    """The due times that have turns, with the journals, in the order in which the turns began."""
    found: list[tuple[datetime, Past]] = []
    for past in pasts.values():
        for started in past.all(TurnStarted)[:1]:
            said = SENT_AT.search(str(started.request.instructions))
            if started.request.trigger == "schedule" and said is not None and said[1] == schedule.name:
                found.append((datetime.fromisoformat(said[2]).astimezone(UTC), past))
    return sorted(found, key=lambda one: one[1].first)


def _schedule(
    schedule: BegunSchedule, turns: Sequence[tuple[datetime, Past]], account: BackgroundAccount
) -> Iterator[Violation]:
    """Each due time has one turn, or is reported as passed over."""
    where, counts = f"schedule {schedule.name}", Counter(due for due, _ in turns)
    passed = _passed_over(schedule)
    account.dues.update({"turns": len(turns)})
    account.dues.update(passed.values())
    for due in schedule.dues:
        if counts[due] > 1 or (counts[due] and due in passed):
            yield "doubled", where, f"{due} has {counts[due]} turns; reported: {passed.get(due)}"
        elif not counts[due] and due not in passed:
            yield "lost", where, f"{due} has no turn, and no state says why: {schedule.runs.get(due)}"
    for due in (counts.keys() | passed.keys()) - set(schedule.dues):
        yield "broken", where, f"{due} is no due time"
    if schedule.name == "queue":
        for (due, past), (later, after) in pairwise(turns):
            if later < due or after.first < past.last:
                yield "broken", where, f"the turns of {due} and {later} overlap or changed places"


def _passed_over(schedule: BegunSchedule) -> dict[datetime, str]:
    """The due times without a turn, with the outcome that the state reports."""
    every = timedelta(seconds=EVERY[schedule.name])
    without = [run for run in schedule.runs.values() if run.outcome in ("skipped", "missed")]
    return {run.due_at - every * number: run.outcome for run in without for number in range(run.count)}


def _due_effects(
    schedule: BegunSchedule, turns: Sequence[tuple[datetime, Past]], effects: Mapping[str, int]
) -> Iterator[Violation]:
    """There are as many effects as calls that report one, and no more than those and the ones in doubt."""
    outcomes = Counter(entry.outcome.status for _, past in turns for entry in past.all(ToolFinished))
    count, least = effects.get(f"due-{schedule.name}", 0), outcomes["ok"]
    if not least <= count <= least + outcomes["unknown"]:
        sort: Sort = "lost" if count < least else "doubled"
        yield sort, f"schedule {schedule.name}", f"{count} effects; the calls say {dict(outcomes)}"


# Workflows ----------------------------------------------------------------------------------------------------


def _run(
    run: BegunRun, pasts: Mapping[str, Past], effects: Mapping[str, int], account: BackgroundAccount
) -> Iterator[Violation]:
    where, view = f"workflow {run.mark}", run.view
    if view is None or not view.ended:
        account.runs["not ended"] += 1
        yield "lost", where, f"it is {view.status if view else 'not begun'}"
        return
    account.runs[view.status] += 1
    if view.status != "completed":
        yield "broken", where, f"it is {view.status}: {view.detail}"
    past = pasts.get(view.record.turn, Past())
    decisions = [entry.allow for entry in past.all(ApprovalRecorded)]
    if decisions != [run.allow]:
        yield "broken", where, f"a person said {run.allow}; the journal has {decisions}"
    yield from _effects_of(where, past, effects)
    yield from _steps(where, run, view, effects)
    account.steps.update(entry.outcome.status for entry in past.all(ToolFinished))


def _steps(where: str, run: BegunRun, view: RunView, effects: Mapping[str, int]) -> Iterator[Violation]:
    """The steps that were to run did, in their order, and the others had no effect."""
    expected = ["one", "two", "review", "go" if run.allow else "stay", "end"]
    visited = [visit.step for visit in view.state.visits]
    if visited != expected:
        yield "broken", where, f"the steps were {visited}, not {expected}"
    other = f"{run.mark}-{'stay' if run.allow else 'go'}"
    if effects.get(other, 0):
        yield "broken", where, f"{other} had its effect"


def _effects_of(where: str, past: Past, effects: Mapping[str, int]) -> Iterator[Violation]:
    """Each effect happened at most once, and as often as the outcome of its call says."""
    outcomes: dict[str, ToolOutcome] = {entry.call_id: entry.outcome for entry in past.all(ToolFinished)}
    cancelled = bool(past.all(CancelRecorded))
    planned = {entry.call.id: entry.call for entry in past.all(ToolPlanned) if entry.call.name == "transfer"}
    for id, call in planned.items():
        mark = str(call.arguments.get("mark", ""))
        count = effects.get(mark, 0)
        if count > 1:
            yield "doubled", where, f"the effect {mark} happened {count} times"
        for sort, what in reported_effect(mark, count, outcomes.get(id), cancelled, False):
            yield sort, where, what
