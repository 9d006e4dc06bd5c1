"""OpenAI's API in scripted form: Chat Completions, Responses, embeddings, transcripts, speech, counts of tokens and the
list of models.
"""

import base64
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from trunkline.testing.scripted_abilities import DIMENSIONS, scripted_vector
from trunkline.testing.vendor_apis.openai_audio import (
    SPEECH_PATH,
    TEXT_PATHS,
    SpeechEventsWireFormat,
    SpeechWireFormat,
    TranscriptWireFormat,
    speech_violations,
    transcript_violations,
)
from trunkline.testing.vendor_apis.openai_chat import ChatWireFormat
from trunkline.testing.vendor_apis.openai_responses import ResponsesWireFormat
from trunkline.testing.vendor_apis.openai_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat


class OpenAIApi(VendorApi):
    """OpenAI, and the servers that speak its protocols."""

    vendor = "OpenAI"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        if request.method != "POST":
            return None
        if request.path.endswith("/chat/completions"):
            return ChatWireFormat
        if request.path.endswith(TEXT_PATHS):
            return TranscriptWireFormat
        if request.path.endswith(SPEECH_PATH):
            events = request.body.get("stream_format") == "sse"
            return SpeechEventsWireFormat if events else SpeechWireFormat
        return ResponsesWireFormat if request.path.endswith("/responses") else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        if request.method == "GET" and request.path.endswith("/models"):
            data = [{"id": name, "object": "model", "created": 0, "owned_by": "trunkline"} for name in models]
            return {"object": "list", "data": data}
        if request.method == "POST" and request.path.endswith("/responses/input_tokens"):
            return {
                "object": "response.input_tokens",
                "input_tokens": ResponsesWireFormat.hear(request).words,
            }
        if request.method == "POST" and request.path.endswith("/embeddings"):
            return _embeddings(request.body)
        return None

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        if request.path.endswith(TEXT_PATHS):
            return transcript_violations(request.path, request.body)
        if request.path.endswith(SPEECH_PATH):
            return speech_violations(request.body)
        return find_violations(request.path, request.body)


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("input") or []
    texts = [given] if isinstance(given, str) else given
    data = [
        {"object": "embedding", "index": number, "embedding": _encoded(str(text), body)}
        for number, text in enumerate(texts)
    ]
    words = sum(len(str(text).split()) for text in texts)
    usage = {"prompt_tokens": words, "total_tokens": words}
    return {"object": "list", "data": data, "model": str(body.get("model")), "usage": usage}


def _encoded(text: str, body: dict[str, Any]) -> Any:
    """Return the vector of a text: equal texts have equal vectors."""
    vector = scripted_vector(text, int(body.get("dimensions") or DIMENSIONS))
    if body.get("encoding_format") != "base64":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
