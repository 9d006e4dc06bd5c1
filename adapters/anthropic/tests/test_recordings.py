"""Byte streams as Anthropic and compatible servers send them, and what the adapter makes of them.

The recordings are written by hand after the vendor's reference. Each is served whole and byte by byte.
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
    Usage,
)
from trunkline.testing.script import Raw
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.settings import AnthropicSettings

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parent / "recordings"
LOOK, LISTEN = ("look", {"at": "sea"}), ("listen", {"to": "wind"})


def thinking(text: str, signature: str, **place: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature, **place}


ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "text": "Grüße vom Hafen 🚢.",
        "usage": Usage(input_tokens=19, output_tokens=10, cached_tokens=10, cache_write_tokens=5),
        "model": "claude-sonnet-5-5",
    },
    "thinking_and_calls": {
        "reasoning": "Boats rest.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["toolu_a", "toolu_b"],
        "blocks": [thinking("Boats rest.", "EqQBCgIY==")],
        "usage": Usage(input_tokens=19, output_tokens=40, reasoning_tokens=7),
    },
    "redacted_thinking": {"text": "Calm.", "blocks": [{"type": "redacted_thinking", "data": "EmwKAhgB"}]},
    "thinking_between_calls": {
        "reasoning": "First.\n\nThen.\n\nLast.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "blocks": [
            thinking("First.", "s1"),
            thinking("Then.", "s2", after_text=7),
            thinking("Last.", "s3", after_text=7, after_calls=1),
        ],
    },
    "omitted_thinking": {"text": "Calm.", "blocks": [thinking("", "EqQBCgIY==")]},
    "call_without_arguments": {"calls": [("look", {})]},
    "refusal": {"text": "Half", "reason": "content_filter"},
    "limit_cuts_a_call": {"calls": [LOOK], "reason": "max_tokens"},
    "limit_cuts_a_call_at_once": {"calls": [LOOK], "reason": "max_tokens"},
    "window_exceeded": {"text": "Half", "reason": "max_tokens"},
    "stop_sequence": {"text": "Calm."},
    "pause_turn": {"text": "Calm."},
    "unknown_events": {"text": "Calm."},
    "unnamed_events": {"text": "Calm."},
    "compatible_arguments_at_once": {
        "calls": [LOOK, LISTEN],
        "usage": Usage(input_tokens=9, output_tokens=2),
        "model": "qwen3",
    },
}

FAILURES: dict[str, tuple[str, str, str]] = {
    "failure_overloaded": ("Half", "provider_error", "unavailable"),
    "failure_rate_limit": ("Half", "provider_error", "rate_limited"),
    "failure_api_error": ("", "provider_error", "unavailable"),
    "failure_overflow": ("", "context_overflow", "refused"),
    "failure_ends_early": ("Half", "provider_error", "interrupted"),
    "failure_wrong_shape": ("Half", "provider_error", "bad_response"),
    "failure_no_type": ("", "provider_error", "bad_response"),
    "failure_null_event": ("Half", "provider_error", "bad_response"),
    "failure_not_utf8": ("Grüße vom ", "provider_error", "bad_response"),
}

both_sizes = pytest.mark.parametrize("size", [0, 3], ids=["whole", "in-threes"])
"""Three bytes at a time divide lines, events and characters, in a third of the time that single bytes take."""


@both_sizes
@pytest.mark.parametrize("name", list(ANSWERS))
async def test_a_recorded_answer_is_read(name: str, size: int) -> None:
    """Text, reasoning, calls, usage and finish reason are the same however the bytes are cut."""
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
    assert finish.model == expected.get("model", finish.model)


@pytest.mark.parametrize("name", list(ANSWERS))
async def test_blocks_of_reasoning_are_kept_as_they_came(name: str) -> None:
    """Signed and redacted blocks are complete, with their place in the answer; a block without signature is none."""
    events, _ = await _play(name, 0)
    blocks = [event.block for event in events if isinstance(event, ReasoningDone)]
    assert [block.data for block in blocks] == ANSWERS[name].get("blocks", [])
    assert {(block.vendor, block.model) for block in blocks} <= {("anthropic", "m")}


@both_sizes
@pytest.mark.parametrize("name", list(FAILURES))
async def test_a_recorded_failure_has_its_code(name: str, size: int) -> None:
    """An error that a server reports in its stream, or a stream that cannot be read, gets the fixed code and fault."""
    text, code, fault = FAILURES[name]
    events, error = await _play(name, size)
    assert error is not None
    if name != "failure_not_utf8":  # how much of it can be read depends on the pieces
        assert _joined(events, Text) == text
    assert (error.code, error.fault) == (ErrorCode(code), fault)


def test_every_recording_is_used() -> None:
    """Each file is read by a test."""
    found = {path.stem for path in RECORDINGS.glob("*.sse")}
    assert found == set(ANSWERS) | set(FAILURES)


def _joined(events: list[ModelEvent], kind: type[Text] | type[Reasoning]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


async def _play(name: str, size: int) -> tuple[list[ModelEvent], ModelError | None]:
    data = (RECORDINGS / f"{name}.sse").read_bytes()
    events: list[ModelEvent] = []
    async with ScriptedProvider(lambda heard: (Raw(data, size),)).serving() as provider:
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address, model="m"))
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="How is the harbour?"),))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        finally:
            await adapter.aclose()
    return events, None
