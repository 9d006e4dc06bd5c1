"""Keeps the counters of spending in agreement with the cost ledger.

A process may be killed between any two of its steps: after a reservation and before the request, after the request and
before it is settled. What it left is completed here from the ledger, which has every request. Every worker that asks
models does this; each correction has an id, so that it counts once. After the loss of the bus's files the counters are
filled from the ledger in memory, before any model is called.
"""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import anyio
import msgspec

from trunkline import LifespanContext, ToolError
from trunkline.api.bus import BusError
from trunkline.api.costs import (
    BUDGET_COUNTER,
    BUDGET_EVENT,
    BUDGET_FOLDER,
    COST,
    COST_FOLDER,
    OPENED_REQUEST,
    BudgetEvent,
    CostEntry,
)
from trunkline_budget.budgets import TURN_WINDOW, Window, budget_key, budgets_of, day_window
from trunkline_budget.counters import SPEND_COUNTERS, BudgetCounters, CounterName
from trunkline_budget.limits import BrokenLimits, LimitSource
from trunkline_budget.settings import BudgetSettings

log = logging.getLogger(__name__)

INTERVAL = 20.0
"""Seconds between two comparisons."""

SHORTEST_INTERVAL = 2.0
"""Seconds between two comparisons while a call waits for the reservations of others."""

LOOK_SECONDS = 4.0
"""Seconds between two looks at the limits. What was spent before counts toward a new one from then on, or from the next
call on, whichever is sooner."""

FIRST_PAUSE = 0.5
"""Seconds before a first comparison that failed is tried again: other workers may start at the same time."""

SETTLED_AFTER = timedelta(seconds=15)
"""Age from which a difference is corrected. The process that sent the request settles it sooner, or never."""

OPENED_AFTER = timedelta(seconds=60)
"""Age from which a reservation without a request is released. A request is sent within a shorter time, or never."""

READ_COUNTERS: tuple[CounterName, ...] = (*SPEND_COUNTERS, "resets")

Place = tuple[str, str]
"""The window and the owner of a budget."""

T = TypeVar("T")


@dataclass(slots=True)
class _LabelSum:
    """The increments of one label: their sum, number and last time."""

    amount: int = 0
    count: int = 0
    last: datetime = field(default_factory=lambda: datetime.min.replace(tzinfo=UTC))


class Reconciler:
    """Compares the counters with the ledger. ``ready`` is set when those of the present limits agree with it."""

    def __init__(self, settings: BudgetSettings, context: LifespanContext) -> None:
        self.ready = anyio.Event()
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._has_read_memory = False
        self._settings = settings
        self._context = context
        self._bus = context.bus
        self._counters = BudgetCounters(context.bus)
        self._sums: dict[tuple[CounterName, Place], dict[str, _LabelSum]] = {}
        self._costs: dict[str, CostEntry] = {}
        self._resets: dict[str, BudgetEvent] = {}
        self._only_in_memory: set[str] = set()
        """The ids of entries and resets that the streams have lost. No process settles these any more."""
        self._costs_read = self._increments_read = 0

    async def run(self, source: LimitSource) -> None:
        """Compare periodically until cancelled, while spending is limited. Failures are logged, a repeated one once."""
        told = ""
        while True:
            try:
                self._follow(await source.current())
                if self._settings.limits_spend:
                    await self._compare()
            except (BusError, ToolError, BrokenLimits) as error:
                if not self.ready.is_set():
                    if told != str(error):
                        log.info("the limits or the costs of today cannot be read yet: %s", error)
                    told = str(error)
                    await anyio.sleep(FIRST_PAUSE)
                    continue
                log.warning("the counters of budgets cannot be compared with the ledger now: %s", error)
            with anyio.move_on_after(SHORTEST_INTERVAL):
                await self._changed.wait()
            with anyio.move_on_after(INTERVAL - SHORTEST_INTERVAL):
                await self._wait_until_wanted(source)
            self._wanted, self._changed = anyio.Event(), anyio.Event()

    async def _wait_until_wanted(self, source: LimitSource) -> None:
        """Wait until a call hurries, or the limits are others. Limits that cannot be read are left to ``run``."""
        while not self._wanted.is_set():
            with anyio.move_on_after(LOOK_SECONDS):
                await self._wanted.wait()
            with suppress(BusError, BrokenLimits):
                self._follow(await source.current())

    async def agree(self, limits: BudgetSettings) -> None:
        """Return when the counters of these limits, or of newer ones, agree with the ledger."""
        self._follow(limits)
        while not self.ready.is_set():
            await self.ready.wait()

    def _follow(self, limits: BudgetSettings) -> None:
        """Compare for other limits from now on."""
        if limits != self._settings:
            self.ready.set()  # whoever waits waits for the next comparison
            self._settings, self.ready = limits, anyio.Event()
            self._changed.set()
            self._wanted.set()

    async def _compare(self) -> None:
        limits = self._settings
        if not self._has_read_memory:
            await self._read_memory()
            self._has_read_memory = True
        await self.reconcile()
        if limits == self._settings:
            self.ready.set()

    def hurry(self) -> None:
        """Compare soon, because a call waits for a reservation that may be that of a killed process."""
        self._wanted.set()

    async def reconcile(self) -> None:
        """Correct every difference that is old enough. Raises BusError."""
        now = datetime.now(UTC)
        opened = {stored.data.entry.id async for stored in self._bus.history(OPENED_REQUEST)}
        await self._read_streams(now)
        for place, label, cost in self._expected(now):
            for name in SPEND_COUNTERS:
                await self._correct(name, place, label, cost)
            if label in self._resets:
                await self._correct("resets", place, label, 1)
        for label, place in self._orphans(opened, now):
            log.info("a reservation of a killed process is released (%s)", label)
            await self._correct("reserved", place, label, self._spent(place, label))

    def _expected(self, now: datetime) -> Iterator[tuple[Place, str, int]]:
        """Yield what the ledger says: the place of a counter, the label, and the sum that its increments must have."""
        windows = (self._today(now).key, TURN_WINDOW)
        for entry in self._costs.values():
            ended = entry.at + timedelta(seconds=entry.seconds)
            is_due = entry.status == "interrupted" or self._is_due(
                entry.id, ended, now
            )  # its process is dead
            of_turn = entry.budget_turn or entry.turn
            for budget in budgets_of(self._settings, "spend", entry.block, of_turn, entry.at):
                if budget.window.key in windows and (
                    is_due or not self._was_reserved(budget.place, entry.id)
                ):
                    yield budget.place, entry.id, entry.cost or 0
        for event in self._resets.values():
            if self._is_due(event.id, event.at, now):
                yield (event.window, budget_key(event.block, event.turn)), event.id, -event.used

    def _was_reserved(self, place: Place, label: str) -> bool:
        """Report whether a call reserved anything of a budget. Nobody settles it in a budget that was set later."""
        return label in self._sums.get(("reserved", place), {})

    def _is_due(self, id: str, ended: datetime, now: datetime) -> bool:
        """Report whether no process settles this any more."""
        return id in self._only_in_memory or now - ended >= SETTLED_AFTER

    def _orphans(self, opened: set[str], now: datetime) -> list[tuple[str, Place]]:
        """Return the reservations of requests that were never sent, or not recorded."""
        return [
            (label, place)
            for (name, place), labels in self._sums.items()
            for label, one in labels.items()
            if name == "reserved" and one.amount > self._spent(place, label) and now - one.last > OPENED_AFTER
            if label not in opened and label not in self._costs and label not in self._resets
        ]

    def _spent(self, place: Place, label: str) -> int:
        """Return what a request was settled with. Of a turn that lasts for days the ledger of today does not say it."""
        return self._sums.get(("spent", place), {}).get(label, _LabelSum()).amount

    async def _correct(self, name: CounterName, place: Place, label: str, cost: int) -> None:
        known = self._sums.get((name, place), {}).get(label, _LabelSum())
        if known.amount != cost:
            await self._add(name, place, label, cost - known.amount, known)

    async def _add(self, name: CounterName, place: Place, label: str, amount: int, known: _LabelSum) -> None:
        """Add a correction. Its id has the number of increments before it, so that others do not repeat it."""
        await self._counters.add_at(name, place, amount, label, f"correct-{known.count}")

    # Reading -------------------------------------------------------------------------------------------------

    async def _read_streams(self, now: datetime) -> None:
        """Read the entries of the days that the owner's day covers, the resets, and the increments since the last
        time."""
        self._forget(now)
        position = self._costs_read
        for day in self._days(now):
            async for stored in self._bus.history(COST, after=position, day=day):
                self._costs[stored.data.id] = stored.data
                self._only_in_memory.discard(stored.data.id)
                self._costs_read = max(self._costs_read, stored.seq)
        async for event in self._bus.history(BUDGET_EVENT):
            self._take_event(event.data, now)
            self._only_in_memory.discard(event.data.id)
        async for one in self._bus.increments(BUDGET_COUNTER, after=self._increments_read):
            self._increments_read = one.seq
            for name in READ_COUNTERS:
                if name == one.keys["measure"]:
                    place = one.keys["window"], one.keys["of"]
                    known = self._sums.setdefault((name, place), {}).setdefault(one.label, _LabelSum())
                    known.amount += one.amount
                    known.count += 1
                    known.last = one.time

    async def _read_memory(self) -> None:
        """Read the ledger and the resets in memory. The streams may have lost them, or may be new. Raises ToolError."""
        now = datetime.now(UTC)
        for day in self._days(now):
            for entry in await self._lines(f"/{COST_FOLDER}/{day}.jsonl", CostEntry):
                self._costs[entry.id] = entry
            for event in await self._lines(f"/{BUDGET_FOLDER}/{day}.jsonl", BudgetEvent):
                self._take_event(event, now)
        self._only_in_memory = {*self._costs, *self._resets}

    async def _lines(self, path: str, kind: type[T]) -> list[T]:
        """Return the entries of a file; none if there is no file."""
        try:
            file = await self._context.memory("main").read(path)
        except ToolError as error:
            if error.kind == "not_found":
                return []
            raise
        found = []
        for line in file.content.splitlines():
            try:
                found.append(msgspec.json.decode(line, type=kind))
            except msgspec.MsgspecError:  # a person may have edited the file
                log.warning("a line of %s is no entry and is left out", path)
        return found

    def _take_event(self, event: BudgetEvent, now: datetime) -> None:
        if event.event == "reset" and event.measure == "spend" and event.window == self._today(now).key:
            self._resets[event.id] = event

    def _forget(self, now: datetime) -> None:
        """Forget what is over: the entries and the counters of earlier days."""
        days, today = self._days(now), self._today(now).key
        self._costs = {id: entry for id, entry in self._costs.items() if entry.day in days}
        self._resets = {id: event for id, event in self._resets.items() if event.window == today}
        self._sums = {key: labels for key, labels in self._sums.items() if key[1][0] in (today, TURN_WINDOW)}

    def _today(self, now: datetime) -> Window:
        return day_window(now, self._settings.zone)

    def _days(self, now: datetime) -> tuple[str, ...]:
        """Return the days in UTC that the owner's present day covers until now."""
        end = self._today(now).end
        assert end is not None
        begin = end.astimezone(UTC) - timedelta(hours=25)
        days = {f"{at:%Y-%m-%d}" for at in (begin, now)}
        return tuple(sorted(days))
