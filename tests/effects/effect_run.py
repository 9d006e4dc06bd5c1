"""The proof: wave after wave of stopped calls, each struck by a fault, then all their reports are given to the
checker."""

import json
import math
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.tools.messages import EffectAsked, EffectFinished, ToolOutcome
from trunkline.contracts.turns.feed_messages import ToolEnded
from trunkline.contracts.turns.journal_messages import (
    ApprovalRecorded,
    ToolFinished,
    ToolPlanned,
    TurnFinished,
    denial_text,
)
from trunkline.contracts.turns.subjects import EFFECT, JOURNAL
from trunkline_bus import BusError, RemoteFault, Topic

from .effect_processes import FaultTarget, started_target
from .fault_injection import InjectedFault, Striker
from .fault_plan import Kind, Wave, plan
from .outcome_checker import Case, Finding, Standing, judge

AT_ONCE = 48
"""Turns that are sent or read at once."""

STILL = 4.0
"""Seconds without another call being held after which no more are waited for: those that failed never come."""

TIMEOUT = 90.0
"""Seconds within which every turn must have ended after a fault."""

DENIED = 0.2
"""The part of the questions that is answered with no."""


@dataclass(slots=True)
class Verdict:
    """The outcome of one call."""

    cases: list[Case] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, cases: Iterable[Case]) -> None:
        """Judge them."""
        for case in cases:
            self.cases.append(case)
            self.findings += judge(case)

    def count_again(self, effects: Counter[str]) -> None:
        """Judge all of them again by the effects up to now: late effects count too."""
        again = [replace(case, effects=effects.get(case.mark, case.effects)) for case in self.cases]
        self.cases, self.findings = [], []
        self.add(again)

    @property
    def injected(self) -> int:
        """Return the number of calls that were stopped at their boundary and struck there."""
        return sum(case.struck for case in self.cases)


@dataclass(slots=True)
class _Records:
    """The journal's and the ledger's records of a wave, by mark. ``calls``: turn and call id of a mark."""

    outcomes: dict[str, list[ToolOutcome]] = field(default_factory=dict)
    ledger: dict[str, ToolOutcome] = field(default_factory=dict)
    writers: dict[str, dict[str, str]] = field(default_factory=dict)
    """By whom each record in the ledger is."""
    ids: dict[tuple[str, str], str] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    def note(self, turn: str, entry: ToolFinished | ApprovalRecorded) -> None:
        """Record an outcome: a tools worker's reply, or a person's denial."""
        key = (turn, entry.call_id)
        if isinstance(entry, ToolFinished):
            self.outcomes.setdefault(self.ids[key], []).append(entry.outcome)
        elif not entry.allow and self.ids[key] not in self.decided:
            text = denial_text(self.names[key], entry.by)
            denied = ToolOutcome(call=entry.call_id, status="error", output=text)
            self.outcomes.setdefault(self.ids[key], []).append(denied)
        if isinstance(entry, ApprovalRecorded):
            self.decided.add(self.ids[key])


async def prove(target: FaultTarget, wave: Wave, asking: bool) -> list[Case]:
    """Run one wave: compare the reports of each of its waiting calls with the effects."""
    await target.restart_killed()
    since = {name: await target.running.bus.last_seq(topic) for name, topic in TOPICS.items()}
    async with _answered(target, wave, asking):
        accepted = await _sent(target, wave)
        held = await _held(target, wave)
        injected_fault = await Striker(target, wave, accepted, since).strike(held)
        await target.restart_killed()
        shown = await _watched(target, accepted)
    reported = await _read(target, since)
    return await _cases(target, wave, accepted, held, injected_fault, reported, shown)


TOPICS: Mapping[str, Topic[Any]] = {"effect": EFFECT, "journal": JOURNAL}


async def _sent(target: FaultTarget, wave: Wave) -> list[MessageAccepted]:
    accepted: dict[int, MessageAccepted] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def send(number: int, marks: Sequence[str]) -> None:
        calls = " ".join(f"{wave.kind.tool} {json.dumps({'mark': mark})}" for mark in marks)
        async with limiter:
            message = SendMessage(content=f"parallel:{calls} ;; say:done")
            accepted[number] = await target.gateway.send(message)

    async with anyio.create_task_group() as tasks:
        for number, marks in enumerate(wave.turns):
            tasks.start_soon(send, number, marks)
    return [accepted[number] for number in range(len(wave.turns))]


async def _held(target: FaultTarget, wave: Wave) -> dict[str, int]:
    """The calls that are held, once all are, or no more come."""
    found: dict[str, int] = {}
    since = anyio.current_time()
    while len(found) < len(wave.marks) and anyio.current_time() - since < STILL + 4 * (not found):
        await anyio.sleep(0.05)
        now = target.held(wave.number)
        if len(now) > len(found):
            found, since = now, anyio.current_time()
    return found


@asynccontextmanager
async def _answered(target: FaultTarget, wave: Wave, asking: bool) -> AsyncIterator[None]:
    """Answer the questions of the wave as they arrive, some of them with a denial."""
    async with anyio.create_task_group() as tasks:
        if asking:
            tasks.start_soon(_answer, target, random.Random(wave.number))
        yield
        tasks.cancel_scope.cancel()


async def _answer(target: FaultTarget, draw: random.Random) -> None:
    answered: set[str] = set()
    while True:
        try:
            for asked in await target.gateway.waiting():
                if asked.id not in answered:
                    allow = draw.random() >= DENIED
                    await target.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow)
                    answered.add(asked.id)
        except (BusError, RemoteFault, OSError):
            pass  # whoever takes questions is being struck
        await anyio.sleep(0.1)


async def _watched(
    target: FaultTarget, accepted: Iterable[MessageAccepted]
) -> dict[tuple[str, str], list[str]]:
    """Return the results that a reader of each turn's feed received, by turn and call."""
    shown: dict[tuple[str, str], list[str]] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def watch(one: MessageAccepted) -> None:
        async with limiter:
            async for event in target.gateway.watch(one.conversation, one.turn):
                if isinstance(event, ToolEnded):
                    shown.setdefault((one.turn, event.call_id), []).append(event.output)

    with anyio.move_on_after(TIMEOUT):
        async with anyio.create_task_group() as tasks:
            for one in accepted:
                tasks.start_soon(watch, one)
    return shown


async def _read(target: FaultTarget, since: dict[str, int]) -> _Records:
    reported, keys = _Records(), dict[str, str]()
    async for stored in target.running.bus.history(JOURNAL, after=since["journal"]):
        turn = stored.data.turn
        for entry in stored.data.entries:
            if isinstance(entry, ToolPlanned):
                mark = str(entry.call.arguments["mark"])
                keys[entry.key] = reported.ids[turn, entry.call.id] = mark
                reported.names[turn, entry.call.id] = entry.call.name
            elif isinstance(entry, ToolFinished | ApprovalRecorded) and (turn, entry.call_id) in reported.ids:
                reported.note(turn, entry)
            elif isinstance(entry, TurnFinished):
                reported.ended.add(turn)
    async for record in target.running.bus.history(EFFECT, after=since["effect"]):
        mark = keys.get(record.data.call, "")
        if isinstance(record.data, EffectFinished):
            reported.ledger[mark] = record.data.outcome
        if isinstance(record.data, EffectAsked):
            continue  # it has not begun
        by = "finished" if isinstance(record.data, EffectFinished) else "started"
        reported.writers.setdefault(mark, {})[by] = record.envelope.source
    return reported


def _standing(injected_fault: InjectedFault, mark: str, writers: Mapping[str, str]) -> Standing | None:
    """Return the last ledger record by the tools worker killed during the call; None when none was killed."""
    if mark not in injected_fault.left:
        return None
    if writers.get("finished") in injected_fault.dead:
        return "finished"
    return "started" if writers.get("started") in injected_fault.dead else ""


async def _cases(
    target: FaultTarget, wave: Wave, accepted: Sequence[MessageAccepted], held: dict[str, int],
    injected_fault: InjectedFault, reported: _Records, shown: dict[tuple[str, str], list[str]],
) -> list[Case]:  # fmt: skip
    """Every call that was held. The effects are counted last."""
    stored = await _stored(target, accepted, reported)
    effects = Counter(target.effects())
    turns = {mark: one.turn for one, marks in zip(accepted, wave.turns, strict=True) for mark in marks}
    ids = {mark: key for key, mark in reported.ids.items()}
    return [
        Case(
            mark=mark,
            fault=wave.kind.fault,
            struck=mark in injected_fault.struck,
            effects=effects[mark],
            outcomes=reported.outcomes.get(mark, ()),
            stored=stored.get(mark, ()),
            shown=shown.get(ids.get(mark, ("", "")), ()),
            ledger=reported.ledger.get(mark),
            standing=_standing(injected_fault, mark, reported.writers.get(mark, {})),
            answers=injected_fault.answers.get(mark, ()),
            cut=injected_fault.cut,
            made=mark in ids,
            ended=turns[mark] in reported.ended,
            tool=wave.kind.tool,
        )
        for mark in held
    ]


async def _stored(
    target: FaultTarget, accepted: Iterable[MessageAccepted], reported: _Records
) -> dict[str, list[str]]:
    """The results that the conversations hold, by mark."""
    found: dict[str, list[str]] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def read(one: MessageAccepted) -> None:
        async with limiter:
            view = await target.gateway.conversation(one.conversation, include_tools=True)
        for message in view.messages:
            mark = reported.ids.get((one.turn, message.tool_call_id or ""))
            if message.role == "tool" and mark is not None:
                found.setdefault(mark, []).append(message.content)

    async with anyio.create_task_group() as tasks:
        for one in accepted:
            tasks.start_soon(read, one)
    return found


async def play(
    home: Path, seed: int, kinds: Sequence[Kind], injections: int, size: tuple[int, int],
    tell: Callable[[Verdict, str], None] = lambda verdict, said: None, seconds: float = math.inf,
) -> Verdict:  # fmt: skip
    """Run waves until that many calls were struck or ``seconds`` are over: first those without questions, then, on a
    platform that asks, those with. ``size``: turns a wave, and calls a turn. ``tell`` receives each wave."""
    verdict = Verdict()
    whole, over = sum(kind.weight for kind in kinds), anyio.current_time() + seconds
    wanted = 0.0
    for asking in (False, True):
        its = [kind for kind in kinds if kind.asking is asking]
        wanted += injections * sum(kind.weight for kind in its) / whole
        if not its:
            continue
        async with started_target(home / ("asking" if asking else "plain"), asking=asking) as target:
            for wave in plan(seed, round(wanted) - verdict.injected, *size, its):
                if verdict.injected >= round(wanted) or anyio.current_time() >= over:
                    break
                verdict.add(await prove(target, wave, asking))
                tell(verdict, f"{wave.kind.fault}, {wave.kind.boundaries[0]} …")
            verdict.count_again(Counter(target.effects()))
    return verdict
