"""The run: a platform, people who send messages, planned faults, and the final findings."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx
from anyio.abc import TaskGroup

from trunkline_bus import new_id

from .agent_programs import draw_mixed_message
from .auditor import Account, Auditor, Broken
from .background_audit import BackgroundAccount, audit_background
from .background_load import BackgroundLoad
from .costs import Bill, bill_of
from .faults import Fault, Kind, plan, rolling, victims
from .feed_listener import Ear
from .load import Load
from .model_requests import Given, given_of
from .platform_processes import FaultTarget, Setting, started_target
from .programs import draw_message
from .stream_gaps import Gap, gaps, shown, worst

FORGET_EVERY = 40
"""After so many faults the scripted provider is told to forget what it was asked, so that it stays small."""


LEAST = 2
"""Faults that there are in any case, however slow the machine is: a run with fewer says nothing."""

LONG = 2.0
"""Seconds from which a silence is worth a line of the timeline."""


@dataclass(frozen=True, slots=True)
class Order:
    """The plan of a run: ``faults`` by ``seed``, ``pause`` seconds apart on average, for at most ``seconds`` once there
    were ``LEAST``; ``people`` send messages.

    ``pile``: the share of faults that may strike while others are still down; the rest wait until every process is up.
    ``settle``: seconds until every accepted message must be answered after the last fault. ``rolling``: orderly
    restarts, one after the other, instead of random faults. ``only``: the one kind of fault. ``mixed``: people's turns
    give tasks to agents, and schedules and workflows run beside them. ``setting``: the processes of the run; with small
    disks, the faults fill the disks.
    """

    seed: int
    faults: int
    seconds: float
    people: int = 6
    pause: float = 1.0
    pile: float = 0.5
    settle: float = 60.0
    rolling: bool = False
    only: Kind | None = None
    mixed: bool = False
    setting: Setting = field(default_factory=Setting)

    def plan(self, servers: tuple[str, ...]) -> Iterator[Fault]:
        """The faults."""
        if self.rolling:
            return rolling(self.faults, self.pause, servers)
        weights = victims(servers, disks=self.setting.disks)
        return plan(self.seed, self.faults, self.pause, weights, self.pile, self.only)


@dataclass(slots=True)
class Outcome:
    """The record of a run.

    ``given``: the content of each model call. ``bills``: what the vendor bills for each. ``gaps``: on the feed.
    ``shown``: the items that a reader received.
    ``passing``: errors that ended an HTTP stream but not its turn. ``background``: the account of agents, schedules and
    workflows of a mixed run.
    """

    order: Order
    seconds: float = 0.0
    given: list[Given] = field(default_factory=list)
    bills: list[Bill] = field(default_factory=list)
    turns: int = 0
    steered: int = 0
    clients: int = 0
    faults: dict[tuple[str, Kind], int] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    shown: list[Gap] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    background: BackgroundAccount | None = None
    failed_starts: int = 0
    passing: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[Broken]:
        """Every promise that was not kept."""
        return [*self.account.broken, *(self.background.broken if self.background is not None else ())]

    @property
    def struck(self) -> int:
        """Return the number of faults."""
        return sum(self.faults.values())


@dataclass(frozen=True, slots=True)
class _Model:
    """The scripted model at ``url``. Its requests are stored in the outcome."""

    url: str
    outcome: "Outcome"

    async def gather(self) -> None:
        """Store the model's requests, and clear them there."""
        async with httpx.AsyncClient(timeout=60) as http:
            requests = (await http.delete(self.url.removesuffix("/v1") + "/_requests")).json()
        asked = [one for one in requests if one["method"] == "POST"]
        self.outcome.given.extend(given_of(one["body"]) for one in asked)
        self.outcome.bills.extend(map(bill_of, asked))


async def run(order: Order, home: Path, provider: str, tell: Callable[[str], None]) -> Outcome:
    """Run it in ``home``, against the model at ``provider``; ``tell`` receives the progress."""
    for ours in ("trunkline_bus", "asyncio"):  # the workers have logs
        logging.getLogger(ours).setLevel(logging.CRITICAL)
    outcome, ear = Outcome(order), Ear()
    file = home / f"effects-{new_id()}"
    async with started_target(home, provider, order.setting) as target:
        token = target.running.token
        await ear.listen(target.running.bus)
        async with (
            httpx.AsyncClient(
                headers={"Authorization": f"Bearer {token}"},
                timeout=30,
                limits=httpx.Limits(max_connections=None),
            ) as http,
            anyio.create_task_group() as tasks,
        ):
            draw = draw_mixed_message if order.mixed else draw_message
            load = Load(target, http, order.seed, file, tasks, draw)
            background = BackgroundLoad(
                target.running.bus, order.seed, home / f"background-{new_id()}", tasks
            )
            began = anyio.current_time()
            if order.mixed:
                await background.begin()
            await _inject_faults(order, target, load, _Model(provider, outcome), tasks, tell)
            await _settle(order, load, background, tell)
            outcome.seconds = anyio.current_time() - began
            tasks.cancel_scope.cancel()
        tell("checking")
        await _Model(provider, outcome).gather()
        auditor = Auditor(target.running, file, outcome.given, outcome.bills, may_refuse=order.setting.disks)
        outcome.account = await auditor.audit(load.sent)
        if order.mixed:
            outcome.background = await audit_background(target.running, load.sent, file, background)
        _sum_up(outcome, target, load, ear)
        await anyio.Path(home / "timeline.txt").write_text("\n".join(_timeline(target, ear)) + "\n")
    return outcome


async def _inject_faults(
    order: Order,
    target: FaultTarget,
    load: Load,
    model: _Model,
    tasks: TaskGroup,
    tell: Callable[[str], None],
) -> None:
    """Send messages and inject faults, then wait until every process is up again."""
    load.begin(order.people)
    tasks.start_soon(target.watch_over)
    async with anyio.create_task_group() as blows:
        over = anyio.current_time() + order.seconds
        with anyio.CancelScope() as storm:
            for fault in order.plan(target.servers.names):
                if len(target.struck) >= LEAST:
                    storm.deadline = over
                if fault.patient:
                    await target.until_all_up()
                await anyio.sleep(fault.pause)
                victim = await target.strike(fault, blows)
                done = f"{fault.number + 1}/{order.faults}"
                tell(f"{done} {fault.kind(victim)} {victim}, {len(load.sent)} turns")
                if fault.number % FORGET_EVERY == FORGET_EVERY - 1:
                    await model.gather()
        tell("waiting for everybody to be up")


async def _settle(order: Order, load: Load, background: BackgroundLoad, tell: Callable[[str], None]) -> None:
    """Begin nothing new, and wait until every client has received the end of the accepted messages."""
    load.stopping = True
    tell("waiting for the last answers")
    with anyio.move_on_after(order.settle):
        if order.mixed:
            await background.finish()
        await load.until_quiet()


def _sum_up(outcome: Outcome, target: FaultTarget, load: Load, ear: Ear) -> None:
    seen = [one for sent in load.sent for one in sent.seen]
    outcome.turns, outcome.clients = len(load.sent), len(seen)
    outcome.steered = sum(len(sent.steered) for sent in load.sent)
    outcome.faults = dict(target.counted)
    outcome.gaps = gaps(target.struck, ear.silences.values())
    outcome.shown = gaps(target.struck, [shown(one) for one in seen if one.client == "feed"])
    outcome.failed_starts = target.failed_starts
    outcome.passing = [error for one in seen for error in getattr(one, "passing", ())]
    broken = outcome.account.broken
    broken.extend(Broken("broken", "process", problem) for problem in target.problems)
    broken.extend(Broken("broken", "client", problem) for problem in load.problems)


def _timeline(target: FaultTarget, ear: Ear) -> list[str]:
    """Faults and long silences in the order of time, to be read beside the logs."""
    shift = time.time() - anyio.current_time()
    reported = [(one.at, f"{one.kind} {one.victim}") for one in target.struck]
    reported += [
        (at, f"{length:.2f} s of silence in {turn}") for at, length, turn in worst(ear.silences, LONG)
    ]
    return [f"{datetime.fromtimestamp(at + shift, UTC):%H:%M:%S.%f} {what}" for at, what in sorted(reported)]
