"""The budgets that a call of a model counts toward. Pure: the settings, the call and the time decide."""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from trunkline.api.costs import BudgetMeasure
from trunkline_budget.settings import BudgetSettings

TURN_WINDOW = "turn"
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A day or an hour in the owner's time zone, or the whole life of a turn. ``end`` is None for a turn."""

    key: str
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """A limit in a window, in micro-USD or calls: of a turn, of a block, or ("" and "") of all blocks."""

    measure: BudgetMeasure
    window: Window
    limit: int
    block: str = ""
    turn: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The window and the owner of the budget, by which its counters are found."""
        return self.window.key, budget_key(self.block, self.turn)


def budgets_of(
    settings: BudgetSettings, measure: BudgetMeasure, block: str, turn: str, now: datetime
) -> tuple[BudgetLimit, ...]:
    """Return the budgets that a call of this block and turn ("" for none) counts toward, the narrowest first."""
    own = settings.limits_of(block)
    window, unit = day_window(now, settings.zone), MICRO
    of_turn, of_block, of_all = settings.max_turn_spend, own.max_daily_spend, settings.max_daily_spend
    if measure == "loops":
        window, unit = hour_window(now, settings.zone), 1
        of_turn, of_block, of_all = (
            settings.max_turn_loops,
            own.max_loops_per_hour,
            settings.max_loops_per_hour,
        )
    found = []
    if turn and of_turn is not None:
        found.append(BudgetLimit(measure, Window(TURN_WINDOW), round(of_turn * unit), block, turn))
    if block and of_block is not None:
        found.append(BudgetLimit(measure, window, round(of_block * unit), block))
    if of_all is not None:
        found.append(BudgetLimit(measure, window, round(of_all * unit)))
    return tuple(found)


def budget_key(block: str, turn: str) -> str:
    """Return the part of a counter's subject that says whose budget it is."""
    if turn:
        return turn
    return f"block-{block}" if block else "total"


def day_window(now: datetime, zone: tzinfo | None) -> Window:
    """Return the day of a time in a zone; None is this machine's."""
    day = now.astimezone(zone).date()
    return Window(day.isoformat(), _midnight(day.year, day.month, day.day, zone))


def hour_window(now: datetime, zone: tzinfo | None) -> Window:
    """Return the hour of a time in a zone. An hour that a change of the clock repeats is one window."""
    local = now.astimezone(zone)
    begin = local.replace(minute=0, second=0, microsecond=0)
    return Window(f"{local:%Y-%m-%dT%H}", begin + timedelta(hours=1))


def _midnight(year: int, month: int, day: int, zone: tzinfo | None) -> datetime:
    """Return the midnight after a day."""
    after = datetime(year, month, day) + timedelta(days=1)
    return after.replace(tzinfo=zone) if zone is not None else after.astimezone()
