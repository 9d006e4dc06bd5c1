"""Byte streams as servers send them, each with its own ways, and the events that the adapter makes of them.

The recordings are written by hand from the vendor's documentation and from what its users report. Each is served whole
and byte by byte.
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
from trunkline_ollama import answer_reader
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.settings import OllamaSettings

pytestmark = pytest.mark.anyio

RECORDINGS = Path(__file__).parent / "recordings"
LOOK, LISTEN = ("look", {"at": "sea"}), ("listen", {"to": "wind"})
USAGE = Usage(input_tokens=26, output_tokens=10)

ANSWERS: dict[str, dict[str, Any]] = {
    "text": {"text": "Grüße vom Hafen 🚢.", "usage": USAGE},
    "thinking_and_calls": {
        "reasoning": "Boats rest.",
        "text": "I look.",
        "calls": [LOOK, LISTEN],
        "ids": ["call_icagibop", "call_wz81pqrt"],
        "usage": USAGE,
    },
    "calls_without_ids": {"calls": [LOOK, LISTEN]},
    "calls_in_the_last_line": {"calls": [LOOK]},
    "arguments_as_text": {"calls": [LOOK]},
    "call_without_arguments": {"calls": [("look", {})]},
    "length": {"text": "Half", "reason": "max_tokens"},
    "old_server_without_reason": {"text": "Calm.", "usage": Usage(input_tokens=4, output_tokens=2)},
    "cached_prompt_without_count": {"text": "Calm.", "usage": Usage(output_tokens=10)},
    "unknown_reason_and_fields": {"text": "Calm."},
    "line_separators_in_text": {"text": "one\u0085two\u2028three"},
    "blank_lines_and_no_last_line_feed": {"text": "Calm."},
    "thinking_with_the_answer": {"reasoning": "Hm.", "text": "Calm."},
}

FAILURES: dict[str, tuple[str, str, str]] = {
    "failure_in_the_answer": ("Half", "provider_error", "unavailable"),
    "failure_overflow": ("", "context_overflow", "refused"),
    "failure_missing_model": ("", "provider_error", "refused"),
    "failure_error_as_object": ("Half", "provider_error", "unavailable"),
    "failure_ends_early": ("Half", "provider_error", "interrupted"),
    "failure_only_loaded": ("", "provider_error", "bad_response"),
    "failure_wrong_shape": ("Half", "provider_error", "bad_response"),
    "failure_not_an_object": ("Half", "provider_error", "bad_response"),
    "failure_null_line": ("Half", "provider_error", "bad_response"),
    "failure_not_utf8": ("Half", "provider_error", "bad_response"),
    "failure_not_json": ("Half", "provider_error", "bad_response"),
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
    blocks = [event.block.data["thinking"] for event in events if isinstance(event, ReasoningDone)]
    assert "".join(blocks) == expected.get("reasoning", "")
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason == expected.get("reason", "tool_calls" if calls else "stop")
    assert finish.usage == expected.get("usage", finish.usage)


@both_sizes
@pytest.mark.parametrize("name", list(FAILURES))
async def test_a_recorded_failure_has_its_code(name: str, size: int) -> None:
    """An error that a server reports in its answer, or an answer that cannot be read, gets the fixed code and fault."""
    text, code, fault = FAILURES[name]
    events, error = await _play(name, size)
    assert error is not None
    assert (_joined(events, Text), error.code, error.fault) == (text, ErrorCode(code), fault)


async def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server cannot fill the memory."""
    monkeypatch.setattr(answer_reader, "MAX_LINE", 1000)
    _, error = await _play_bytes(b'{"message": {"content": "' + b"a" * 5000, 500)
    assert error is not None
    assert error.fault == "bad_response"


def test_every_recording_is_used() -> None:
    """No file lies there that no test reads."""
    assert {path.stem for path in RECORDINGS.iterdir()} == set(ANSWERS) | set(FAILURES)


def _joined(events: list[ModelEvent], kind: type[Text] | type[Reasoning]) -> str:
    return "".join(event.text for event in events if isinstance(event, kind))


async def _play(name: str, size: int) -> tuple[list[ModelEvent], ModelError | None]:
    return await _play_bytes((RECORDINGS / f"{name}.ndjson").read_bytes(), size)


async def _play_bytes(data: bytes, size: int) -> tuple[list[ModelEvent], ModelError | None]:
    events: list[ModelEvent] = []
    async with ScriptedProvider(lambda heard: (Raw(data, size),)).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, model="m"))
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="How is the harbour?"),))
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        finally:
            await adapter.aclose()
    return events, None
