"""The breaker of one worker: its counters, and the refusal of calls beyond a budget."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NoReturn

import anyio

from trunkline import ErrorCode, LifespanContext
from trunkline.api.bus import Bus, BusError, SequenceConflict, key_of
from trunkline.api.costs import BUDGET_EVENT, BudgetEvent, budget_owner, describe_budget_event
from trunkline.api.model import ModelError
from trunkline_budget.budgets import BudgetLimit
from trunkline_budget.counters import BudgetCounters
from trunkline_budget.limits import BrokenLimits, LimitSource
from trunkline_budget.reconciler import Reconciler
from trunkline_budget.settings import BudgetSettings

log = logging.getLogger(__name__)

READY_SECONDS = 20.0
"""Seconds that a call waits until the counters agree with the ledger after the start."""


class BudgetBreaker:
    """Connects the middleware with the bus while the worker runs. Without the bus every call is refused."""

    def __init__(self, settings: BudgetSettings) -> None:
        self._settings = settings
        self._bus: Bus | None = None
        self._source: LimitSource | None = None
        self._reconciler: Reconciler | None = None

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Open the breaker's counters, and keep them in agreement with the ledger."""
        async with anyio.create_task_group() as tasks:
            self._bus = context.bus
            self._source = LimitSource(self._settings, context.memory("main"))
            self._reconciler = Reconciler(self._settings, context)
            tasks.start_soon(self._reconciler.run, self._source)
            try:
                yield
            finally:
                self._bus = self._source = None
                tasks.cancel_scope.cancel()

    @property
    def bus(self) -> Bus:
        """The bus. Raises ModelError if the lifespan has failed or ended."""
        if self._bus is None:
            raise _unchecked()
        return self._bus

    async def limits(self) -> BudgetSettings:
        """Return the limits that count now. Raises ModelError if nobody can know them, and BusError while memory does
        not answer.
        """
        if self._source is None:
            raise _unchecked()
        try:
            return await self._source.current()
        except BrokenLimits as error:
            raise ModelError(ErrorCode.OVER_BUDGET, "over_budget", f"{error} {error.hint}") from error

    async def counters(self, limits: BudgetSettings) -> BudgetCounters:
        """Return the counters, once those of these limits agree with the ledger. Raises BusError if they do not in
        time.
        """
        if self._reconciler is not None and limits.limits_spend:
            with anyio.move_on_after(READY_SECONDS) as waiting:
                await self._reconciler.agree(limits)
            if waiting.cancelled_caught:
                raise BusError("the costs of today cannot be read, so no budget can be checked")
        return BudgetCounters(self.bus)

    async def refuse(self, budget: BudgetLimit, used: int) -> NoReturn:
        """Publish that a budget is used up, once for each limit and reset, and raise ModelError."""
        resets = await BudgetCounters(self.bus).number("resets", budget)
        event = BudgetEvent(
            id=key_of("bankrupt", budget.measure, *budget.place, str(budget.limit), str(resets)),
            at=datetime.now(UTC),
            event="bankrupt",
            measure=budget.measure,
            window=budget.window.key,
            block=budget.block,
            turn=budget.turn,
            used=used,
            limit=budget.limit,
            opens_at=budget.window.end,
        )
        text = describe_budget_event(event)
        try:
            await self.bus.append(BUDGET_EVENT, event, expect=0, event=event.id)
            log.warning("%s", text)
        except SequenceConflict:  # it was published before
            pass
        except BusError as error:
            log.warning("%s (the event could not be published: %s)", text, error)
        raise ModelError(ErrorCode.OVER_BUDGET, "over_budget", text)

    def hurry(self) -> None:
        """Look soon for reservations of killed processes."""
        if self._reconciler is not None:
            self._reconciler.hurry()

    def refuse_busy(self, budget: BudgetLimit) -> NoReturn:
        """Raise ModelError for a budget of which calls that still run hold the rest."""
        owner = budget_owner(budget.block, budget.turn)
        why = f"Calls that still run hold the rest of the budget of {owner}. Try again when they have ended."
        raise ModelError(ErrorCode.RATE_LIMITED, "over_budget", why)


def _unchecked() -> ModelError:
    return ModelError(ErrorCode.OVER_BUDGET, "over_budget", "The budgets cannot be checked here.")
