"""The adapter contract over POST /engine/chat, and the particulars of a loop that runs its tools itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from trunkline import ConfigError, ErrorCode, Message
from trunkline.api.model import (
    Call,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelRequest,
    Text,
    ToolRan,
)
from trunkline.testing.adapter_suite import (
    PROGRAMS,
    ScriptedProviderSuite,
    conversation_after_calls,
    request_for,
)
from trunkline.testing.script import Raw
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_engine import plugin
from trunkline_engine.adapter import EngineAdapter
from trunkline_engine.settings import EngineSettings

pytestmark = pytest.mark.anyio

NO_CALLS = "the other side runs its tools itself"


class TestContract(ScriptedProviderSuite):
    """The contract; calls come as ToolRan, and the contract has no code for too many requests."""

    lacks = {
        "calls": NO_CALLS,
        "text_and_calls": NO_CALLS,
        "bad_arguments": NO_CALLS,
        "reasoning": "the contract has no reasoning",
        "rate_limited": "the contract has no code for it",
    }

    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        return EngineAdapter(EngineSettings(url=provider.address))


async def ask(
    script: Any, request: ModelRequest, **settings: Any
) -> tuple[list[ModelEvent], ModelError | None, ScriptedProvider]:
    events: list[ModelEvent] = []
    failed: ModelError | None = None
    async with ScriptedProvider(*([script] if script else [])).serving() as provider:
        adapter = EngineAdapter(EngineSettings(url=f"{provider.address}/", **settings))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            failed = error
        await adapter.aclose()
    return events, failed, provider


def stream(*events: tuple[str, Any]) -> Any:
    data = "".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events)
    return lambda scripted_request: (Raw(data.encode()),)


async def test_tools_that_the_loop_ran_are_shown_with_their_results() -> None:
    """A tool-call and its tool-result become one ToolRan, in order, and no Call is left to run."""
    events, error, _ = await ask(None, request_for(PROGRAMS["calls"]))
    assert error is None
    ran = [event for event in events if isinstance(event, ToolRan)]
    assert [(event.call.name, event.call.arguments) for event in ran] == [
        ("look", {"at": "sea"}),
        ("listen", {"to": "wind"}),
    ]
    assert ran[0].output == 'look ran with {"at": "sea"}'
    assert not [event for event in events if isinstance(event, Call)]
    assert "look said" in "".join(event.text for event in events if isinstance(event, Text))
    assert isinstance(events[-1], Finish)
    assert events[-1].reason == "stop"


async def test_the_request_is_the_contracts() -> None:
    """Messages have role and content only; the metadata has a correlation id; both identity headers are there."""
    request = ModelRequest(
        messages=(
            Message(id="msg_1", role="system", content="Be brief."),
            Message(id="m", role="user", content="say:x"),
        ),
        conversation="conv_1",
        turn="turn_1",
        block="main",
    )
    _, error, provider = await ask(None, request, actor="anna", permissions="memory:*")
    assert error is None
    [asked] = provider.answer_requests
    assert asked.path == "/engine/chat"
    assert asked.body == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "say:x"}],
        "metadata": {
            "correlation_id": "turn_1",
            "conversation_id": "conv_1",
            "trigger": "message",
            "client_context": {"block": "main"},
        },
    }
    assert (asked.headers["x-actor-id"], asked.headers["x-actor-permissions"]) == ("anna", "memory:*")


@pytest.mark.parametrize(
    ("actor", "permissions", "headers"),
    [
        ("owner", ("memory:*", "tools:*"), ("owner", {"memory:*", "tools:*"})),
        ("anna", ("memory:/blocks/main/*", "tools:*"), ("anna", {"memory:/blocks/main/*", "tools:*"})),
        ("anna", ("tools:read_*", "system:*"), ("anna", {"tools:read_*"})),
        ("anna", (), ("anna", {""})),
        ("anna", None, ("anna", {""})),
        ("", None, ("owner", {"memory:*", "tools:*"})),
    ],
)
async def test_PA_F18_the_loop_is_told_for_whom_it_works(
    actor: str, permissions: tuple[str, ...] | None, headers: tuple[str, set[str]]
) -> None:
    """The headers name the person of the turn, and the permissions that both the turn and the settings have. Nobody
    gets the owner's by asking through another loop."""
    request = ModelRequest(
        messages=(Message(id="m", role="user", content="say:x"),), actor=actor, permissions=permissions
    )
    _, error, provider = await ask(None, request)
    assert error is None
    [asked] = provider.answer_requests
    sent = asked.headers["x-actor-id"], set(asked.headers["x-actor-permissions"].split(","))
    assert sent == headers


@pytest.mark.parametrize("actor", ["anna\r\nX-Actor-ID: owner", " anna", "änna"])
async def test_an_id_that_is_no_header_is_not_sent(actor: str) -> None:
    """It could name somebody else to the loop, so the request is not made."""
    request = ModelRequest(messages=(Message(id="m", role="user", content="say:x"),), actor=actor)
    _, error, provider = await ask(None, request)
    assert error is not None and error.fault == "refused"
    assert provider.answer_requests == []


async def test_earlier_calls_are_sent_with_their_results() -> None:
    """Only messages that have them carry more than role and content."""
    _, _, provider = await ask(None, ModelRequest(messages=conversation_after_calls()))
    person, model, look, _ = provider.answer_requests[0].body["messages"]
    assert set(person) == {"role", "content"}
    assert [call["id"] for call in model["tool_calls"]] == ["call_look", "call_listen"]
    assert look == {"role": "tool", "content": "waves", "tool_call_id": "call_look"}


async def test_the_engine_adapter_is_never_chosen_automatically() -> None:
    """With provider_adapter "auto" an address alone does not swap the loop."""
    assert not EngineAdapter(EngineSettings(url="http://127.0.0.1:8422")).configured


async def test_a_request_without_a_turn_still_has_a_correlation_id() -> None:
    """The contract requires one."""
    _, _, provider = await ask(None, request_for("say:x"))
    assert provider.answer_requests[0].body["metadata"]["correlation_id"]


async def test_a_failed_remote_tool_is_marked() -> None:
    """A tool-result with an error is a ToolRan with error."""
    script = stream(
        ("tool-call", {"id": "1", "name": "look", "arguments": {}}),
        ("tool-result", {"id": "1", "error": "too dark"}),
        ("done", {"finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    )
    events, _, _ = await ask(script, request_for("x"))
    assert isinstance(events[0], ToolRan)
    assert (events[0].output, events[0].error) == ("too dark", True)
    assert isinstance(events[1], Finish)
    assert (events[1].usage.input_tokens, events[1].usage.output_tokens) == (3, 4)


@pytest.mark.parametrize(
    ("code", "expected", "fault"),
    [
        ("provider_error", ErrorCode.PROVIDER_ERROR, "unavailable"),
        ("tool_error", ErrorCode.TOOL_ERROR, "refused"),
        ("context_overflow", ErrorCode.CONTEXT_OVERFLOW, "refused"),
        ("something_else", ErrorCode.PROVIDER_ERROR, "unavailable"),
    ],
)
async def test_the_loops_error_codes_are_passed_on(code: str, expected: ErrorCode, fault: str) -> None:
    """The three codes of the contract are kept (ARCH-5); any other is the provider's failure."""
    script = stream(("text-delta", {"content": "Half"}), ("error", {"code": code, "message": "No."}))
    events, error, _ = await ask(script, request_for("x"))
    assert error is not None
    assert (events, error.code, error.fault) == ([Text("Half")], expected, fault)


@pytest.mark.parametrize(
    "events",
    [
        [("tool-result", {"id": "9", "output": "x"})],
        [("text-delta", {"text": "x"})],
        [("done", "stop")],
        [("tool-call", {"id": 1})],
    ],
)
async def test_events_that_break_the_contract_are_a_bad_response(events: list[tuple[str, Any]]) -> None:
    """The adapter does not guess."""
    _, error, _ = await ask(stream(*events), request_for("x"))
    assert error is not None
    assert error.fault == "bad_response"


async def test_events_that_the_contract_does_not_know_are_passed_over() -> None:
    """The contract may grow (P6)."""
    script = stream(
        ("mood", {"is": "fine"}),
        ("text-delta", {"content": "x", "more": 1}),
        ("done", {"finish_reason": "stop"}),
    )
    events, error, _ = await ask(script, request_for("x"))
    assert error is None
    assert events[0] == Text("x")


async def test_the_plugin_declares_the_adapter_when_there_is_an_address() -> None:
    """Without a url there is no adapter, and an invalid address is refused."""

    class Given:
        home = Path("/nowhere")

        def __init__(self, url: str) -> None:
            self._url = url

        def section(self, kind: type[Any]) -> Any:
            return kind(url=self._url)

    assert list(plugin.trunkline_models(settings=Given(""))) == []
    assert len(list(plugin.trunkline_models(settings=Given("http://127.0.0.1:8422")))) == 1
    with pytest.raises(ConfigError, match="not a web address"):
        EngineSettings(url="127.0.0.1:8422")
