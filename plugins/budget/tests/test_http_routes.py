"""The budgets over HTTP: their state and their reset, for the owner alone."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import msgspec
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline import LifespanContext, ToolError
from trunkline.api.audit import AUDIT
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform, platform
from trunkline_budget.budgets import budgets_of
from trunkline_budget.counters import BudgetCounters
from trunkline_budget.settings import BudgetSettings

pytestmark = pytest.mark.anyio

LIMITS = "/x/trunkline-budget/limits"

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
        assert (await http.get(LIMITS)).status_code == 403
        raised = {"key": "max_daily_spend", "value": 100}
        assert (await http.post(LIMITS, json=raised)).status_code == 403
    async with client(running, {}) as http:
        assert (await http.post("/x/trunkline-budget/reset")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        *({"key": "max_daily_spend", "value": value} for value in (0, -1, 1e10, 1e-9, "5", True)),
        {"key": "max_loops_per_hour", "value": 1.5},
        {"key": "blocks.garden.max_daily_spend", "value": 0},
        {"key": "blocks.garden.max_turn_spend", "value": 1},
        {"key": "blocks.../main.max_daily_spend", "value": 1},
        {"key": "time_zone", "value": 1},
        {"key": "", "value": 1},
        {"key": "max_daily_spend", "value": 1, "by": "owner"},
        b'{"key": "max_daily_spend", "value": NaN}',
        b'{"key": "max_daily_spend", "value": 1e999}',
        b"[]",
    ],
)
async def test_a_limit_that_cannot_be_is_not_set(running: Platform, body: dict[str, object] | bytes) -> None:
    """It is refused, and nothing is changed."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    async with client(running, {"authorization": f"Bearer {running.token}"}) as http:
        before = (await http.get(LIMITS)).json()
        assert (await http.post(LIMITS, content=content)).status_code == 400
        assert (await http.get(LIMITS)).json() == before


async def test_a_limit_is_set_and_set_back(running: Platform) -> None:
    """The answer has each limit now and in trunkline.toml. The change is in memory, by the owner, and in the audit."""
    async with client(running, {"authorization": f"Bearer {running.token}"}) as http:
        key = {"key": "max_daily_spend"}
        limits = (await http.post(LIMITS, json={**key, "value": 7.5})).json()["limits"]
        assert {"key": "max_daily_spend", "value": 7.5, "configured": 5.0} in limits
        assert (await http.get("/x/trunkline-budget/budgets")).json()["limits"] == [
            "all blocks at most $7.50 a day"
        ]
        file = running.home.memory / "budgets/limits.json"
        assert msgspec.json.decode(file.read_bytes()) == {"max_daily_spend": 7.5}
        assert (await http.post(LIMITS, json=key)).json()["limits"][0]["value"] == 5.0
    entries = [one.data.why async for one in running.bus.history(AUDIT)]
    assert "A limit of budgets was changed: max_daily_spend is 7.5." in entries


async def test_no_tool_of_an_agent_can_set_a_limit(running: Platform) -> None:
    """The file is the owner's, however its name is spelt."""
    memory = LifespanContext("monitor", running.bus, "agent").memory("main")
    limits = running.home.memory / "budgets/limits.json"
    before = limits.read_bytes() if limits.exists() else None
    for path in ("/budgets/limits.json", "/Budgets/limits.json", "/./budgets//limits.json"):
        with pytest.raises(ToolError):
            await memory.write(path, '{"max_daily_spend": 1000}')
    assert (limits.read_bytes() if limits.exists() else None) == before
