"""Byte streams as different servers send them, and the adapter's reading of them.

The recordings are written by hand after the known output of the servers. Each is served as a whole and byte by byte.
"""

from pathlib import Path
from typing import Any

import pytest

from trunkline import ErrorCode, Message
from trunkline.api.model import (
    Call,
    Finish,
    ModelError,
    ModelEvent,
    ModelRequest,
    Reasoning,
    ReasoningDone,
    Text,
    ToolRan,
    Usage,
)
from trunkline.testing.script import Raw
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.responses import Responses
from trunkline_openai.settings import OpenAISettings

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parent / "recordings"
CACHED = Usage(
    input_tokens=100, output_tokens=20, cached_tokens=40, reasoning_tokens=8, cache_write_tokens=50
)
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
    "chat/deepseek_cached": {
        "text": "Calm.",
        "usage": Usage(input_tokens=90, output_tokens=2, cached_tokens=64),
    },
    "chat/moonshot_cached": {
        "text": "Calm.",
        "usage": Usage(input_tokens=90, output_tokens=2, cached_tokens=32),
    },
    "chat/openrouter_cache_write": {
        "text": "Calm.",
        "usage": Usage(input_tokens=90, output_tokens=2, cached_tokens=10, cache_write_tokens=70),
    },
    "chat/xai_reasoning_apart": {
        "reasoning": "Boats rest.",
        "text": "Calm.",
        "usage": Usage(input_tokens=10, output_tokens=32, reasoning_tokens=30),
    },
    "chat/mistral_thinking": {
        "reasoning": "Boats rest.",
        "text": "Calm.",
        "usage": Usage(input_tokens=10, output_tokens=9),
    },
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
    "responses/encrypted_reasoning": {
        "reasoning": "Listen too.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["call_a", "call_b"],
        "usage": CACHED,
    },
    "responses/hosted_tools": {"text": "Calm.", "usage": CACHED},
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

both_sizes = pytest.mark.parametrize("size", [0, 3], ids=["whole", "in-threes"])
"""Three bytes at a time divide lines, events and characters, in a third of the time that single bytes take."""


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


async def test_reasoning_items_keep_their_places() -> None:
    """The items of the answer are blocks with their place among text and calls, and come back in these places. The
    phase of the message comes back with it.
    """
    events, error = await _play("responses/encrypted_reasoning", 0)
    assert error is None
    blocks = tuple(event.block for event in events if isinstance(event, ReasoningDone))
    sealed = [block.data["item"]["encrypted_content"] for block in blocks if "item" in block.data]
    assert sealed == ["gAAAAA-one", "gAAAAA-two"]
    calls = tuple(event.call for event in events if isinstance(event, Call))
    answer = Message(
        id="msg_2", role="assistant", content=_joined(events, Text), tool_calls=calls, reasoning=blocks
    )
    request = ModelRequest(messages=(Message(id="msg_1", role="user", content="How?"), answer))
    items = Responses.body(request, "m", OpenAISettings(base_url="http://x", model="m"))["input"]
    assert [item.get("id") or item.get("role") or item["name"] for item in items] == [
        "user", "rs_1", "assistant", "look", "rs_2", "listen",
    ]  # fmt: skip
    assert items[2] == {"role": "assistant", "content": "I look.", "phase": "commentary"}


async def test_hosted_tools_are_shown_as_calls_that_ran() -> None:
    """Each item has the tool's name, its arguments and its output; an image is told, not repeated."""
    events, error = await _play("responses/hosted_tools", 0)
    assert error is None
    ran = [event for event in events if isinstance(event, ToolRan)]
    assert [(one.call.name, one.call.arguments, one.output, one.error) for one in ran] == [
        ("web_search", {"type": "search", "query": "harbour"}, "https://harbour.example/", False),
        ("code_interpreter", {"code": "print(2)"}, "2\n", False),
        ("file_search", {"queries": ["harbour"]}, "log.txt: Calm since noon.", False),
        ("image_generation", {"prompt": "A harbour"}, "an image (png, about 9 bytes)", False),
        ("ask", {"q": 1}, "no answer", True),
    ]


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
