"""Many workers at once share one budget and do not exceed it."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import anyio
import msgspec
import pytest

import trunkline
from trunkline import Message, new_id
from trunkline.api.bus import Bus
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    Price,
    PriceTable,
    Usage,
    estimate_input_tokens,
)
from trunkline.testing.platform import Platform, platform
from trunkline_budget import middleware
from trunkline_budget.breaker import BudgetBreaker
from trunkline_budget.budgets import budgets_of
from trunkline_budget.counters import BudgetCounters
from trunkline_budget.middleware import LoopLimit, SpendLimit
from trunkline_budget.settings import BudgetSettings
from trunkline_budget.state import budget_states, reset_budgets
from trunkline_bus import connect

from .test_limits import BEGINNING, events

pytestmark = pytest.mark.anyio

WORKERS = 64
CONNECTIONS = 8
LIMIT = 2.0
PRICES = PriceTable({"scripted": Price(input=1.0, output=10.0, max_output=20_000)})


class Vendor:
    """Bills the longest answer that a request permits, or a random part of it."""

    def __init__(self, seed: int, *, greedy: bool) -> None:
        self.billed = 0
        self.largest_smallest = 0
        self._random = random.Random(seed)
        self._greedy = greedy

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        await anyio.sleep(self._random.uniform(0, 0.02))
        longest = request.max_tokens or 20_000
        tokens = longest if self._greedy else self._random.randint(1, longest)
        usage = Usage(input_tokens=estimate_input_tokens(request), output_tokens=tokens)
        rate = PRICES.find_rate("scripted")
        assert rate is not None
        cost = rate.cost(usage)
        self.billed += cost
        smallest = rate.max_cost(msgspec.structs.replace(request, max_tokens=middleware.SMALLEST_ANSWER))
        self.largest_smallest = max(self.largest_smallest, smallest)
        yield Finish(usage=usage, cost=cost)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    """One platform without limits. Each test brings the limits and breakers of its own."""
    async with platform(workers=("memory", "gateway")) as running:
        yield running


@pytest.fixture
async def running(shared: Platform) -> Platform:
    """The shared platform, of whose budgets nothing is used."""
    await reset_budgets(
        shared.bus, BudgetSettings(max_daily_spend=LIMIT, max_loops_per_hour=100), "", BEGINNING
    )
    return shared


async def work(limit: AskModel, number: int) -> None:
    """Call the model until a call is refused."""
    message = Message(id="m", role="user", content="x" * (number * 40))
    while True:
        request = ModelRequest(messages=(message,), adapter="scripted", block="main", id=new_id("request"))
        try:
            async for _ in limit(request):
                pass
        except ModelError as error:
            assert error.fault == "over_budget"
            return


@pytest.mark.parametrize(("greedy", "seed"), [(True, 1), (False, 2)])
async def test_sixty_four_workers_share_a_budget(running: Platform, greedy: bool, seed: int) -> None:
    """They spend all of it, exceed it by less than the smallest reservation of one call, and one event tells of it."""
    settings, vendor = BudgetSettings(max_daily_spend=LIMIT), Vendor(seed, greedy=greedy)
    async with AsyncExitStack() as stack:
        limits = []
        for number in range(CONNECTIONS):
            named = msgspec.structs.replace(running.instance.bus, name=f"worker-{number}")
            bus = await stack.enter_async_context(connect(named))
            for _ in range(WORKERS // CONNECTIONS):
                limits.append(await spend_limit(stack, bus, settings))
        async with anyio.create_task_group() as tasks:
            for number, limit in enumerate(limits):
                tasks.start_soon(work, _around(limit, vendor), number)
        overshoot = vendor.billed - round(LIMIT * 1e6)
        assert 0 <= overshoot < vendor.largest_smallest
        assert [event.event for event in await events(running.bus)] == ["bankrupt"]
        (state,) = await budget_states(running.bus, settings)
        assert (state.used, state.reserved) == (vendor.billed, 0)


async def test_sixty_four_workers_share_a_limit_of_loops(running: Platform) -> None:
    """Exactly as many calls are admitted as the hour allows."""
    settings, vendor = BudgetSettings(max_loops_per_hour=100), Vendor(1, greedy=False)
    async with AsyncExitStack() as stack:
        breaker = await breaker_of(stack, running.bus, settings)
        calls = 0

        async def counted(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            nonlocal calls
            calls += 1
            async for event in vendor.ask(request):
                yield event

        limit = LoopLimit(breaker, lambda: datetime.now(UTC))
        async with anyio.create_task_group() as tasks:
            for number in range(WORKERS):
                tasks.start_soon(work, lambda request: limit(request, counted), number)
        assert calls == 100


async def test_a_cancelled_reservation_is_released_at_once(running: Platform) -> None:
    """Whenever the caller is cancelled, nothing stays reserved: no request was sent. Nobody waits for the comparison
    with the ledger."""
    settings = BudgetSettings(max_daily_spend=LIMIT, max_turn_spend=LIMIT)
    budgets = budgets_of(settings, "spend", "main", "turn_1", datetime.now(UTC))
    counters, cancelled = BudgetCounters(running.bus), 0
    for number in range(100):
        request = new_id("request")
        with anyio.move_on_after(number * 0.000_1) as scope:
            reserved = await counters.reserve(request, budgets, 1_000, 3_000_000, 0)
        if scope.cancelled_caught:
            cancelled += 1
        else:
            await counters.settle(request, budgets, reserved, 0)
    assert cancelled > 5
    assert [await counters.number("reserved", budget) for budget in budgets] == [0, 0]


def _around(limit: SpendLimit, vendor: Vendor) -> AskModel:
    return lambda request: limit(request, vendor.ask)


async def spend_limit(stack: AsyncExitStack, bus: Bus, settings: BudgetSettings) -> SpendLimit:
    breaker = await breaker_of(stack, bus, settings)
    return SpendLimit(breaker, lambda: datetime.now(UTC), PRICES)


async def breaker_of(stack: AsyncExitStack, bus: Bus, settings: BudgetSettings) -> BudgetBreaker:
    breaker = BudgetBreaker(settings)
    context = trunkline.LifespanContext("monitor", bus, "trunkline-budget")
    await stack.enter_async_context(breaker.lifespan(context))
    return breaker
