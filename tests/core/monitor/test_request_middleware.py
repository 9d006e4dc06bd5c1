"""Middleware around each request to an adapter, and the price of each answer."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from trunkline import ErrorCode, Message
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelError,
    ModelEvent,
    ModelMiddleware,
    ModelRequest,
    Price,
    PriceTable,
    ResponseFormat,
    Text,
    Usage,
)
from trunkline.runtime.cost_ledger import NoLedger
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.monitor.model_registry import ModelRegistry

pytestmark = pytest.mark.anyio

PRICES = PriceTable(
    {"scripted/small": Price(input=2.0, output=8.0), "scripted/*": Price(input=1.0, output=1.0)}
)
REQUEST = ModelRequest(
    messages=(Message(id="msg_1", role="user", content="How is the sea?"),), adapter="scripted", model="small"
)
USAGE = Usage(input_tokens=10, output_tokens=3)


class Recorder:
    """Records each request that passes."""

    def __init__(self, *, each_request: bool) -> None:
        self.each_request = each_request
        self.requests: list[ModelRequest] = []
        self.ends: list[Finish] = []

    async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        async for event in proceed(request):
            if isinstance(event, Finish):
                self.ends.append(event)
            yield event


async def twice(request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
    """Ask again if the first attempt failed."""
    try:
        async for event in proceed(request):
            yield event
    except ModelError:
        async for event in proceed(request):
            yield event


async def ask(
    script: Sequence[Any], *middleware: ModelMiddleware, request: ModelRequest = REQUEST
) -> list[ModelEvent]:
    models = ModelRegistry(
        [ScriptedModel(script)],
        "scripted",
        middleware=middleware,
        prices=PRICES,
        ledger=NoLedger(),
        idle_timeout=10.0,
    )
    return [event async for event in models.ask(models.choose("scripted"))(request)]


async def test_a_retry_passes_the_request_middleware_again() -> None:
    """Also when the middleware that retries belongs to a later plugin, and so is inside of other call middleware."""
    requests, calls = Recorder(each_request=True), Recorder(each_request=False)
    fault = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable")
    events = await ask([[fault], "calm"], requests, calls, twice)
    assert Text("calm") in events
    assert (len(requests.requests), len(calls.requests)) == (2, 1)


async def test_a_repair_passes_the_request_middleware_again() -> None:
    """Each of the two requests has its own usage and cost; the call has the sum."""
    requests, calls = Recorder(each_request=True), Recorder(each_request=False)
    script = [[text, Finish(usage=USAGE, model="small")] for text in ("Calm.", '{"sea": "calm"}')]
    formatted = ModelRequest(
        messages=REQUEST.messages, adapter="scripted", model="small", response_format=ResponseFormat()
    )
    events = await ask(script, requests, calls, request=formatted)
    assert Text('{"sea": "calm"}') in events
    assert [end.cost for end in requests.ends] == [44, 44]
    (end,) = calls.ends
    assert (end.usage, end.cost) == (USAGE + USAGE, 88)
    assert all(request.response_format is None for request in requests.requests)


async def test_a_function_wraps_whole_calls() -> None:
    """Plain functions have no attribute, and stay around the call."""
    fault = ModelError(ErrorCode.PROVIDER_ERROR, "unavailable")
    assert Text("calm") in await ask([[fault], "calm"], twice)


async def test_request_middleware_cannot_break_the_transcript() -> None:
    """The adapter receives a valid transcript, whatever the middleware did."""
    model = ScriptedModel(["calm"])

    class Breaking:
        each_request = True

        async def __call__(self, request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
            orphan = Message(id="msg_2", role="tool", content="3", tool_call_id="none")
            broken = ModelRequest(messages=(*request.messages, orphan), adapter="scripted")
            async for event in proceed(broken):
                yield event

    models = ModelRegistry(
        [model], "scripted", middleware=[Breaking()], prices=PRICES, ledger=NoLedger(), idle_timeout=10.0
    )
    async for _ in models.ask(models.choose("scripted"))(REQUEST):
        pass
    assert [message.role for message in model.requests[0].messages] == ["user"]


@pytest.mark.parametrize(("model", "cost"), [("small", 44), ("other", 13), ("", 13)])
async def test_the_end_of_an_answer_has_its_cost(model: str, cost: int) -> None:
    """The requested model's price, else that of the model that answered."""
    request = ModelRequest(messages=REQUEST.messages, adapter="scripted", model=model)
    end = (await ask([["calm", Finish(usage=USAGE, model="large")]], request=request))[-1]
    assert isinstance(end, Finish) and end.source is not None
    assert (end.cost, end.source.requested) == (cost, model)
    assert end.price_version.startswith("trunkline.toml ")


async def test_an_answer_without_a_price_has_no_cost(caplog: pytest.LogCaptureFixture) -> None:
    """Unknown is not free: the tokens are counted, and one warning names the setting."""
    models = ModelRegistry(
        [ScriptedModel(["calm", "rough"])],
        "scripted",
        prices=PriceTable({}),
        ledger=NoLedger(),
        idle_timeout=10.0,
    )
    for _ in range(2):
        events = [event async for event in models.ask(models.choose("scripted"))(REQUEST)]
        end = events[-1]
        assert isinstance(end, Finish) and (end.cost, end.price_version) == (None, "")
    assert sum("has no price" in record.message for record in caplog.records) == 1
