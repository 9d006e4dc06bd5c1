"""Windows, and the budgets that a call counts toward."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from trunkline import Message
from trunkline.api.model import ModelError, ModelRequest
from trunkline.config import load_config
from trunkline.plugins import Plugins
from trunkline_budget.budgets import BudgetLimit, Window, budgets_of, day_window, hour_window
from trunkline_budget.settings import BlockLimits, BudgetSettings

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 11, 27, 12, 30, tzinfo=UTC)
REQUEST = ModelRequest(messages=(Message(id="m", role="user", content="hello"),))
HOUR = Window("2026-11-27T13", datetime(2026, 11, 27, 14, tzinfo=BERLIN))
DAY = Window("2026-11-27", datetime(2026, 11, 28, tzinfo=BERLIN))


@pytest.mark.parametrize(
    ("at", "day", "end"),
    [
        ("2026-11-27T22:59:59+00:00", "2026-11-27", "2026-11-27T23:00:00+00:00"),
        ("2026-11-27T23:00:00+00:00", "2026-11-28", "2026-11-28T23:00:00+00:00"),
        ("2026-03-29T10:00:00+00:00", "2026-03-29", "2026-03-29T22:00:00+00:00"),  # 23 hours long
        ("2026-10-25T10:00:00+00:00", "2026-10-25", "2026-10-25T23:00:00+00:00"),  # 25 hours long
    ],
)
def test_a_day_is_the_owner_day(at: str, day: str, end: str) -> None:
    """It begins and ends at midnight in the owner's time zone, also when the clock changes."""
    window = day_window(datetime.fromisoformat(at), BERLIN)
    assert window.key == day and window.end == datetime.fromisoformat(end)


def test_an_hour_that_the_clock_repeats_is_one_window() -> None:
    """The limit of an hour does not open a second time."""
    first, second = (hour_window(datetime(2026, 10, 25, hour, 30, tzinfo=UTC), BERLIN) for hour in (0, 1))
    assert first.key == second.key == "2026-10-25T02"


def test_without_a_zone_the_machine_decides() -> None:
    """The window has this machine's date."""
    assert day_window(NOON, None).key == NOON.astimezone().date().isoformat()


def test_a_call_counts_toward_its_turn_its_block_and_all_blocks() -> None:
    """The narrowest budget comes first. Only what has a limit is counted."""
    settings = BudgetSettings(
        max_daily_spend=5.0,
        max_turn_spend=0.1,
        per_block=BlockLimits(max_daily_spend=1.0),
        blocks={"free": BlockLimits(max_loops_per_hour=7)},
        time_zone="Europe/Berlin",
    )
    turn = BudgetLimit("spend", Window("turn"), 100_000, "main", "turn_1")
    total = BudgetLimit("spend", DAY, 5_000_000)
    assert budgets_of(settings, "spend", "main", "turn_1", NOON) == (
        turn,
        BudgetLimit("spend", DAY, 1_000_000, "main"),
        total,
    )
    assert budgets_of(settings, "spend", "free", "", NOON) == (total,)
    assert budgets_of(settings, "loops", "free", "", NOON) == (BudgetLimit("loops", HOUR, 7, "free"),)
    assert budgets_of(settings, "loops", "main", "turn_1", NOON) == ()


def test_counters_of_different_owners_differ() -> None:
    """Also for a block that is called like another owner."""
    owners = [("total", ""), ("", ""), ("main", ""), ("main", "turn_1"), ("turn_1", "")]
    places = {BudgetLimit("spend", DAY, 1, block, turn).place for block, turn in owners}
    assert len(places) == len(owners)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("max_daily_spend = 0", "max_daily_spend must be a number >= 0.0001"),
        ("max_daily_spend = -1.5", "max_daily_spend must be a number >= 0.0001"),
        ("max_daily_spend = inf", "max_daily_spend must be a number <= 1000000000"),
        ("max_turn_spend = 1e300", "max_turn_spend must be a number <= 1000000000"),
        ("max_turn_spend = 1e-9", "max_turn_spend must be a number >= 0.0001"),
        (
            "max_loops_per_hour = 1000000000000000000000",
            "max_loops_per_hour must be a whole number <= 1000000000",
        ),
        ("max_loops_per_hour = 0", "max_loops_per_hour must be a whole number >= 1"),
        ("max_turn_loops = 1.5", "max_turn_loops must be a whole number"),
        ('currency = "EUR"', "currency cannot be 'EUR'"),
        ('time_zone = "Atlantis/Capital"', "there is no such time zone"),
        ("max_spend = 1", "max_spend is not a setting"),
        ("blocks.main.max_daily_spend = 0", "max_daily_spend must be a number >= 0.0001"),
    ],
)
@pytest.mark.anyio
async def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    """The key and the file are named, and no model can be called. Zero is a mistake, not a way to say no limit."""
    (tmp_path / "trunkline.toml").write_text(f"[plugins.budget]\n{line}\n")
    plugins = Plugins.load(load_config(tmp_path, environ={}), worker="monitor")
    (guard,) = (one.item for one in plugins.model_middleware() if one.owner == "trunkline-budget")
    with pytest.raises(ModelError, match="guard of the plugin trunkline-budget is broken"):
        async for _ in guard(REQUEST, None):  # type: ignore[arg-type]
            pass
    problem = str(plugins.report.troubles[0])
    assert reason in problem and "plugins.budget" in problem
