"""Byte streams as different servers send them, and the adapter's reading of them.

The recordings are written by hand after the known output of the servers. Each is served as a whole and byte by byte.
"""

from pathlib import Path
from typing import Any

import pytest

from trunkline import ErrorCode, Message
from trunkline.api.model import Call, Finish, ModelError, ModelEvent, ModelRequest, Reasoning, Text, Usage
from trunkline.testing.script import Raw
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.settings import OpenAISettings

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parent / "recordings"
LOOK, LISTEN = ("look", {"at": "sea"}), ("listen", {"to": "wind"})

ANSWERS: dict[str, dict[str, Any]] = {
    "chat/openai_text": {
        "text": "Grüße vom Hafen 🚢.",
        "usage": Usage(input_tokens=19, output_tokens=10, cached_tokens=8, reasoning_tokens=3),
    },
    "chat/openai_parallel_calls": {
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["call_a", "call_b"],
        "usage": Usage(input_tokens=5, output_tokens=7),
    },
    "chat/interleaved_calls": {"calls": [LOOK, LISTEN], "ids": ["call_a", "call_b"]},
    "chat/deepseek_reasoning": {
        "reasoning": "Boats rest.",
        "text": "Calm.",
        "usage": Usage(input_tokens=6, output_tokens=9, reasoning_tokens=4),
    },
    "chat/openrouter": {"reasoning": "Hm.", "text": "Calm.", "usage": Usage(input_tokens=4, output_tokens=2)},
    "chat/ollama_calls": {"calls": [LOOK, LISTEN], "ids": ["call_q1", "call_q2"]},
    "chat/calls_without_index_or_id": {"calls": [LOOK, LISTEN]},
    "chat/arguments_as_object": {"calls": [LOOK]},
    "chat/vllm_running_usage": {"text": "Calm.", "usage": Usage(input_tokens=9, output_tokens=2)},
    "chat/azure_first_chunk": {"text": "Calm."},
    "chat/no_space_no_done": {"text": "Calm."},
    "chat/refusal": {"text": "I cannot help with that."},
    "chat/filtered": {"text": "Half", "reason": "content_filter"},
    "chat/limit_cuts_a_call": {"calls": [LOOK], "reason": "max_tokens"},
    "chat/unknown_finish_reason": {"text": "Calm."},
    "responses/openai_text": {
        "text": "Grüße 🚢.",
        "usage": Usage(input_tokens=30, output_tokens=12, cached_tokens=16, reasoning_tokens=5),
    },
    "responses/openai_reasoning_calls": {
        "reasoning": "**Sea**\n\nBoats rest.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["call_a", "call_b"],
    },
    "responses/calls_only_at_the_end": {"calls": [LOOK, LISTEN], "ids": ["call_a", "call_b"]},
    "responses/unnamed_events": {"text": "Calm.", "usage": Usage(input_tokens=1, output_tokens=2)},
    "responses/limit_cuts_a_call": {"text": "Half", "reason": "max_tokens"},
    "responses/refusal": {"text": "I cannot."},
}

FAILURES: dict[str, tuple[str, str, str]] = {
    "chat/openrouter_error": ("Half an", "provider_error", "unavailable"),
    "chat/llamacpp_overflow": ("", "context_overflow", "refused"),
    "chat/error_rate_limit": ("Half", "provider_error", "rate_limited"),
    "chat/error_as_text": ("Half", "provider_error", "unavailable"),
    "chat/wrong_shape": ("Half", "provider_error", "bad_response"),
    "chat/not_an_object": ("Half", "provider_error", "bad_response"),
    "chat/null_event": ("Half", "provider_error", "bad_response"),
    "chat/not_utf8": ("Half", "provider_error", "bad_response"),
    "responses/failed_rate_limit": ("Half", "provider_error", "rate_limited"),
    "responses/failed_server": ("", "provider_error", "unavailable"),
    "responses/error_event_overflow": ("", "context_overflow", "refused"),
    "responses/error_event_nested": ("", "context_overflow", "refused"),
    "responses/ends_early": ("Half", "provider_error", "interrupted"),
    "responses/wrong_shape": ("", "provider_error", "bad_response"),
    "responses/no_type": ("", "provider_error", "bad_response"),
}

both_sizes = pytest.mark.parametrize("size", [0, 1], ids=["whole", "bytewise"])


@both_sizes
@pytest.mark.parametrize("name", list(ANSWERS))
async def test_a_recorded_answer_is_read(name: str, size: int) -> None:
    """Text, reasoning, calls, usage and finish reason are the same for any division of the bytes."""
    expected = ANSWERS[name]
    events, error = await _play(name, size)
    assert error is None
    calls = [event.call for event in events if isinstance(event, Call)]
    assert _joined(events, Text) == expected.get("text", "")
    assert _joined(events, Reasoning) == expected.get("reasoning", "")
    assert [(call.name, call.arguments) for call in calls] == expected.get("calls", [])
    assert [call.id for call in calls] == expected.get("ids", [call.id for call in calls])
    assert len({call.id for call in calls if call.id}) == len(calls)
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason == expected.get("reason", "tool_calls" if calls else "stop")
    assert finish.usage == expected.get("usage", finish.usage)


@both_sizes
@pytest.mark.parametrize("name", list(FAILURES))
async def test_a_recorded_failure_has_its_code(name: str, size: int) -> None:
    """An error that a server reports in its stream, or a stream that cannot be read, gets the fixed code and fault."""
    text, code, fault = FAILURES[name]
    events, error = await _play(name, size)
    assert error is not None
    assert (_joined(events, Text), error.code, error.fault) == (text, ErrorCode(code), fault)


def test_every_recording_is_used() -> None:
    """No file lies there that no test reads."""
    found = {str(path.relative_to(RECORDINGS).with_suffix("")) for path in RECORDINGS.rglob("*.sse")}
    assert found == set(ANSWERS) | set(FAILURES)


def _joined(events: list[ModelEvent], kind: type[Text] | type[Reasoning]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


async def _play(name: str, size: int) -> tuple[list[ModelEvent], ModelError | None]:
    data = (RECORDINGS / f"{name}.sse").read_bytes()
    events: list[ModelEvent] = []
    async with ScriptedProvider(lambda scripted_request: (Raw(data, size),)).serving() as provider:
        api: Any = name.partition("/")[0]
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, model="m", api=api))
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="How is the harbour?"),))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        finally:
            await adapter.aclose()
    return events, None
