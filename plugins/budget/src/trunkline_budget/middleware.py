"""Model middleware that refuses calls beyond a budget, before anything is sent to a vendor.

While the bus does not answer, no call is admitted: it raises BusError, and the turn waits for the bus.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime

import anyio
from msgspec.structs import replace

from trunkline import new_id
from trunkline.api.bus import BusError
from trunkline.api.costs import COST
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelEvent,
    ModelRequest,
    PriceTable,
    Rate,
)
from trunkline_budget.breaker import BudgetBreaker
from trunkline_budget.budgets import BudgetLimit, budgets_of
from trunkline_budget.counters import BudgetCounters, Exhausted

log = logging.getLogger(__name__)

SMALLEST_ANSWER = 1_000
"""Tokens of an answer that the smallest reservation of a call pays for. A shorter answer is rarely worth its input."""

WAIT_SECONDS = 30.0
"""Seconds that a call waits for the reservations of other calls, if those are all that is left of a budget. The
reservation of a killed process is released sooner, so the turn that takes over is not refused."""

PAUSE = 0.25

SETTLE_SECONDS = 5.0
"""Seconds in which a call that ended settles its reservation. ``reconciler`` settles what this leaves."""


Clock = Callable[[], datetime]
"""Returns the present time, with a time zone."""


class LoopLimit:
    """Counts each call of a model as one loop, and refuses calls beyond ``max_loops_per_hour``."""

    def __init__(self, breaker: BudgetBreaker, now: Clock) -> None:
        self._breaker = breaker
        self._now = now

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the call, or raise ModelError ``over_budget`` or BusError."""
        limits = await self._breaker.limits()
        budgets = budgets_of(limits, "loops", request.block, request.budget_turn or request.turn, self._now())
        try:
            if budgets:
                await (await self._breaker.counters(limits)).count_loop(new_id("loop"), budgets)
        except Exhausted as exhausted:
            await self._breaker.refuse(exhausted.budget, exhausted.used)
        async with aclosing(proceed(request)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event


class SpendLimit:
    """Reserves the price of each request before it is sent, and settles the reservation by what it cost.

    If less is left than the longest answer costs, the answer is limited to what is left.
    """

    each_request = True

    def __init__(self, breaker: BudgetBreaker, now: Clock, prices: PriceTable) -> None:
        self._breaker = breaker
        self._now = now
        self._prices = prices

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        """Yield the events of the request, or raise ModelError ``over_budget`` or BusError."""
        limits = await self._breaker.limits()
        budgets = budgets_of(limits, "spend", request.block, request.budget_turn or request.turn, self._now())
        if not budgets:
            async with aclosing(proceed(request)) as unlimited:  # type: ignore[type-var]
                async for event in unlimited:
                    yield event
            return
        rate = self._prices.find_rate(f"{request.adapter}/{request.model}", request.adapter)
        counters = await self._breaker.counters(limits)
        reserved = await self._reserve(counters, request, budgets, rate)
        cost: int | None = None
        try:
            async with aclosing(proceed(_within(request, rate, reserved))) as events:  # type: ignore[type-var]
                async for event in events:
                    if isinstance(event, Finish):
                        cost = event.cost or 0
                    yield event
        finally:
            with anyio.move_on_after(SETTLE_SECONDS, shield=True):
                await self._settle(counters, request, budgets, reserved, cost)

    async def _reserve(
        self,
        counters: BudgetCounters,
        request: ModelRequest,
        budgets: Sequence[BudgetLimit],
        rate: Rate | None,
    ) -> int:
        """Return the micro-USD that are reserved. Raises ModelError, BusError."""
        smallest, largest = _bounds(request, rate)
        deadline = anyio.current_time() + WAIT_SECONDS
        attempt = 0
        while True:
            try:
                return await counters.reserve(request.id, budgets, smallest, largest, attempt)
            except Exhausted as exhausted:
                budget = exhausted.budget
                spent = await counters.used(budget)
                if spent >= budget.limit:
                    await self._breaker.refuse(budget, spent)
                if anyio.current_time() > deadline:
                    self._breaker.refuse_busy(budget)
            self._breaker.hurry()
            attempt += 1
            await anyio.sleep(PAUSE)

    async def _settle(
        self,
        counters: BudgetCounters,
        request: ModelRequest,
        budgets: Sequence[BudgetLimit],
        reserved: int,
        cost: int | None,
    ) -> None:
        """Settle the reservation. The ledger has the cost of a request that failed or was cancelled."""
        try:
            if cost is None:
                stored = await self._breaker.bus.last(COST, id=request.id)
                cost = 0 if stored is None else stored.data.cost or 0
            await counters.settle(request.id, budgets, reserved, cost)
        except BusError as error:
            log.warning("the reservation of request %s is settled later: %s", request.id, error)


def _bounds(request: ModelRequest, rate: Rate | None) -> tuple[int, int]:
    """Return the smallest and the largest reservation of a request. A model without a price costs nothing."""
    if rate is None:
        return 0, 0
    largest = rate.max_cost(request)
    short = replace(request, max_tokens=min(SMALLEST_ANSWER, request.max_tokens or SMALLEST_ANSWER))
    return min(rate.max_cost(short), largest), largest


def _within(request: ModelRequest, rate: Rate | None, reserved: int) -> ModelRequest:
    """Return the request with its answer limited to what is reserved."""
    if rate is None or reserved >= rate.max_cost(request):
        return request
    affordable = rate.affordable_answer(request, reserved)
    return request if affordable is None else replace(request, max_tokens=max(1, affordable))
