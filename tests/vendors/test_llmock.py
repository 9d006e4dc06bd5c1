"""The adapters against llmock, which breaks on demand and grades its client: no error and no warning in its verdict.

The client is what a monitor asks a model with: the registry, the middleware ``trunkline-failover`` and the adapter with
the vendor's SDK. Failover repeats a call before the first event of its answer. An answer that breaks off later is told
as a failure, and whoever asked asks again; here that is the test.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.vendors.llmock_server import LLMock, llmock_server
from trunkline import Message, Secret
from trunkline.api.model import Call, Finish, ModelAdapter, ModelError, ModelEvent, ModelRequest, Text
from trunkline.api.tool import ToolSchema
from trunkline.contracts.models.prices import PriceTable
from trunkline.runtime.cost_ledger import NoLedger
from trunkline.workers.monitor.model_registry import ModelRegistry
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings
from trunkline_failover.circuits import CircuitBreaker
from trunkline_failover.middleware import FailoverMiddleware
from trunkline_failover.settings import FailoverSettings
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.settings import GeminiSettings
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

pytestmark = pytest.mark.anyio

LOOK = ToolSchema(
    name="look",
    description="Look around.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
LONG = "word " * 400
"""A text that is still being sent when a client leaves after its first words: the server must notice that it leaves."""

IDLE_TIMEOUT = 0.8
"""Seconds of silence after which the platform gives an answer up: less than a stall lasts."""


def openai_section(name: str, url: str, path: str, **more: Any) -> ModelAdapter:
    section = VENDOR_SETTINGS.get(name, OpenAISettings)
    return OpenAIAdapter(section(base_url=f"{url}{path}", api_key=Secret(env="A_KEY"), **more))


def adapter_of(name: str, url: str) -> ModelAdapter:
    """Return the adapter of a name, for this server."""
    key = Secret(env="A_KEY")
    match name:
        case "openai-responses":
            return openai_section("openai", url, "/v1", api="responses", model="gpt-4o-mini")
        case "openai-chat":
            return openai_section("openai", url, "/v1", api="chat", model="gpt-4o-mini")
        case "mistral":
            return openai_section("mistral", url, "/mistral/v1", model="mistral-large-latest")
        case "anthropic":
            settings = AnthropicSettings(base_url=f"{url}/anthropic", api_key=key, model="claude-sonnet-4-5")
            return AnthropicAdapter(settings)
    return GeminiAdapter(GeminiSettings(base_url=f"{url}/gemini", api_key=key, model="gemini-2.5-flash"))


CHUNKS = {"openai-chat": 3, "openai-responses": 6, "mistral": 3, "anthropic": 4, "gemini": 1}
"""The adapters, and the events of each protocol after which some text of the answer has arrived."""

ADAPTERS = tuple(CHUNKS)


@dataclass(frozen=True)
class Fault:
    """What the server does, and how the client ends. ``answers``: the call succeeds in the end. ``fault``: that of the
    error that is raised. ``asks_again``: the answer had begun, so the test asks again. ``beside`` are others.
    """

    behavior: Mapping[str, Any]
    answers: bool = True
    fault: str = ""
    asks_again: bool = False
    beside: tuple[Mapping[str, Any], ...] = ()


def stream_fault(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, **more}


FAULTS: dict[str, Fault] = {
    "rate limit": Fault({"type": "fail", "status": 429, "retry_after": 0.3, "times": 2}),
    "outage": Fault({"type": "fail", "status": 503, "times": 2}),
    "server error": Fault({"type": "fail", "status": 500}),
    "overloaded": Fault({"type": "fail", "status": 529}),
    "bad gateway": Fault({"type": "fail", "status": 502}),
    "bad request": Fault({"type": "fail", "status": 400}, answers=False, fault="refused"),
    "wrong key": Fault({"type": "fail", "status": 401}, answers=False, fault="authentication"),
    "unknown model": Fault({"type": "fail", "status": 404}, answers=False, fault="refused"),
    "delay": Fault({"type": "delay", "seconds": 0.2}),
    "slow first token": Fault({"type": "slow_first_token", "seconds": 0.3}),
    "dropped connection": Fault(stream_fault("disconnect"), fault="interrupted", asks_again=True),
    "truncated stream": Fault(stream_fault("truncate"), fault="interrupted", asks_again=True),
    "malformed chunk": Fault(
        stream_fault("malformed"),
        fault="bad_response",
        asks_again=True,
        beside=({"type": "reply", "text": LONG},),
    ),
    "stalled stream": Fault(stream_fault("stall", stall_seconds=2.5), fault="timeout", asks_again=True),
}


class Client:
    """Asks a model as a monitor does."""

    def __init__(self, adapter: ModelAdapter) -> None:
        self.adapter = adapter
        settings = FailoverSettings(first_delay=0.1, max_delay=2.0)
        failover = FailoverMiddleware(settings, CircuitBreaker(), random.Random(1))
        self._registry = ModelRegistry(
            [adapter], adapter.name, middleware=[failover], prices=PriceTable({}), ledger=NoLedger(),
            idle_timeout=IDLE_TIMEOUT,
        )  # fmt: skip

    async def warm_up(self) -> None:
        """Ask once without a time limit: the import of the SDK is no silence of the vendor."""
        async for _ in self.adapter.stream(request_of(self.adapter)):
            pass

    async def ask(self, request: ModelRequest) -> tuple[list[ModelEvent], ModelError | None]:
        """Return the events, and the error that ended them."""
        choice = self._registry.choose(None)
        events: list[ModelEvent] = []
        try:
            async for event in self._registry.ask(choice)(request):
                events.append(event)
        except ModelError as error:
            return events, error
        return events, None


def request_of(adapter: ModelAdapter, *messages: Message, tools: tuple[ToolSchema, ...] = ()) -> ModelRequest:
    asked = messages or (Message(id="1", role="user", content="How is the sea today, and the wind?"),)
    return ModelRequest(
        messages=asked, tools=tools, max_tokens=500, adapter=adapter.name, model=adapter.default_model
    )


@pytest.fixture(scope="module")
def server() -> Iterator[LLMock]:
    with llmock_server() as running:
        yield running


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-canary-0123456789abcdef")


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("name", ADAPTERS)
async def test_the_verdict_on_every_adapter_is_clean(server: LLMock, name: str) -> None:
    """Over all faults: an error of the right kind where there is no answer, a complete answer elsewhere, and neither an
    error nor a warning in the verdict.
    """
    client = Client(adapter_of(name, server.url))
    try:
        await client.warm_up()
        for label, fault in FAULTS.items():
            chunks = {"after_chunks": CHUNKS[name]} if fault.asks_again else {}
            server.play({**fault.behavior, **chunks}, *fault.beside)
            await _check(server, client, f"{name}, {label}", fault)
            verdict = server.verdict()
            assert not server.waiting(), f"{label} did not happen"
            assert verdict["faults_injected"] >= (fault.behavior["type"] in ("fail", "stream_fault"))
            assert (verdict["errors"], verdict["warnings"]) == (0, 0), (label, verdict["findings"])
    finally:
        await client.adapter.aclose()


async def _check(server: LLMock, client: Client, label: str, fault: Fault) -> None:
    request = request_of(client.adapter)
    events, error = await client.ask(request)
    assert (error.fault if error else "") == fault.fault, (label, error)
    assert "canary" not in str(error)
    if fault.asks_again:
        assert not any(isinstance(event, Finish) for event in events), label
        server.verdict()  # waits until the server has noticed the end of the first request
        events, error = await client.ask(request)
        assert error is None, (label, error)
    if fault.answers:
        assert "".join(event.text for event in events if isinstance(event, Text)), label
        assert isinstance(events[-1], Finish), label
        assert events[-1].usage.input_tokens > 0, label


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("name", ADAPTERS)
async def test_tool_calls_of_another_server_come_and_go(server: LLMock, name: str) -> None:
    """A scripted call arrives with its arguments; its result goes back in a form that the server takes; arguments that
    are no JSON are kept as text.
    """
    client = Client(adapter_of(name, server.url))
    try:
        await client.warm_up()
        server.play({"type": "reply", "tool_calls": [{"name": "look", "arguments": {"at": "sea"}}]})
        events, error = await client.ask(request_of(client.adapter, tools=(LOOK,)))
        assert error is None, error
        [call] = [event.call for event in events if isinstance(event, Call)]
        assert (call.name, call.arguments) == ("look", {"at": "sea"})
        asked = Message(id="1", role="user", content="How is the sea today, and the wind?")
        called = Message(id="2", role="assistant", content="", tool_calls=(call,))
        result = Message(id="3", role="tool", content="waves", tool_call_id=call.id, name="look")
        answer, error = await client.ask(request_of(client.adapter, asked, called, result, tools=(LOOK,)))
        assert error is None, error
        assert "".join(event.text for event in answer if isinstance(event, Text))
        server.play({"type": "tool_fault", "kind": "malformed_arguments"})
        events, error = await client.ask(request_of(client.adapter, tools=(LOOK,)))
        assert error is None, error
        [broken] = [event.call for event in events if isinstance(event, Call)]
        assert list(broken.arguments) == ([] if name == "gemini" else [""])  # Gemini sends objects, no text
        assert server.verdict()["errors"] == 0
    finally:
        await client.adapter.aclose()
