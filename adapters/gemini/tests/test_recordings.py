"""Byte streams as the Gemini API sends them, and what the adapter makes of them.

The recordings are written by hand after the vendor's reference. Each is served whole and byte by byte.
"""

from pathlib import Path
from typing import Any

import pytest
from google.genai import types

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
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.event_stream import EventSplitter
from trunkline_gemini.settings import GeminiSettings

RECORDINGS = Path(__file__).parent / "recordings"
LOOK, LISTEN = ("look", {"at": "sea"}), ("listen", {"to": "wind"})
SIGNATURE = "EjQKMgEMOdbHO0Gd+c9Mxk4ELwPGbpCEgFlBnwWdWEkC0ZSE"


def signed(part: str, **place: Any) -> dict[str, Any]:
    return {"part": part, **place, "thoughtSignature": SIGNATURE}


ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "text": "Grüße vom Hafen 🚢.",
        "usage": Usage(input_tokens=19, output_tokens=10, cached_tokens=12),
        "model": "gemini-3.8-flash",
    },
    "thoughts_and_calls": {
        "reasoning": "**Looking**\n\nBoats rest.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["8f2b1a3c", "8f2b1a3d"],
        "blocks": [signed("functionCall", id="8f2b1a3c")],
        "usage": Usage(input_tokens=30, output_tokens=40, reasoning_tokens=7),
    },
    "calls_without_ids": {"calls": [LOOK, LOOK], "model": "gemini-2.5-flash"},
    "call_without_args": {"calls": [("look", {})]},
    "signature_on_empty_text": {"text": "Calm.", "blocks": [signed("text", start=5, end=5)]},
    "signature_on_text": {"text": "Calm sea.", "blocks": [signed("text", start=5, end=9)]},
    "signature_alone": {"text": "Calm.", "blocks": [signed("text", start=5, end=5)]},
    "signature_on_thought": {
        "reasoning": "Boats rest.",
        "text": "Calm.",
        "blocks": [signed("thought", text="Boats rest.", at=0)],
    },
    "finish_after_the_text": {"text": "Calm.", "usage": Usage(input_tokens=9, output_tokens=1)},
    "empty_content": {"text": "Calm."},
    "max_tokens": {"text": "Half", "reason": "max_tokens"},
    "continuation": {"text": "Half", "reason": "max_tokens"},
    "max_tokens_in_thought": {
        "reason": "max_tokens",
        "usage": Usage(input_tokens=9, output_tokens=64, reasoning_tokens=64),
    },
    "safety": {"text": "Half", "reason": "content_filter"},
    "recitation": {"text": "Half", "reason": "content_filter"},
    "blocked_prompt": {"reason": "content_filter", "usage": Usage(input_tokens=9)},
    "tool_use_prompt": {"text": "Calm.", "usage": Usage(input_tokens=29, output_tokens=1)},
    "unknown_parts": {"text": "Calm."},
    "unknown_reason": {"text": "Calm."},
    "comments_and_lines": {"text": "Calm."},
    "line_separators": {"text": "a\u2028b\u0085c"},
    "second_candidate": {"text": "Calm."},
}

FAILURES: dict[str, tuple[str, str, str]] = {
    "failure_unavailable": ("Half", "provider_error", "unavailable"),
    "failure_rate_limit": ("Half", "provider_error", "rate_limited"),
    "failure_deadline": ("", "provider_error", "timeout"),
    "failure_overflow": ("", "context_overflow", "refused"),
    "failure_as_document": ("Half", "provider_error", "unavailable"),
    "failure_as_list": ("Half", "provider_error", "unavailable"),
    "failure_ends_early": ("Half", "provider_error", "interrupted"),
    "failure_malformed_call": ("Half", "provider_error", "bad_response"),
    "failure_missing_signature": ("", "provider_error", "bad_response"),
    "failure_other": ("Half", "provider_error", "bad_response"),
    "failure_wrong_shape": ("Half", "provider_error", "bad_response"),
    "failure_null_event": ("Half", "provider_error", "bad_response"),
    "failure_not_utf8": ("Half", "provider_error", "bad_response"),
    "failure_cut_event": ("Half", "provider_error", "bad_response"),
}

both_sizes = pytest.mark.parametrize("size", [0, 3], ids=["whole", "in-threes"])
"""Three bytes at a time divide lines, events and characters, in a third of the time that single bytes take."""


@pytest.mark.anyio
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


@pytest.mark.anyio
@pytest.mark.parametrize("name", list(ANSWERS))
async def test_signatures_are_kept_with_the_place_of_their_part(name: str) -> None:
    """For calls, texts (also empty ones) and thoughts."""
    events, _ = await _play(name, 0)
    blocks = [event.block for event in events if isinstance(event, ReasoningDone)]
    assert [block.data for block in blocks] == ANSWERS[name].get("blocks", [])
    assert {(block.vendor, block.model) for block in blocks} <= {("gcp.gemini", "m")}


@pytest.mark.anyio
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


@pytest.mark.anyio
async def test_the_delay_of_a_rate_limit_is_told() -> None:
    """The vendor says in RetryInfo when it accepts another request."""
    _, error = await _play("failure_rate_limit", 0)
    assert error is not None
    assert error.retry_after == 34.5


@pytest.mark.anyio
async def test_the_message_of_a_failed_answer_is_told() -> None:
    """The detail has the vendor's reason and message."""
    _, error = await _play("failure_malformed_call", 0)
    assert error is not None
    assert "MALFORMED_FUNCTION_CALL: Malformed function call: print(default_api" in error.detail


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != "unknown_reason"])
def test_recordings_have_the_types_of_the_sdk(name: str) -> None:
    """Each event is valid by the SDK's own type, which forbids unknown fields."""
    splitter = EventSplitter()
    events = [*splitter.feed((RECORDINGS / f"{name}.sse").read_bytes()), *splitter.finish()]
    assert events
    for event in events:
        types.GenerateContentResponse.model_validate_json(event)


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
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, model="m"))
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="How is the harbour?"),))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        finally:
            await adapter.aclose()
    return events, None
