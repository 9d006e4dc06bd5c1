"""The cost ledger: one entry for each request to a model, whatever happens to the request or to the worker."""

import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from tests.shared_model import SharedModel
from trunkline.api.model import (
    AskModel,
    BlockCompleter,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelMiddleware,
    ModelRequest,
    Usage,
)
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.costs.messages import CostEntry, RequestOpened
from trunkline.contracts.costs.subjects import COST, OPENED_REQUEST
from trunkline.contracts.models.adapter import AnswerSource
from trunkline.contracts.models.prices import PriceTable
from trunkline.contracts.streams import REQUEST_STREAM
from trunkline.contracts.topology import topology
from trunkline.errors import ErrorCode
from trunkline.runtime import cost_ledger
from trunkline.runtime.cost_ledger import CostLedger, append_entry
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel
from trunkline.workers.memory import log_writer
from trunkline.workers.monitor import cost_recovery
from trunkline.workers.monitor.cost_recovery import CostRecovery
from trunkline_bus import Bus, BusError, apply
from trunkline_bus.server.child_process import send_signal
from trunkline_bus.streams.jetstream import request_api as jetstream

pytestmark = pytest.mark.anyio

PRICES = {"scripted": {"input": 2.5, "cached": 1.25, "output": 10.0}}
USAGE = Usage(input_tokens=1_000, cached_tokens=400, output_tokens=33)
DONE = Finish(usage=USAGE, model="scripted-1")
COST_OF_USAGE = round(600 * 2.5 + 400 * 1.25 + 33 * 10)


class Plugin:
    """A scripted model, and a middleware that repeats a failed call once."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Iterable[ModelMiddleware]:
        async def twice(request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
            try:
                async for event in proceed(request):
                    yield event
            except ModelError:
                async for event in proceed(request):
                    yield event

        return [twice]


@asynccontextmanager
async def running_with(
    script: ModelScript | Sequence[ReplyItems], home: Path | None = None, **config: Any
) -> AsyncIterator[Platform]:
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES, **config}
    async with platform(home, plugins=[Plugin(ScriptedModel(script))], config=settings) as running:
        yield running


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Platform, SharedModel]]:
    """One platform for the tests that only ask its model."""
    model = SharedModel()
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES}
    async with platform(plugins=[Plugin(model)], config=settings) as running:
        yield running, model


@pytest.fixture
def model(shared: tuple[Platform, SharedModel]) -> SharedModel:
    """The model of the shared platform. A test gives it a script."""
    return shared[1]


@pytest.fixture
async def client(shared: tuple[Platform, SharedModel]) -> BlockClient:
    """A client of the shared platform, with a block of its own."""
    return await client_of_new_block(shared[0])


async def until(due: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(60):
        while not await due():  # noqa: ASYNC110 - what is waited for is on the server or on the disk
            await anyio.sleep(0.02)


async def entries(bus: Bus, block: str | None = None) -> list[CostEntry]:
    """Return the entries of a block, by default of all."""
    found = [one.data async for one in bus.history(COST)]
    return [one for one in found if block in (None, one.block)]


async def settled(bus: Bus) -> bool:
    """Report whether no request is open."""
    return [one async for one in bus.history(OPENED_REQUEST)] == []


async def test_a_turn_and_a_completion_have_one_entry_each(client: BlockClient, model: SharedModel) -> None:
    """An entry says who asked, where, for what, which model answered, and what that cost at which price."""
    model.begin([["a", DONE], ["b", DONE]])
    answer = await client.say("hello")
    await BlockCompleter(client.bus, client.block).complete("more", purpose="summary")
    await until(lambda: settled(client.bus))
    turn, summary = await entries(client.bus, client.block)
    assert (turn.turn, turn.conversation) == (answer.accepted.turn, answer.accepted.conversation)
    assert (turn.block, turn.actor, turn.purpose) == (client.block, "channel:test", "turn")
    assert (turn.adapter, turn.vendor, turn.model) == ("scripted", "scripted", "scripted-1")
    assert (turn.usage, turn.cost, turn.status) == (USAGE, COST_OF_USAGE, "finished")
    assert turn.price == "trunkline.toml 2.5/1.25/10" and not turn.estimated and len(turn.trace) == 32
    assert (summary.purpose, summary.turn, summary.cost) == ("summary", "", COST_OF_USAGE)


async def test_the_name_of_a_model_is_cut(client: BlockClient, model: SharedModel) -> None:
    """The vendor sends the name; a long one does not make long lines in the log."""
    model.begin([["a", Finish(usage=USAGE, model="m" * 100_000)]])
    await client.say("hello")
    await until(lambda: settled(client.bus))
    assert [len(one.model) for one in await entries(client.bus, client.block)] == [
        cost_ledger.MODEL_NAME_LIMIT
    ]


async def test_each_attempt_has_an_entry(client: BlockClient, model: SharedModel) -> None:
    """A refused attempt costs nothing, and the one that answered has the cost of its own usage."""
    fault = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable")
    model.begin([[fault], ["a", DONE]])
    await client.say("hello")
    first, second = await entries(client.bus, client.block)
    assert (first.status, first.fault, first.cost) == ("failed", "unavailable", 0)
    assert (second.status, second.cost, first.id != second.id) == ("finished", COST_OF_USAGE, True)


async def test_a_cancelled_request_has_an_estimate(client: BlockClient, model: SharedModel) -> None:
    """The person stops the turn in mid-answer. What arrived is counted, and marked as an estimate."""
    started = anyio.Event()

    async def start() -> None:
        started.set()
        await anyio.sleep_forever()

    model.begin([["some words", start]])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(BlockCompleter(client.bus, client.block).complete, "x")
        await started.wait()
        tasks.cancel_scope.cancel()
    await until(lambda: _has_entries(client.bus, client.block, 1))
    (entry,) = await entries(client.bus, client.block)
    assert (entry.status, entry.estimated, entry.model) == ("cancelled", True, "")
    assert entry.cost is not None and 0 < entry.cost < 10_000


async def _has_entries(bus: Bus, block: str, count: int) -> bool:
    return len(await entries(bus, block)) >= count


async def test_the_offline_adapter_asks_no_model() -> None:
    """Its answers quote memory, so there is nothing to record."""
    async with platform() as running:
        await running.say("hello")
        assert await entries(running.bus) == [] and await settled(running.bus)


async def test_no_request_is_sent_that_cannot_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the stream of opened records no model is asked. Once it is back, the message is answered."""
    monkeypatch.setattr(cost_ledger, "OPEN_SECONDS", 0.2)
    plugin = Plugin(ScriptedModel([["a", DONE]]))
    settings = {"runtime.provider_adapter": "scripted"}
    async with platform(plugins=[plugin], config=settings) as running:
        await jetstream(running.bus.link, f"STREAM.DELETE.{REQUEST_STREAM}")
        with pytest.raises(trunkline.CompletionError) as refused:
            await BlockCompleter(running.bus, "main").complete("x")
        assert refused.value.code == ErrorCode.ENGINE_UNAVAILABLE
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.say, "hello")
            await anyio.sleep(1.0)
            assert plugin.model.requests == []
            await apply(running.bus, topology())
        assert len(await entries(running.bus)) == len(plugin.model.requests) == 1


async def test_the_request_of_a_dead_worker_gets_its_entry_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many monitors look for it, one entry is stored, and the opened record is gone."""
    monkeypatch.setattr(cost_recovery, "INTERVAL", 3_600.0)
    monkeypatch.setattr(cost_recovery, "FIRST_HEARTBEAT", cost_recovery.FIRST_HEARTBEAT * 0)
    async with running_with([]) as running:
        await _open(running.bus, "request_1", worker="monitor_dead")
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(CostRecovery(running.bus, f"monitor_{number}").recover)
        (entry,) = await entries(running.bus)
        assert (entry.id, entry.status, entry.estimated) == ("request_1", "interrupted", True)
        assert await settled(running.bus)


async def test_the_request_of_a_live_worker_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody guesses the cost of an answer that is still arriving."""
    monkeypatch.setattr(cost_recovery, "FIRST_HEARTBEAT", cost_recovery.FIRST_HEARTBEAT * 0)
    async with running_with([]) as running:
        monitor = running.instance.workers["monitor"].context.id
        await _open(running.bus, "request_1", worker=monitor)
        await CostRecovery(running.bus, "monitor_other").recover()
        assert await entries(running.bus) == [] and not await settled(running.bus)


async def _open(bus: Bus, id: str, worker: str) -> None:
    entry = CostEntry(
        id=id,
        at=utc_now(),
        adapter="scripted",
        status="interrupted",
        worker=worker,
        estimated=True,
        cost=5,
    )
    await bus.append(OPENED_REQUEST, RequestOpened(entry=entry, input_cost=5), worker=worker, id=id)


async def test_memory_holds_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file for each day has one line for each entry, also after a restart and without the bus's files. An entry that
    replaces another one is a further line."""
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 0.1)
    async with running_with([["a", DONE]], tmp_path) as running:
        await running.say("hello")
        (entry,) = await entries(running.bus)
        late = CostEntry(id=entry.id, at=entry.at, adapter="scripted", status="interrupted", cost=9)
        await append_entry(running.bus, late)
        await until(lambda: _has_lines(tmp_path, 2))
    (tmp_path / "cache" / "costs.seq").unlink()
    async with running_with([["b", DONE]], tmp_path) as running:
        await running.say("again")
        await until(lambda: _has_lines(tmp_path, 3))
    found = lines(tmp_path)
    assert [one["id"] == entry.id for one in found] == [True, True, False]
    assert [one["status"] for one in found] == ["finished", "interrupted", "finished"]


def lines(home: Path) -> list[dict[str, Any]]:
    files = sorted((home / "memory" / "costs").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


async def _has_lines(home: Path, count: int) -> bool:
    return len(lines(home)) >= count


async def test_the_name_of_a_model_may_be_any_text(client: BlockClient, model: SharedModel) -> None:
    """A name that no message can carry, or that moves a terminal's cursor, loses no entry and no answer."""
    model.begin([["a", Finish(usage=USAGE, model="\ud800\x1b[2Jm")]])
    assert (await client.say("hello")).text == "a"
    await until(lambda: settled(client.bus))
    (entry,) = await entries(client.bus, client.block)
    assert (entry.model, entry.cost) == ("\ufffd␛[2Jm", COST_OF_USAGE)


async def test_a_request_that_was_not_sent_leaves_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server got the opened record while it did not answer, and the caller gave up. When the worker is dead, nobody
    takes the record for a request that a vendor bills."""
    monkeypatch.setattr(cost_recovery, "INTERVAL", 3_600.0)
    monkeypatch.setattr(cost_recovery, "FIRST_HEARTBEAT", cost_recovery.FIRST_HEARTBEAT * 0)
    async with running_with([]) as running:
        server = running.instance.server
        assert server is not None
        ledger = CostLedger(running.bus, "monitor_dead", PriceTable({}))
        source = AnswerSource(adapter="scripted", vendor="", requested="")
        record = ledger.request(ModelRequest(messages=(), adapter="scripted", id="request_1"), source)
        async with anyio.create_task_group() as worker:
            worker.start_soon(ledger.run)
            send_signal(server.pid, signal.SIGSTOP)
            try:
                with anyio.move_on_after(0.5) as given_up:
                    await record.__aenter__()
            finally:
                send_signal(server.pid, signal.SIGCONT)
            assert given_up.cancelled_caught
            worker.cancel_scope.cancel()
        await CostRecovery(running.bus, "monitor_other").recover()
        assert await settled(running.bus) and await entries(running.bus) == []


async def test_a_deletion_that_the_server_forgot_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose disk was full restarts with the opened record of a request that ended. It is deleted again; that
    of a request that is being answered stays."""
    monkeypatch.setattr(cost_recovery, "INTERVAL", 3_600.0)
    async with running_with([]) as running:
        server, bus = running.instance.server, running.bus
        assert server is not None
        ledger = CostLedger(bus, "monitor_1", PriceTable({}))
        source = AnswerSource(adapter="scripted", vendor="", requested="")

        async def open_ids() -> list[str]:
            return [one.data.entry.id async for one in bus.history(OPENED_REQUEST)]

        async with anyio.create_task_group() as worker:
            worker.start_soon(ledger.run)
            asked = ModelRequest(messages=(), adapter="scripted", id="request_1")
            async with ledger.request(asked, source), ledger.request(replace(asked, id="request_2"), source):
                async with ledger.request(replace(asked, id="request_3"), source):
                    pass
                await until(lambda: _are(open_ids, {"request_1", "request_2"}))
                await _open(bus, "request_3", worker="monitor_1")
                await _open(bus, "request_4", worker="monitor_2")
                os.kill(server.pid, signal.SIGKILL)
                await until(lambda: _are(open_ids, {"request_1", "request_2", "request_4"}))
            await until(lambda: _are(open_ids, {"request_4"}))
            worker.cancel_scope.cancel()


async def _are(read: Callable[[], Awaitable[list[str]]], wanted: set[str]) -> bool:
    with suppress(BusError):  # the server is being restarted
        return set(await read()) == wanted
    return False
