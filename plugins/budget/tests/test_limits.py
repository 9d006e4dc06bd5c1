"""Limits on a running platform: what is admitted, what is refused, who is told, and how a budget opens again."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from tests.shared_model import SharedModel
from trunkline import ErrorCode
from trunkline.api.bus import Bus
from trunkline.api.channel import Channel, Gateway
from trunkline.api.costs import BUDGET_EVENT, COST, OPENED_REQUEST, BudgetEvent, CostEntry, RequestOpened
from trunkline.api.model import (
    Audio,
    BlockAbilities,
    BlockCompleter,
    Finish,
    ModelAdapter,
    ModelError,
    SpeechEvent,
    SpeechRequest,
    Transcription,
    TranscriptionRequest,
    Usage,
)
from trunkline.contracts.streams import BUDGET_STREAM, COST_STREAM, COUNTER_STREAM
from trunkline.contracts.topology import topology
from trunkline.testing.platform import Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel
from trunkline.workers.memory import log_writer
from trunkline_budget import middleware, reconciler
from trunkline_budget.budgets import budgets_of
from trunkline_budget.counters import BudgetCounters
from trunkline_budget.settings import BudgetSettings
from trunkline_budget.state import BudgetState, budget_states, reset_budgets, reset_event
from trunkline_bus import apply
from trunkline_bus.streams.jetstream import request_api as jetstream

pytestmark = pytest.mark.anyio

PRICES = {"scripted/*": {"input": 1.0, "output": 10.0, "max_output": 10_000}}
"""A thousand tokens of an answer cost a cent."""

CENTS = 10_000
"""Micro-USD."""

BEGINNING = "the beginning of a test"
"""Who resets the budgets of a platform that tests share."""


def cents(count: int) -> list[Any]:
    """Return an answer that costs so many cents."""
    return ["done", Finish(usage=Usage(output_tokens=count * 1_000), model="m")]


class Bell(Channel):
    """A channel that notes what it tells its owner."""

    name = "bell"

    def __init__(self) -> None:
        self.told: list[str] = []

    async def tell_owner(self, text: str) -> None:
        self.told.append(text)

    async def run(self, gateway: Gateway) -> None:
        await anyio.sleep_forever()


class Plugin:
    """A scripted model and the bell."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self.bell = Bell()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_channels(self) -> Sequence[Channel]:
        return [self.bell]


@asynccontextmanager
async def limited(
    script: ModelScript | Sequence[ReplyItems], home: Path | None = None, **limits: Any
) -> AsyncIterator[tuple[Platform, Plugin]]:
    plugin = Plugin(ScriptedModel(script))
    async with platform(home, plugins=[plugin], config=config_of(**limits)) as running:
        yield running, plugin


def config_of(**limits: Any) -> dict[str, Any]:
    """Settings of a platform with the bell, prices and these limits."""
    return {
        "runtime.provider_adapter": "scripted",
        "models.prices": PRICES,
        "plugins.failover.attempts": 1,
        "channels.enabled": ["bell"],
        **{f"plugins.budget.{name}": value for name, value in limits.items()},
    }


DAY: dict[str, Any] = {"max_daily_spend": 0.10}
"""The limit of the platform that tests share."""


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Platform, SharedModel, Bell]]:
    """One platform for the tests that need no limit but that of a day."""
    model = SharedModel()
    plugin = Plugin(model)
    async with platform(plugins=[plugin], config=config_of(**DAY)) as running:
        yield running, model, plugin.bell


@pytest.fixture
async def running(shared: tuple[Platform, SharedModel, Bell]) -> AsyncIterator[Platform]:
    """The shared platform: nothing of its budget is used, and its owner has been told nothing."""
    found, _, bell = shared
    await reset_budgets(found.bus, BudgetSettings(**DAY), "", BEGINNING)
    bell.told.clear()
    yield found

    async def all_told() -> bool:
        return len(bell.told) == sum(one.event == "bankrupt" for one in await events(found.bus))

    await until(all_told)  # none of it reaches the next test


@pytest.fixture
def model(shared: tuple[Platform, SharedModel, Bell]) -> SharedModel:
    """The model of the shared platform. A test gives it a script."""
    return shared[1]


@pytest.fixture
def bell(shared: tuple[Platform, SharedModel, Bell]) -> Bell:
    """The channel of the shared platform."""
    return shared[2]


async def until(due: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(60):
        while not await due():  # noqa: ASYNC110 - what is waited for is on the server
            await anyio.sleep(0.02)


async def events(bus: Bus) -> list[BudgetEvent]:
    """Return the events; on a shared platform those of the running test."""
    found = [stored.data async for stored in bus.history(BUDGET_EVENT)]
    return found[max((at for at, one in enumerate(found, 1) if one.by == BEGINNING), default=0) :]


async def state(bus: Bus, block: str = "", **limits: Any) -> BudgetState:
    """Return the state of a budget of spending."""
    states = await budget_states(bus, BudgetSettings(**limits))
    return next(one for one in states if one.measure == "spend" and one.block == block)


def refused(answer: TurnAnswer) -> str:
    """Return why a turn was refused."""
    assert answer.ended.code is ErrorCode.OVER_BUDGET and answer.text == ""
    return answer.ended.detail


async def test_the_daily_limit_trips_before_the_next_call(
    running: Platform, model: SharedModel, bell: Bell
) -> None:
    """Below the limit a call is admitted, at the limit none is. One event tells both numbers on every channel, the
    model gets no further call, and work in the background is refused as well."""
    model.begin([cents(9), cents(1), cents(1)])
    assert (await running.say("one")).ended.cost == 9 * CENTS
    assert (await running.say("two")).text == "done"
    why = refused(await running.say("three"))
    assert "The budget of all blocks for today is used up: $0.10 of $0.10." in why
    assert "trunkline budget reset" in why
    refused(await running.say("four"))
    with pytest.raises(trunkline.CompletionError) as raised:
        await BlockCompleter(running.bus, "main").complete("five")
    assert raised.value.code == "over_budget" and "$0.10 of $0.10" in str(raised.value)
    assert len(model.requests) == 2
    (event,) = await events(running.bus)
    assert (event.event, event.used, event.limit) == ("bankrupt", 10 * CENTS, 10 * CENTS)
    assert event.opens_at is not None and event.opens_at > datetime.now(UTC)
    await until(lambda: _told(bell))
    assert bell.told == [why]


async def _told(bell: Bell) -> bool:
    return bool(bell.told)


class Voice(ScriptedModel):
    """A model that begins to speak or to listen, and ends when it may."""

    def __init__(self) -> None:
        super().__init__([])
        self.begun, self.may_end = 0, anyio.Event()

    async def speak(self, request: SpeechRequest) -> AsyncIterator[SpeechEvent]:
        self.begun += 1
        await self.may_end.wait()
        async for event in super().speak(request):
            yield event

    async def transcribe(self, request: TranscriptionRequest) -> Transcription:
        self.begun += 1
        await self.may_end.wait()
        return await super().transcribe(request)


@pytest.mark.parametrize("price", [{"characters": 1_000.0}, {"minute": 60.0}, {"input": 10.0}])
async def test_speech_and_recordings_reserve_what_they_may_cost(
    price: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By characters, by minutes and by tokens of audio. What runs holds the budget, so another call is not sent beside
    it; when it has ended, the rest is free again.
    """
    monkeypatch.setattr(middleware, "WAIT_SECONDS", 0.2)
    plugin = Plugin(model := Voice())
    config = {
        "runtime.provider_adapter": "scripted",
        "models.prices": {"scripted/*": {"input": 0.0, "output": 0.0, **price}},
        "plugins.budget.max_daily_spend": 0.001,
    }

    async def use(running: Platform) -> None:
        owner = BlockAbilities(running.bus, "main")
        if "characters" in price:
            assert [event async for event in owner.speak(SpeechRequest(text="word " * 20))]
        else:
            audio = Audio(media_type="audio/ogg", data=b"OggS" * 5_000)
            await owner.transcribe(TranscriptionRequest(audio=audio))

    async with platform(plugins=[plugin], config=config) as running, anyio.create_task_group() as tasks:
        tasks.start_soon(use, running)
        await until(lambda: _begun(model))
        with anyio.fail_after(30), pytest.raises(trunkline.CompletionError, match="still run hold the rest"):
            await use(running)
        assert model.begun == 1
        model.may_end.set()


async def _begun(model: Voice) -> bool:
    return model.begun > 0


async def test_a_used_up_budget_opens_by_a_reset_and_trips_again(
    running: Platform, model: SharedModel
) -> None:
    """The history keeps both; the second time the channels are told again."""
    model.begin([cents(10), cents(10), cents(10)])
    await running.say("one")
    refused(await running.say("two"))
    (reset,) = await reset_budgets(running.bus, BudgetSettings(**DAY), "", "owner")
    assert (reset.used, reset.by) == (10 * CENTS, "owner")
    assert (await running.say("three")).text == "done"
    refused(await running.say("four"))
    assert [one.event for one in await events(running.bus)] == ["bankrupt", "reset", "bankrupt"]
    assert (await state(running.bus, **DAY)).is_exhausted


async def test_a_raised_limit_opens_the_budget(tmp_path: Path) -> None:
    """The same day, with what was spent before."""
    async with limited([cents(5)], tmp_path, max_daily_spend=0.05) as (running, _):
        await running.say("one")
        refused(await running.say("two"))
    async with limited([cents(2)], tmp_path, max_daily_spend=0.06) as (running, _):
        assert (await running.say("three")).text == "done"
        refused(await running.say("four"))
        assert (await state(running.bus, max_daily_spend=0.06)).used == 7 * CENTS


async def test_a_limit_that_is_set_later_counts_the_whole_day(tmp_path: Path) -> None:
    """What was spent before the limit was set is in the ledger."""
    async with limited([cents(5)], tmp_path) as (running, _):
        await running.say("one")
    async with limited([], tmp_path, max_daily_spend=0.05) as (running, _):
        await until(lambda: _is_used(running.bus, 5 * CENTS, max_daily_spend=0.05))
        refused(await running.say("two"))


async def _is_used(bus: Bus, used: int, **limits: Any) -> bool:
    return (await state(bus, **limits)).used == used


async def test_a_block_has_a_budget_of_its_own() -> None:
    """The others go on. A block that is named has its own limit, the others the limit of each block."""
    limits: dict[str, Any] = {
        "per_block": {"max_daily_spend": 0.05},
        "blocks": {"rich": {"max_daily_spend": 1.0}},
    }
    async with limited(lambda request: cents(5), **limits) as (running, _):
        for block in ("poor", "rich"):
            await running.gateway.create_block(block)
        for block in ("main", "poor", "rich", "rich"):
            assert (await running.say("hello", block=block)).text == "done"
        assert "The budget of block poor for today" in refused(await running.say("more", block="poor"))
        assert (await running.say("more", block="rich")).text == "done"


async def test_a_turn_has_a_budget_of_its_own() -> None:
    """A turn that calls tools without end is stopped, and the next message begins anew."""
    loop = lambda request: [  # noqa: E731
        trunkline.api.model.Call(trunkline.ToolCall(id="", name="get_current_time")),
        Finish(reason="tool_calls", usage=Usage(output_tokens=2_000), model="m"),
    ]
    async with limited(loop, max_turn_spend=0.06) as (running, plugin):
        answer = await running.say("go on for ever")
        assert "The budget of this turn is used up: $0.06 of $0.06." in answer.ended.detail
        assert len(plugin.model.requests) == 3
        await running.say("again")
        assert len(plugin.model.requests) == 6


async def test_the_hundredth_loop_is_the_last() -> None:
    """Loops are counted without a price, too. A refused call is not counted."""
    limits: dict[str, Any] = {"max_loops_per_hour": 100}
    async with limited(lambda request: "done", **limits) as (running, plugin):
        model = BlockCompleter(running.bus, "main")
        async with anyio.create_task_group() as tasks:
            for _ in range(99):
                tasks.start_soon(model.complete, "count")
        assert (await running.say("the hundredth")).text == "done"
        why = refused(await running.say("one more"))
        assert "The budget of all blocks for this hour is used up: 100 calls of models of 100" in why
        refused(await running.say("and another"))
        assert len(plugin.model.requests) == 100
        (shown,) = await budget_states(running.bus, BudgetSettings(**limits))
        assert (shown.measure, shown.used) == ("loops", 100)


async def test_an_answer_is_limited_to_what_is_left(running: Platform, model: SharedModel) -> None:
    """The request permits an answer that the budget can pay, and no longer one."""
    model.begin([cents(6), cents(1)])
    await running.say("one")
    await running.say("two")
    first, second = model.requests
    assert first.max_tokens is not None and 8_000 < first.max_tokens < 10_000
    assert second.max_tokens is not None and 2_000 < second.max_tokens < 4_000


async def test_a_failed_call_gives_its_reservation_back(running: Platform, model: SharedModel) -> None:
    """A refused request costs nothing."""
    fault = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable")
    model.begin([[fault], cents(1)])
    await running.say("one")
    assert (await running.say("two")).text == "done"
    now = await state(running.bus, **DAY)
    assert (now.used, now.reserved) == (CENTS, 0)


async def test_calls_wait_for_the_reservations_of_others(running: Platform, model: SharedModel) -> None:
    """A call that may cost all that is left does not make the next one fail: it ends, and costs little."""
    free = anyio.Event()

    def script(request: Any) -> ReplyItems:
        return [free.wait, *cents(1)] if request.purpose == "slow" else cents(1)

    model.begin(script)
    completer = BlockCompleter(running.bus, "main")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: completer.complete("x", purpose="slow"))
        await until(lambda: _asked(model, 1))
        tasks.start_soon(completer.complete, "y")
        await anyio.sleep(0.5)
        assert len(model.requests) == 1
        free.set()
    assert len(model.requests) == 2 and await events(running.bus) == []


async def _asked(model: ScriptedModel, count: int) -> bool:
    return len(model.requests) >= count


async def test_no_model_is_called_while_counters_are_away() -> None:
    """The budget fails closed, and the message is answered once the counters are back."""
    async with limited([cents(1)], max_daily_spend=0.10) as (running, plugin):
        await until(lambda: _is_used(running.bus, 0, max_daily_spend=0.10))
        await jetstream(running.bus.link, f"STREAM.DELETE.{COUNTER_STREAM}")
        answers: list[TurnAnswer] = []

        async def ask() -> None:
            answers.append(await running.say("one"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.sleep(2.0)
            assert plugin.model.requests == [] and answers == []
            await apply(running.bus, topology())
        assert answers[0].text == "done"


async def test_the_limit_holds_after_the_bus_lost_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counters, ledger and events are gone from the bus; memory has what was spent today, and what was reset."""
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 0.1)
    limits: dict[str, Any] = {"max_daily_spend": 0.08}
    async with limited([cents(8), cents(5)], tmp_path, **limits) as (running, _):
        await running.say("one")
        await reset_budgets(running.bus, BudgetSettings(**limits), "", "owner")
        await running.say("two")
        await until(lambda: _lines_in_memory(tmp_path, 3))
    async with platform(tmp_path) as running:
        for stream in (COUNTER_STREAM, COST_STREAM, BUDGET_STREAM):
            await jetstream(running.bus.link, f"STREAM.DELETE.{stream}")
        await apply(running.bus, topology())
    async with limited([cents(3)], tmp_path, **limits) as (running, plugin):
        assert (await running.say("three")).text == "done"
        refused(await running.say("four"))
        assert len(plugin.model.requests) == 1
        assert (await state(running.bus, **limits)).used == 8 * CENTS
        await reset_budgets(
            running.bus, BudgetSettings(**limits), "", "owner"
        )  # one more than before the loss
        assert (await state(running.bus, **limits)).used == 0


async def _lines_in_memory(home: Path, count: int) -> bool:
    return count_lines(home) == count


def count_lines(home: Path) -> int:
    files = [*home.glob("memory/costs/*.jsonl"), *home.glob("memory/budgets/*.jsonl")]
    return sum(len(file.read_text().splitlines()) for file in files)


async def test_resets_at_the_same_time_take_back_once(running: Platform, model: SharedModel) -> None:
    """What was used is given back once, however many owners press the key: the limit is not raised by the others."""
    model.begin([cents(10), cents(10), cents(10)])
    await running.say("one")
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(reset_budgets, running.bus, BudgetSettings(**DAY), "", "owner")
    assert (await state(running.bus, **DAY)).used == 0
    assert (await running.say("two")).text == "done"
    refused(await running.say("three"))
    assert len(model.requests) == 2
    resets = [one.used for one in await events(running.bus) if one.event == "reset"]
    assert sum(resets) == 10 * CENTS


async def test_a_reset_that_was_killed_is_completed_by_the_next(
    running: Platform, model: SharedModel
) -> None:
    """The event is stored and nothing is subtracted. The next reset gives back all that was used, and no more."""
    model.begin([cents(10), cents(10), cents(1)])
    await running.say("one")
    now = datetime.now(UTC)
    (budget,) = budgets_of(BudgetSettings(**DAY), "spend", "", "", now)
    event = await reset_event(BudgetCounters(running.bus), budget, "owner", now)
    await running.bus.append(BUDGET_EVENT, event, expect=0, event=event.id)
    await reset_budgets(running.bus, BudgetSettings(**DAY), "", "owner")
    assert (await state(running.bus, **DAY)).used == 0


async def test_the_call_after_a_crash_waits_for_the_reservation_of_the_dead() -> None:
    """A killed monitor held all that was left. The takeover is not refused: the ledger has the request of the dead
    monitor soon, and its reservation becomes what it cost."""
    limits: dict[str, Any] = {"max_daily_spend": 0.10, "max_turn_spend": 0.10}
    async with limited([cents(1)], **limits) as (running, plugin):
        bus, now = running.bus, datetime.now(UTC)
        await until(lambda: _is_used(bus, 0, max_daily_spend=0.10))
        entry = CostEntry(
            id="request_1",
            at=now,
            adapter="scripted",
            status="interrupted",
            worker="monitor_dead",
            cost=CENTS,
        )
        opened = RequestOpened(entry=entry, input_cost=CENTS, token_cost=10.0, max_cost=2 * CENTS)
        budgets = budgets_of(BudgetSettings(**limits), "spend", "", "", now)
        await BudgetCounters(bus).reserve(entry.id, budgets, 1, 10 * CENTS, 0)
        await bus.append(OPENED_REQUEST, opened, worker="monitor_dead", id=entry.id)
        assert (await running.say("one")).text == "done"
        assert len(plugin.model.requests) == 1
        assert CENTS < (await state(bus, max_daily_spend=0.10)).used <= 3 * CENTS


async def test_a_budget_of_a_turn_holds_over_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn spent two days ago, before it waited for an approval, still counts. No settled cost counts as the
    reservation of a killed process."""
    monkeypatch.setattr(reconciler, "OPENED_AFTER", timedelta(0))
    settings = BudgetSettings(max_turn_spend=0.05)
    async with limited([], max_turn_spend=0.05) as (running, _):
        bus, then = running.bus, datetime.now(UTC) - timedelta(days=2)
        budgets = budgets_of(settings, "spend", "main", "turn_1", then)
        counters = BudgetCounters(bus)
        amount = await counters.reserve("request_1", budgets, 1, 5 * CENTS, 0)
        await counters.settle("request_1", budgets, amount, 5 * CENTS)
        context = trunkline.LifespanContext("monitor", bus, "trunkline-budget")
        await reconciler.Reconciler(settings, context).reconcile()
        assert await counters.number("reserved", budgets[0]) == 5 * CENTS


async def test_what_a_killed_process_left_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reservation without a request is released, one whose request was recorded becomes its cost, and that of a
    request that still runs stays. However many monitors do it."""
    monkeypatch.setattr(reconciler, "SETTLED_AFTER", timedelta(0))
    monkeypatch.setattr(reconciler, "OPENED_AFTER", timedelta(0))
    settings = BudgetSettings(max_daily_spend=1.0)
    async with limited([], max_daily_spend=1.0) as (running, _):
        bus, now = running.bus, datetime.now(UTC)
        counters = BudgetCounters(bus)
        for request in ("request_lost", "request_ended", "request_runs"):
            budgets = budgets_of(settings, "spend", "main", "", now)
            await counters.reserve(request, budgets, 1, 7 * CENTS, 0)
        ended = CostEntry(
            id="request_ended", at=now, adapter="scripted", status="interrupted", cost=2 * CENTS
        )
        await bus.append(COST, ended, day=ended.day, id=ended.id)
        runs = CostEntry(id="request_runs", at=now, adapter="scripted", status="interrupted")
        worker = running.instance.workers["monitor"].context.id
        await bus.append(OPENED_REQUEST, RequestOpened(entry=runs), worker=worker, id=runs.id)
        context = trunkline.LifespanContext("monitor", bus, "trunkline-budget")
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(reconciler.Reconciler(settings, context).reconcile)
        now_state = await state(bus, max_daily_spend=1.0)
        assert (now_state.used, now_state.reserved) == (2 * CENTS, 7 * CENTS)
