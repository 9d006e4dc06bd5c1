"""The counters of budgets on the bus, and the reservations that calls hold.

A budget of spending has two counters in its window: ``spent`` is the cost of what ended, and ``reserved`` is that plus
the reservations of the calls that run. A call is admitted by its increment of ``reserved``, which is atomic, so no
number of workers can spend the same dollar. Each increment carries the id of its request, so that ``reconciler`` can
complete what a killed process left (ADR 65).
"""

import logging
from collections.abc import Sequence
from typing import Literal

import anyio

from trunkline.api.bus import Bus, BusError
from trunkline.api.costs import BUDGET_COUNTER
from trunkline_budget.budgets import BudgetLimit

log = logging.getLogger(__name__)

RELEASE_SECONDS = 5.0
"""Seconds in which a cancelled reservation is released. ``reconciler`` releases what this leaves."""

CounterName = Literal["reserved", "spent", "loops", "resets"]
SPEND_COUNTERS: tuple[CounterName, ...] = ("spent", "reserved")


class Exhausted(Exception):
    """A budget has nothing left. ``used`` is the number of its counter, reservations included."""

    def __init__(self, budget: BudgetLimit, used: int) -> None:
        super().__init__(f"{budget.measure} of {budget.place}")
        self.budget = budget
        self.used = used


class BudgetCounters:
    """Changes and reads the counters. Every method raises BusError while the bus does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def reserve(
        self, request: str, budgets: Sequence[BudgetLimit], smallest: int, largest: int, attempt: int
    ) -> int:
        """Reserve micro-USD of every budget for a request, and return the amount.

        The amount is ``largest`` if that is left. Otherwise it is what is left, but at least ``smallest``: so a call is
        admitted as long as anything is left, and a budget is exceeded by less than the smallest reservation of one
        call. Raises Exhausted, with nothing reserved, if a budget has nothing left. If it raises anything else, also
        because the caller was cancelled, what was reserved is released: nothing was sent.
        """
        changes = _Changes(self, request, attempt)
        try:
            return await self._reserve(changes, budgets, smallest, largest)
        except Exhausted:
            raise
        except BaseException:
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                await changes.take_back()
            raise

    async def _reserve(
        self, changes: "_Changes", budgets: Sequence[BudgetLimit], smallest: int, largest: int
    ) -> int:
        amount, held = largest, list[BudgetLimit]()
        for budget in budgets:
            held.append(budget)
            before = await changes.add(budget, amount, "reserve") - amount
            if before >= budget.limit:
                await changes.add_all(held, -amount, "release")
                raise Exhausted(budget, before)
            fitting = max(budget.limit - before, smallest)
            if fitting < amount:
                await changes.add_all(held, fitting - amount, f"shrink-{len(held)}")
                amount = fitting
        return amount

    async def settle(self, request: str, budgets: Sequence[BudgetLimit], reserved: int, cost: int) -> None:
        """Replace the reservation of a request by its cost."""
        await self._add_all("spent", budgets, cost, request, "settle")
        await self._add_all("reserved", budgets, cost - reserved, request, "settle")

    async def count_loop(self, call: str, budgets: Sequence[BudgetLimit]) -> None:
        """Count one loop in every budget. Raises Exhausted, with nothing counted, if a budget has none left."""
        held: list[BudgetLimit] = []
        for budget in budgets:
            after = await self.add("loops", budget, 1, call, "count")
            held.append(budget)
            if after > budget.limit:
                await self._add_all("loops", held, -1, call, "release")
                raise Exhausted(budget, after - 1)

    async def add(self, name: CounterName, budget: BudgetLimit, amount: int, label: str, step: str) -> int:
        """Change a counter once for each label and step, and return the number after it."""
        return await self.add_at(name, budget.place, amount, label, step)

    async def add_at(
        self, name: CounterName, place: tuple[str, str], amount: int, label: str, step: str
    ) -> int:
        """Do the same for the window and owner of a budget."""
        window, of = place
        msg_id = ".".join((label, step, name, window, of))
        return await self._bus.increment(
            BUDGET_COUNTER, amount, msg_id=msg_id, label=label, measure=name, window=window, of=of
        )

    async def number(self, name: CounterName, budget: BudgetLimit) -> int:
        """Return the number of a counter."""
        window, of = budget.place
        return await self._bus.total(BUDGET_COUNTER, measure=name, window=window, of=of)

    async def used(self, budget: BudgetLimit) -> int:
        """Return what is used of a budget, without reservations."""
        return await self.number("spent" if budget.measure == "spend" else "loops", budget)

    async def _add_all(
        self, name: CounterName, budgets: Sequence[BudgetLimit], amount: int, label: str, step: str
    ) -> None:
        for budget in budgets:
            await self.add(name, budget, amount, label, step)


class _Changes:
    """The changes of one attempt to reserve, which can be taken back even if nobody knows whether the last one
    arrived."""

    def __init__(self, counters: BudgetCounters, request: str, attempt: int) -> None:
        self._counters = counters
        self._request = request
        self._attempt = attempt
        self._made: list[tuple[BudgetLimit, int, str]] = []

    async def add(self, budget: BudgetLimit, amount: int, step: str) -> int:
        """Change the reservations of a budget, and return their sum after it."""
        name = f"{step}-{self._attempt}"
        self._made.append((budget, amount, name))
        return await self._counters.add("reserved", budget, amount, self._request, name)

    async def add_all(self, budgets: Sequence[BudgetLimit], amount: int, step: str) -> None:
        for budget in budgets:
            await self.add(budget, amount, step)

    async def take_back(self) -> None:
        """Make the sum of all changes zero. Each change is repeated first, which the server counts once."""
        sums: dict[BudgetLimit, int] = {}
        try:
            for budget, amount, name in self._made:
                await self._counters.add("reserved", budget, amount, self._request, name)
                sums[budget] = sums.get(budget, 0) + amount
            for budget, amount in sums.items():
                await self._counters.add(
                    "reserved", budget, -amount, self._request, f"cancel-{self._attempt}"
                )
        except BusError as error:
            log.warning("a cancelled reservation (%s) is released later: %s", self._request, error)
