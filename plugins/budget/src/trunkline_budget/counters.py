"""The counters of budgets on the bus, and the reservations that calls hold.

A budget of spending has two counters in its window: ``spent`` is the cost of what ended, and ``reserved`` is that plus
the reservations of the calls that run. A call is admitted by its increment of ``reserved``, which is atomic, so no
number of workers can spend the same dollar. Each increment carries the id of its request, so that ``reconciler`` can
complete what a killed process left (ADR 65).
"""

from collections.abc import Sequence
from typing import Literal

from trunkline.api.bus import Bus
from trunkline.api.costs import BUDGET_COUNTER
from trunkline_budget.budgets import BudgetLimit

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
        call. Raises Exhausted, with nothing reserved, if a budget has nothing left.
        """
        amount, held = largest, list[BudgetLimit]()
        for budget in budgets:
            after = await self.add("reserved", budget, amount, request, f"reserve-{attempt}")
            held.append(budget)
            before = after - amount
            if before >= budget.limit:
                await self._add_all("reserved", held, -amount, request, f"release-{attempt}")
                raise Exhausted(budget, before)
            fitting = max(budget.limit - before, smallest)
            if fitting < amount:
                step = f"shrink-{attempt}-{len(held)}"
                await self._add_all("reserved", held, fitting - amount, request, step)
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
