"""The present state of each budget, and its reset. For ``trunkline budget``."""

from datetime import UTC, datetime

import msgspec

from trunkline.api.bus import Bus, SequenceConflict, key_of
from trunkline.api.costs import BUDGET_COUNTER, BUDGET_EVENT, BudgetEvent, BudgetMeasure
from trunkline_budget.budgets import BudgetLimit, budgets_of, day_window, hour_window
from trunkline_budget.counters import SPEND_COUNTERS, BudgetCounters, CounterName
from trunkline_budget.settings import BudgetSettings

MEASURES: tuple[BudgetMeasure, ...] = ("spend", "loops")


class BudgetState(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a budget that is used. Amounts are micro-USD for ``spend`` and calls for ``loops``. ``reserved`` is
    held by calls that run now, in addition to ``used``.
    """

    measure: BudgetMeasure
    block: str
    window: str
    used: int
    reserved: int
    limit: int
    opens_at: datetime | None

    @property
    def is_exhausted(self) -> bool:
        """Report whether no call is admitted."""
        return self.used >= self.limit


async def budget_states(bus: Bus, settings: BudgetSettings) -> list[BudgetState]:
    """Return the budgets of all blocks together and of each block that has one, with what is used of them."""
    now, counters = datetime.now(UTC), BudgetCounters(bus)
    blocks = ["", *sorted({*settings.blocks, *await _blocks_with_counters(bus, settings, now)})]
    states = []
    for measure in MEASURES:
        for block in blocks:
            for budget in budgets_of(settings, measure, block, "", now):
                if budget.block == block:
                    states.append(await _state(counters, budget))
    return states


async def _state(counters: BudgetCounters, budget: BudgetLimit) -> BudgetState:
    used = await counters.used(budget)
    held = await counters.number("reserved", budget) - used if budget.measure == "spend" else 0
    return BudgetState(
        measure=budget.measure,
        block=budget.block,
        window=budget.window.key,
        used=used,
        reserved=max(0, held),
        limit=budget.limit,
        opens_at=budget.window.end,
    )


async def _blocks_with_counters(bus: Bus, settings: BudgetSettings, now: datetime) -> set[str]:
    found = set()
    for window in (day_window(now, settings.zone), hour_window(now, settings.zone)):
        async for one in bus.increments(BUDGET_COUNTER, window=window.key):
            if one.keys["of"].startswith("block-"):
                found.add(one.keys["of"].removeprefix("block-"))
    return found


async def reset_budgets(bus: Bus, settings: BudgetSettings, block: str, by: str) -> tuple[BudgetEvent, ...]:
    """Begin the present windows of a block ("" for all blocks together) anew, and return what was reset: nothing for a
    block that has no limits of its own and has used nothing, such as a misspelt one.

    The event is stored first, so that a reset which is killed in the middle is completed by the monitors.
    """
    now, counters = datetime.now(UTC), BudgetCounters(bus)
    if block and block not in {*settings.blocks, *await _blocks_with_counters(bus, settings, now)}:
        return ()
    events = []
    for measure in MEASURES:
        for budget in budgets_of(settings, measure, block, "", now):
            if budget.block == block:
                events.append(await _reset(bus, counters, budget, by, now))
    return tuple(events)


async def reset_event(counters: BudgetCounters, budget: BudgetLimit, by: str, now: datetime) -> BudgetEvent:
    """Return the next reset of a budget. Its id has the number of resets before it, so that of several resets at the
    same time one can be stored.
    """
    resets = await counters.number(
        "resets", budget
    )  # read first: what was used before this reset is taken back then
    return BudgetEvent(
        id=key_of("reset", budget.measure, *budget.place, str(resets)),
        at=now,
        event="reset",
        measure=budget.measure,
        window=budget.window.key,
        block=budget.block,
        used=await counters.used(budget),
        limit=budget.limit,
        opens_at=budget.window.end,
        by=by,
    )


async def _reset(
    bus: Bus, counters: BudgetCounters, budget: BudgetLimit, by: str, now: datetime
) -> BudgetEvent:
    while True:
        event = await reset_event(counters, budget, by, now)
        try:
            await bus.append(BUDGET_EVENT, event, expect=0, event=event.id)
        except (
            SequenceConflict
        ):  # another reset is under way, or was killed: it is completed, and the next one made
            earlier = await bus.last(BUDGET_EVENT, event=event.id)
            await _take_back(bus, counters, budget, event if earlier is None else earlier.data)
        else:
            await _take_back(bus, counters, budget, event)
            return event


async def _take_back(bus: Bus, counters: BudgetCounters, budget: BudgetLimit, event: BudgetEvent) -> None:
    """Subtract what a reset gives back, unless it was subtracted before."""
    names: tuple[CounterName, ...] = SPEND_COUNTERS if budget.measure == "spend" else ("loops",)
    amounts: dict[CounterName, int] = {**dict.fromkeys(names, -event.used), "resets": 1}
    window, of = budget.place
    for name, amount in amounts.items():
        labels = {
            one.label async for one in bus.increments(BUDGET_COUNTER, measure=name, window=window, of=of)
        }
        if event.id not in labels:
            await counters.add(name, budget, amount, event.id, "reset")
