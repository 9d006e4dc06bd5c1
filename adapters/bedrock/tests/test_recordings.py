"""Event streams as Bedrock sends them, and what the adapter makes of them.

The recordings are written by hand after the vendor's documentation: one event or exception on each line, which the
test encodes as frames. Each is served whole and in small pieces.
"""

import json
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
from trunkline.testing.vendor_apis.event_stream import encode_event, encode_exception, encode_frame
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.settings import BedrockSettings

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parent / "recordings"
LOOK, LISTEN = ("look", {"at": "sea"}), ("listen", {"to": "wind"})
USAGE = Usage(input_tokens=5, output_tokens=7)

ANSWERS: dict[str, dict[str, Any]] = {
    "text": {
        "text": "Grüße vom Hafen 🚢.",
        "usage": Usage(input_tokens=132, output_tokens=10, cached_tokens=100, cache_write_tokens=20),
    },
    "thinking_and_calls": {
        "reasoning": "Boats rest.",
        "blocks": [{"reasoningText": {"text": "Boats rest.", "signature": "EqoBCkYI"}}],
        "text": "I look.",
        "calls": [LOOK, LISTEN],
    },
    "thinking_between_calls": {
        "reasoning": "One.\n\nTwo.",
        "blocks": [
            {"reasoningText": {"text": "One.", "signature": "sig1"}},
            {"reasoningText": {"text": "Two.", "signature": "sig2"}, "after_text": 7, "after_calls": 1},
        ],
        "text": "I look.",
        "calls": [LOOK, LISTEN],
    },
    "redacted_thinking": {"blocks": [{"redactedContent": "AAECAwQ="}], "text": "Calm."},
    "omitted_thinking": {"blocks": [{"reasoningText": {"text": "", "signature": "sig"}}], "text": "Calm."},
    "reasoning_without_signature": {"reasoning": "Hm.", "text": "Calm."},
    "call_without_arguments": {"calls": [("look", {})]},
    "calls_with_end_turn": {"calls": [LOOK]},
    "limit_cuts_a_call": {"calls": [LOOK], "reason": "max_tokens"},
    "limit_before_arguments": {"calls": [LOOK], "reason": "max_tokens"},
    "window_exceeded": {"text": "Half", "reason": "max_tokens"},
    "stop_sequence": {"text": "Calm."},
    "guardrail": {"text": "Sorry, the model cannot answer this.", "reason": "content_filter"},
    "filtered": {"text": "Half", "reason": "content_filter"},
    "unknown_events": {"text": "Calm."},
    "without_metadata": {"text": "Calm.", "usage": Usage()},
}

FAILURES: dict[str, tuple[str, str, str]] = {
    "failure_throttled": ("Half", "provider_error", "rate_limited"),
    "failure_unavailable": ("Half", "provider_error", "unavailable"),
    "failure_internal": ("", "provider_error", "unavailable"),
    "failure_model": ("Half", "provider_error", "unavailable"),
    "failure_overflow": ("", "context_overflow", "refused"),
    "failure_validation": ("", "provider_error", "refused"),
    "failure_malformed_call": ("Half", "provider_error", "bad_response"),
    "failure_no_index": ("Half", "provider_error", "bad_response"),
    "failure_wrong_type": ("Half", "provider_error", "bad_response"),
    "failure_no_stop": ("Half", "provider_error", "interrupted"),
}


def frames(name: str) -> bytes:
    """The frames of a recording."""
    encoded = b""
    for line in (RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "exception" in entry:
            encoded += encode_exception(entry["exception"], entry["message"])
        else:
            encoded += encode_event(entry["event"], entry["data"])
    return encoded


async def replay(data: bytes, size: int = 0) -> tuple[list[ModelEvent], ModelError | None]:
    """The events of an answer of these bytes, and the error at its end."""
    events: list[ModelEvent] = []
    failure = None
    async with ScriptedProvider(lambda heard: (Raw(data, size),)).serving() as provider:
        adapter = BedrockAdapter(
            BedrockSettings(endpoint_url=provider.address, region="us-east-1", model="scripted")
        )
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            failure = error
        await adapter.aclose()
    return events, failure


def texts(events: list[ModelEvent], kind: type[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


@pytest.mark.parametrize("size", [0, 7])
@pytest.mark.parametrize("name", list(ANSWERS))
async def test_an_answer_is_read(name: str, size: int) -> None:
    """Text, reasoning, blocks, calls, reason and usage."""
    expected = ANSWERS[name]
    events, failure = await replay(frames(name), size)
    assert failure is None
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert texts(events, Text) == expected.get("text", "")
    assert texts(events, Reasoning) == expected.get("reasoning", "")
    blocks = [event.block for event in events if isinstance(event, ReasoningDone)]
    assert [block.data for block in blocks] == expected.get("blocks", [])
    assert {(block.vendor, block.model) for block in blocks} <= {("aws.bedrock", "scripted")}
    calls = [event.call for event in events if isinstance(event, Call)]
    assert [(call.name, call.arguments) for call in calls] == expected.get("calls", [])
    assert finish.reason == expected.get("reason", "tool_calls" if calls else "stop")
    assert finish.usage == expected.get("usage", USAGE)


@pytest.mark.parametrize("name", list(FAILURES))
async def test_a_failure_within_the_answer_has_its_code(name: str) -> None:
    """The text before it is given."""
    text, code, fault = FAILURES[name]
    events, failure = await replay(frames(name))
    assert failure is not None
    assert (texts(events, Text), failure.code, failure.fault) == (text, ErrorCode(code), fault)
    assert not [event for event in events if isinstance(event, Finish)]


@pytest.mark.parametrize("at", [1, 9, 30, -1])
async def test_a_damaged_frame_is_a_bad_response(at: int) -> None:
    """The checksums of the prelude and of the frame are verified."""
    good = encode_event("messageStart", {"role": "assistant"})
    bad = bytearray(encode_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x"}}))
    bad[at] ^= 0xFF
    _, failure = await replay(good + bytes(bad) + frames("text"))
    assert failure is not None
    assert failure.fault == "bad_response"


async def test_a_frame_of_another_kind_is_an_error() -> None:
    """An error frame has a code and a message in its headers."""
    frame = encode_frame(
        {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "Sorry."}, b""
    )
    _, failure = await replay(frame)
    assert failure is not None
    assert failure.fault in ("unavailable", "bad_response")
