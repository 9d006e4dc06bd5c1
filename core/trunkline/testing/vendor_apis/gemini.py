"""Google's Gemini API in scripted form: generated content, the list of models, counts of tokens and embeddings."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qs

from trunkline.testing.scripted_abilities import scripted_vector
from trunkline.testing.vendor_apis.gemini_audio import (
    SpeechContentFormat,
    TranscriptContentFormat,
    is_speech,
    recording_of,
)
from trunkline.testing.vendor_apis.gemini_content import ContentWireFormat, hear_contents
from trunkline.testing.vendor_apis.gemini_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat

DEFAULT_PAGE = 50
"""The number of models on a page of the list if the request does not say it."""

DIMENSIONS = 8
"""The number of elements of a vector."""

VERSIONS = ("/v1beta/", "/v1alpha/", "/v1/")


class GeminiApi(VendorApi):
    """Google's Gemini API."""

    vendor = "Gemini"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        asks = request.path.endswith((":streamGenerateContent", ":generateContent"))
        if request.method != "POST" or not asks:
            return None
        if is_speech(request.body):
            return SpeechContentFormat
        return ContentWireFormat if recording_of(request.body) is None else TranscriptContentFormat

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        if "x-goog-api-key" not in request.headers:
            return None
        path, body = request.path, request.body if isinstance(request.body, dict) else {}
        if request.method == "POST" and path.endswith(":countTokens"):
            counted = body.get("generateContentRequest") or body
            return {"totalTokens": hear_contents(counted).words}
        if request.method == "POST" and path.endswith(":batchEmbedContents"):
            return _embedded(body.get("requests") or ())
        if request.method == "GET" and path.endswith(tuple(f"{version}models" for version in VERSIONS)):
            return _model_page(request, models)
        return None

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        return find_violations(request)

    def refusal(self, violation: RuleViolation) -> Any:
        detail = {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": violation.param, "description": violation.message}],
        }
        return {
            "error": {
                "code": 400,
                "message": f"* GenerateContentRequest.{violation}",
                "status": "INVALID_ARGUMENT",
                "details": [detail],
            }
        }


def _embedded(requests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    words = sum(len(_text_of(one).split()) for one in requests)
    vectors = [{"values": vector_of(one)} for one in requests]
    return {"embeddings": vectors, "usageMetadata": {"promptTokenCount": words}}


def vector_of(request: dict[str, Any]) -> list[float]:
    """Return the vector of a text. The same text always has the same vector."""
    return list(scripted_vector(_text_of(request), request.get("outputDimensionality") or DIMENSIONS))


def _text_of(request: dict[str, Any]) -> str:
    parts = (request.get("content") or {}).get("parts") or ()
    return "".join(str(part.get("text", "")) for part in parts)


def _model_page(request: RecordedRequest, models: Sequence[str]) -> dict[str, Any]:
    """Return the page of models that begins at ``pageToken``. A vendor's list ends with an embedding model."""
    query = parse_qs(request.query)
    begin = int(query.get("pageToken", ["0"])[0])
    end = begin + int(query.get("pageSize", [DEFAULT_PAGE])[0])
    listed = [*map(_model, models), _EMBEDDING_MODEL]
    page: dict[str, Any] = {"models": listed[begin:end]}
    return {**page, "nextPageToken": str(end)} if end < len(listed) else page


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "description": "A scripted model.",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": True,
    }


_EMBEDDING_MODEL: dict[str, Any] = {
    "name": "models/gemini-embedding-001",
    "version": "001",
    "displayName": "Gemini Embedding 001",
    "description": "A scripted embedding model.",
    "inputTokenLimit": 2048,
    "outputTokenLimit": 1,
    "supportedGenerationMethods": ["embedContent", "countTextTokens", "countTokens"],
}
