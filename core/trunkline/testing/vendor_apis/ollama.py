"""Ollama's native API in scripted form: chat, models and their details, vectors, and pulls."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

from trunkline.testing.scripted_abilities import scripted_vector
from trunkline.testing.vendor_apis.ollama_chat import CREATED_AT, OllamaChatWireFormat, OllamaPullWireFormat
from trunkline.testing.vendor_apis.ollama_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat

VECTOR_LENGTH = 8
CONTEXT_LENGTH = 32_768
"""The context window of every scripted model."""


class OllamaApi(VendorApi):
    """Ollama. A model with ``embed`` in its name makes vectors; every other model answers, calls tools, sees and
    thinks.
    """

    vendor = "Ollama"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        if request.method != "POST":
            return None
        if request.path.endswith("/api/chat"):
            return OllamaChatWireFormat
        return OllamaPullWireFormat if request.path.endswith("/api/pull") else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        match request.method, request.path.rpartition("/api/")[2]:
            case "GET", "tags":
                return {"models": [_listed(name) for name in models]}
            case "GET", "version":
                return {"version": "0.34.0"}
            case "POST", "show":
                return _shown(str(request.body.get("model", "")))
            case "POST", "embed":
                return _embedded(request.body)
        return None

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        return find_violations(request.path, request.body)

    def refusal(self, violation: RuleViolation) -> Any:
        return {"error": str(violation)}


def _details() -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": "scripted",
        "families": ["scripted"],
        "parameter_size": "8.0B",
        "quantization_level": "Q4_K_M",
    }


def _listed(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": name,
        "modified_at": CREATED_AT,
        "size": 5_200_000_000,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": _details(),
    }


def _shown(name: str) -> dict[str, Any]:
    vectors = "embed" in name
    return {
        "license": "MIT",
        "modelfile": f"FROM {name}",
        "parameters": "temperature 0.7",
        "template": "{{ .Prompt }}",
        "details": _details(),
        "model_info": {
            "general.architecture": "scripted",
            "general.parameter_count": 8_000_000_000,
            "scripted.context_length": CONTEXT_LENGTH,
            "scripted.embedding_length": VECTOR_LENGTH,
        },
        "capabilities": ["embedding"] if vectors else ["completion", "tools", "vision", "thinking"],
        "modified_at": CREATED_AT,
    }


def _embedded(body: Any) -> dict[str, Any]:
    given = body.get("input", [])
    texts = [given] if isinstance(given, str) else list(given)
    return {
        "model": body.get("model"),
        "embeddings": [_vector(str(text), body.get("dimensions") or VECTOR_LENGTH) for text in texts],
        "total_duration": 14_143_917,
        "load_duration": 1_019_500,
        "prompt_eval_count": sum(len(str(text).split()) for text in texts),
    }


def _vector(text: str, dimensions: int) -> list[float]:
    """Return the vector of a text, of length 1. The same text always gets the same vector."""
    numbers = [number + 1 / 256 for number in scripted_vector(text, dimensions)]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers]
