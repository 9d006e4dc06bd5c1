"""One question to a model from a tool or background work: over the bus, through adapter, preference and middleware."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from tests.shared_model import SharedModel
from tests.support.processes import process_platform
from trunkline.api.model import (
    AskModel,
    BlockCompleter,
    Call,
    Finish,
    ModelAdapter,
    ModelEvent,
    ModelMiddleware,
    ModelRequest,
)
from trunkline.contracts.conversations.messages import Message, Usage
from trunkline.contracts.costs.subjects import COST
from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.models.prices import Price, PriceTable
from trunkline.contracts.workers.subjects import SPANS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ModelScript, ReplyItems, ScriptedModel

pytestmark = pytest.mark.anyio

PRICES = {"scripted": {"input": 2.5, "cached": 1.25, "output": 10.0}}


class Plugin:
    """A scripted model, a middleware that notes what passes, and a tool that asks."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model
        self.passed: list[ModelRequest] = []

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_model_middleware(self) -> Iterable[ModelMiddleware]:
        async def noted(request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
            self.passed.append(request)
            async for event in proceed(request):
                yield event

        return [noted]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def ask(context: trunkline.ToolContext, question: str) -> str:
            """Ask a model."""
            return (await context.model.complete(question, purpose="repl")).text

        return [ask]


@asynccontextmanager
async def asking(
    script: ModelScript | Sequence[ReplyItems] | None = None, **config: Any
) -> AsyncIterator[tuple[Platform, Plugin]]:
    plugin = Plugin(ScriptedModel(script))
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES, **config}
    async with platform(plugins=[plugin], config=settings) as running:
        yield running, plugin


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Platform, SharedModel]]:
    """One platform for the tests that look neither at spans nor at all calls of the monitor."""
    model = SharedModel()
    settings = {"runtime.provider_adapter": "scripted", "models.prices": PRICES}
    async with platform(plugins=[Plugin(model)], config=settings) as running:
        yield running, model


@pytest.fixture
def model(shared: tuple[Platform, SharedModel]) -> SharedModel:
    """The model of the shared platform, which answers by programs unless a test gives it a script."""
    shared[1].begin()
    return shared[1]


@pytest.fixture
def completer(shared: tuple[Platform, SharedModel], model: SharedModel) -> BlockCompleter:
    """The completer of the shared platform, whose ``model`` begins anew."""
    return BlockCompleter(shared[0].bus, "main")


async def _until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not true():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_a_tool_asks_the_model_that_its_block_prefers() -> None:
    """Its call passes the middleware with purpose, actor, block, conversation and turn; no tools are offered."""
    async with asking(lambda request: "blue" if request.purpose == "repl" else _turn(request)) as (
        running,
        plugin,
    ):
        call_request = WriteMemory(
            path="preferences.toml", content='model = "scripted/wise"\n', actor="owner"
        )
        await running.bus.call(MEMORY_WRITE, call_request)
        answer = await running.say("go")
        assert answer.text == "The tool says: blue"
        (asked,) = (request for request in plugin.passed if request.purpose == "repl")
        assert (asked.model, asked.block, asked.tools) == ("wise", "main", ())
        assert (asked.actor, asked.adapter) == ("channel:test", "scripted")
        assert (asked.conversation, asked.turn) == (answer.accepted.conversation, answer.accepted.turn)
        assert [message.content for message in asked.messages] == ["What colour?"]
        assert {request.purpose for request in plugin.passed} == {"turn", "repl"}


def _turn(request: ModelRequest) -> ReplyItems:
    """Call the tool, then say its output."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"The tool says: {last.content}"
    call = trunkline.ToolCall(id="1", name="ask", arguments={"question": "What colour?"})
    return [Call(call)]


async def test_the_cost_is_the_usage_times_the_price(model: SharedModel, completer: BlockCompleter) -> None:
    """Whole millionths of a dollar: cached input at its own price, and the price is named."""
    usage = Usage(input_tokens=1_000, cached_tokens=400, output_tokens=33, reasoning_tokens=3)
    model.begin([["yes", Finish(usage=usage, model="scripted-1")]])
    answer = await completer.complete("true?", purpose="summary")
    assert answer.usage == usage and answer.text == "yes"
    assert answer.cost == round(600 * 2.5 + 400 * 1.25 + 33 * 10)
    assert (answer.price, answer.adapter, answer.model) == ("2.5/1.25/10", "scripted", "scripted-1")
    assert answer.purpose == "summary"


async def test_a_model_without_a_price_costs_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """No wrong cost is reported: it is 0, has no price, and a warning names the setting. Once."""
    async with asking(["a b", "b"], **{"models.prices": {}}) as (running, _):
        model = BlockCompleter(running.bus, "main")
        for _ in range(2):
            answer = await model.complete("x", max_cost=1)
            assert (answer.cost, answer.price) == (0, "")
    reported = [record.message for record in caplog.records if "has no price" in record.message]
    assert len(reported) == 1 and '[models.prices."scripted/scripted"]' in reported[0]


async def test_a_question_that_may_cost_too_much_is_not_asked(
    model: SharedModel, completer: BlockCompleter
) -> None:
    """The budget is checked before the call, and bounds the answer's length when there is room for one."""
    model.begin(["short"])
    with pytest.raises(trunkline.CompletionError) as refused:
        await completer.complete("word " * 1_000, max_cost=1_000)
    assert refused.value.code == "over_budget" and model.requests == []
    answer = await completer.complete("word", max_cost=1_000)
    (asked,) = model.requests
    assert asked.max_tokens is not None and asked.max_tokens * 10 < 1_000 and answer.cost <= 1_000


async def test_the_price_of_a_default_model_is_known_after_its_first_answer() -> None:
    """An adapter's own default has a name only when it answers; from then on it is held to the budget too."""
    prices = {"scripted/scripted": {"input": 2.5, "output": 10.0}}
    async with asking(["short", "again"], **{"models.prices": prices}) as (running, plugin):
        model = BlockCompleter(running.bus, "main")
        assert (await model.complete("two words", max_cost=1)).cost == 15
        with pytest.raises(trunkline.CompletionError) as refused:
            await model.complete("two words", max_cost=1)
        assert refused.value.code == "over_budget" and len(plugin.model.requests) == 1


async def test_missing_token_counts_are_logged(
    model: SharedModel, completer: BlockCompleter, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider that says no usage is not free: its cost is estimated, and the log says that too."""
    model.begin([["a", Finish(model="m")]])
    answer = await completer.complete("x")
    assert answer.usage == Usage() and answer.cost > 0
    assert any("does not say how many tokens" in record.message for record in caplog.records)


async def test_a_disconnected_caller_ends_the_call() -> None:
    """The vendor's stream is closed, and the monitor has nothing left to do."""
    async with asking(lambda request: [anyio.sleep_forever]) as (running, plugin):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(BlockCompleter(running.bus, "main").complete, "x")
            await _until(lambda: len(plugin.model.requests) == 1)
            tasks.cancel_scope.cancel()
        # a generator that is closed or cancelled where it waits
        monitor = running.instance.workers["monitor"]
        with anyio.fail_after(60):
            await monitor._models.drain()  # type: ignore[attr-defined]


async def test_a_deadline_ends_the_call(model: SharedModel, completer: BlockCompleter) -> None:
    """After ``timeout`` the caller gets the error, and may ask again."""
    model.begin([["a", anyio.sleep_forever], "b"])
    with pytest.raises(trunkline.CompletionError) as late:
        await completer.complete("x", timeout=0.3)
    assert late.value.code == "timeout"
    assert (await completer.complete("x")).text == "b"


async def test_a_fault_of_the_vendor_is_a_code_and_a_fixed_sentence(completer: BlockCompleter) -> None:
    """The vendor's own words stay in the log."""
    for program, code in (("status:500", "provider_error"), ("overflow", "context_overflow")):
        with pytest.raises(trunkline.CompletionError) as failed:
            await completer.complete(program)
        assert failed.value.code == code and "scripted" not in str(failed.value)


async def test_an_invalid_completion_is_refused_before_sending(
    model: SharedModel, completer: BlockCompleter
) -> None:
    """The caller gets the error, and no model is called."""
    model.begin(["a"])
    wrongs: list[dict[str, Any]] = [
        {"purpose": "Not A Word"},
        {"max_tokens": 0},
        {"timeout": -1.0},
        {"prompt": []},
    ]
    for wrong in wrongs:
        with pytest.raises(trunkline.CompletionError) as refused:
            await completer.complete(**{"prompt": "x", **wrong})
        assert refused.value.code == "invalid_request" and model.requests == []


async def test_a_completion_has_a_span_of_its_own() -> None:
    """Span ``chat`` with the purpose, below the span that handles the question, which has the cost."""
    usage = Usage(input_tokens=10, output_tokens=1)
    async with asking([["a", Finish(usage=usage, model="m")]]) as (running, _):
        spans: list[Any] = []

        async def collect(message: Any) -> None:
            spans.extend(span for span in message.data.spans if not span.unfinished)  # slow ones come twice

        await running.bus.subscribe(SPANS, collect)
        await BlockCompleter(running.bus, "main").complete("x", purpose="summary")
        await _until(lambda: any(span.name == "chat" for span in spans))
        await _until(lambda: any("trunkline.model.cost" in span.attributes for span in spans))
        (chat,) = (span for span in spans if span.name == "chat")
        assert chat.attributes["trunkline.model.purpose"] == "summary"
        handled = next(span for span in spans if "trunkline.model.cost" in span.attributes)
        assert handled.name == "process trunkline.cmd.model.complete"
        assert handled.attributes["trunkline.model.cost"] == 35 and chat.parent_id == handled.span_id


async def test_without_a_monitor_the_caller_gets_an_error() -> None:
    """An error with a code, after a short while."""
    async with platform(workers=("gateway", "memory", "tools")) as running:
        with pytest.raises(trunkline.CompletionError) as failed:
            await BlockCompleter(running.bus, "main").complete("x")
        assert failed.value.code == "engine_unavailable"


def test_prices_by_exact_name_then_by_pattern() -> None:
    """An exact name counts before a pattern, a longer pattern before a shorter one; no name is a prefix of another."""
    prices = PriceTable(
        {
            "a/large": Price(input=3, output=9),
            "a/large-*": Price(input=2, output=8),
            "a/*": Price(input=1, output=7),
            "b": Price(input=0.15, output=0.6),
        }
    )
    rates = {name: prices.find_rate(name) for name in ("a/large", "a/large-2", "a/largest", "b", "b/x")}
    assert {name: rate.name if rate else None for name, rate in rates.items()} == {
        "a/large": "3/3/9",
        "a/large-2": "2/2/8",
        "a/largest": "1/1/7",
        "b": "0.15/0.15/0.6",
        "b/x": None,
    }


def test_many_small_costs_are_exact() -> None:
    """No float is added up: 0.15 dollars per million tokens, a million times one token."""
    rate = PriceTable({"x": Price(input=0.15, output=0.6)}).find_rate("x")
    assert rate is not None
    assert rate.cost(Usage(input_tokens=1_000_000)) == 150_000
    assert rate.cost(Usage(input_tokens=10, output_tokens=5)) == 5  # 1.5 + 3.0, the half up
    long = (Message(id="msg_1", role="user", content="wörd " * 100),)
    assert rate.affordable_tokens(long, 0) == 0


SLOW_ONCE = '''
"""Says which process was asked first, and never answers there."""
import os
from pathlib import Path
import anyio
import trunkline
from trunkline.testing.scripted_model import ScriptedModel

def script(request):
    mark = Path("MARK")
    if mark.exists():
        return "answered"
    mark.write_text(str(os.getpid()))
    return [anyio.sleep_forever]

@trunkline.hookimpl
def trunkline_models():
    return [ScriptedModel(script)]
'''


@pytest.mark.kill
async def test_a_completion_is_answered_after_its_monitor_is_killed(tmp_path: Path) -> None:
    """SIGKILL to the monitor that asks the model: the question goes to another, within seconds. Both requests are in
    the cost ledger, that of the killed monitor with an estimate.
    """
    mark = tmp_path / "mark"
    plugins = {"slow": SLOW_ONCE.replace("MARK", str(mark))}
    config = {"runtime.provider_adapter": "scripted"}
    kinds = ("monitor", "memory", "tools")
    async with process_platform(tmp_path / "home", config=config, plugins=plugins, workers=kinds) as running:
        await running.start("monitor", "second")
        answers: list[str] = []

        async def ask() -> None:
            answers.append((await BlockCompleter(running.bus, "main").complete("x")).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await _until(lambda: mark.exists() and bool(mark.read_text()))
            asked = int(mark.read_text())
            name = next(name for name, process in running.processes.items() if process.pid == asked)
            running.kill(name)
        assert answers == ["answered"]
        entries: dict[str, str] = {}
        with anyio.fail_after(60):
            while len(entries) < 2:
                async for stored in running.bus.history(COST):
                    entries[stored.data.worker] = stored.data.status
                await anyio.sleep(0.1)
        assert sorted(entries.values()) == ["finished", "interrupted"]
