"""The budgets over HTTP: their state and their reset, for the owner alone."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform, platform
from trunkline_budget.budgets import budgets_of
from trunkline_budget.counters import BudgetCounters
from trunkline_budget.settings import BudgetSettings

pytestmark = pytest.mark.anyio

VISITORS = (
    Identity(id="guest", scope=TokenScope.OPERATE),
    Identity(id="operator", type="owner", scope=TokenScope.OPERATE),
    Identity(id="limited", type="owner", blocks=("main",)),
)


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    config = {"plugins.budget.max_daily_spend": 5.0}
    async with platform(
        workers=("gateway", "memory"), plugins=(Visitors(*VISITORS),), config=config
    ) as started:
        await share(started.bus, "operate")
        yield started


def client(running: Platform, headers: dict[str, str]) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60)


async def test_a_used_budget_begins_anew(running: Platform) -> None:
    """Its state shows what is used of which limit, and the reset is in the history. A misspelt block is 404."""
    budget = budgets_of(BudgetSettings(max_daily_spend=5.0), "spend", "main", "", datetime.now(UTC))[-1]
    counters = BudgetCounters(running.bus)
    for name in ("spent", "reserved"):
        await counters.add(name, budget, 5_000_000, "request_1", "end")
    async with client(running, {"authorization": f"Bearer {running.token}"}) as http:
        state = (await http.get("/x/trunkline-budget/budgets")).json()
        (spend,) = state["budgets"]
        assert (spend["used"], spend["limit"], spend["block"]) == (5_000_000, 5_000_000, "")
        assert state["limits"] == ["all blocks at most $5.00 a day"]
        for body, status in ((b"[]", 400), (b"\xff", 400), (b'{"block": "gardn"}', 404)):
            assert (await http.post("/x/trunkline-budget/reset", content=body)).status_code == status
        (event,) = (await http.post("/x/trunkline-budget/reset")).json()["events"]
        assert (event["event"], event["used"], event["by"]) == ("reset", 5_000_000, "owner")
        assert (await http.get("/x/trunkline-budget/budgets")).json()["budgets"][0]["used"] == 0
        assert (await http.get("/api/budgets/history")).json()["events"][0]["id"] == event["id"]


@pytest.mark.parametrize("who", [one.id for one in VISITORS])
async def test_nobody_but_the_owner_sees_or_resets_budgets(running: Platform, who: str) -> None:
    """Not by operating every block, not with a smaller token of the owner, nor with one for some blocks."""
    async with client(running, {HEADER: who}) as http:
        assert (await http.get("/x/trunkline-budget/budgets")).status_code == 403
        assert (await http.post("/x/trunkline-budget/reset")).status_code == 403
    async with client(running, {}) as http:
        assert (await http.post("/x/trunkline-budget/reset")).status_code == 401
