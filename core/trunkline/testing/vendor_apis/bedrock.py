"""Amazon Bedrock in scripted form: Converse, ConverseStream, InvokeModel for vectors, token counts and the lists of
models.

Requests are signed with ``bedrock_authorization.ACCESS_KEY`` and ``SECRET_KEY``; the signature is verified.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

from trunkline.testing.scripted_abilities import scripted_vector
from trunkline.testing.vendor_apis.bedrock_authorization import signature_violations
from trunkline.testing.vendor_apis.bedrock_messages import BedrockWireFormat, hear_converse
from trunkline.testing.vendor_apis.bedrock_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat

SERVICE = "bedrock"
"""The service for which requests are signed, also those to the runtime."""

TOKEN_COUNT = "X-Amzn-Bedrock-Input-Token-Count"
DIMENSIONS = 8
MAX_EMBEDDED_TEXTS = 96
DEFAULT_PAGE = 1000


class BedrockApi(VendorApi):
    """Amazon Bedrock, its runtime and its control plane."""

    vendor = "Bedrock"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        asks = request.path.startswith("/model/") and request.path.endswith(("/converse", "/converse-stream"))
        return BedrockWireFormat if request.method == "POST" and asks else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        route = request.path.rpartition("/")[2]
        if request.method == "GET" and route == "foundation-models":
            return {"modelSummaries": [_foundation_model(name) for name in models]}
        if request.method == "GET" and route == "inference-profiles":
            return _profile_page(request, models)
        if request.method == "POST" and request.path.startswith("/model/") and isinstance(request.body, dict):
            if route == "count-tokens":
                return _count(request.body)
            if route == "invoke":
                return _vectors(request.body)
        return None

    def document_headers(self, request: RecordedRequest) -> Sequence[tuple[str, str]]:
        if not request.path.endswith("/invoke"):
            return ()
        texts = request.body.get("texts") or [request.body.get("inputText", "")]
        return ((TOKEN_COUNT, str(sum(len(str(text).split()) for text in texts))),)

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        yield from signature_violations(
            request.method, request.path, request.query, request.headers, content, SERVICE
        )
        model = unquote(request.path.removeprefix("/model/").rpartition("/")[0])
        yield from find_violations(model, request.body, streams=BedrockWireFormat.streams(request))

    def refusal(self, violation: RuleViolation) -> Any:
        return {"__type": "ValidationException", "message": str(violation)}


def _foundation_model(name: str) -> dict[str, Any]:
    embeds = "embed" in name
    return {
        "modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{name}",
        "modelId": name,
        "modelName": name,
        "providerName": name.partition(".")[0],
        "inputModalities": ["TEXT"] if embeds else ["TEXT", "IMAGE"],
        "outputModalities": ["EMBEDDING"] if embeds else ["TEXT"],
        "responseStreamingSupported": not embeds,
        "customizationsSupported": [],
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "ACTIVE"},
    }


def _profile_page(request: RecordedRequest, models: Sequence[str]) -> dict[str, Any]:
    """Return the page of profiles that begins at ``nextToken``. Every model that writes text has a profile."""
    query = parse_qs(request.query)
    names = [name for name in models if "embed" not in name]
    begin = int(query.get("nextToken", ["0"])[0])
    end = begin + int(query.get("maxResults", [str(DEFAULT_PAGE)])[0])
    page: dict[str, Any] = {"inferenceProfileSummaries": [_profile(name) for name in names[begin:end]]}
    return page if end >= len(names) else {**page, "nextToken": str(end)}


def _profile(name: str) -> dict[str, Any]:
    regions = ("us-east-1", "us-west-2")
    return {
        "inferenceProfileName": f"US {name}",
        "description": f"Routes requests to {name} in the US.",
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z",
        "inferenceProfileArn": f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.{name}",
        "models": [{"modelArn": f"arn:aws:bedrock:{region}::foundation-model/{name}"} for region in regions],
        "inferenceProfileId": f"us.{name}",
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


def _count(body: Mapping[str, Any]) -> dict[str, Any] | None:
    given = body.get("input", {}).get("converse")
    return {"inputTokens": hear_converse(given).words} if isinstance(given, dict) else None


def _vectors(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return vectors that depend on the texts only: for Titan one, for Cohere as many as there are texts."""
    if isinstance(text := body.get("inputText"), str) and text.strip():
        size = body.get("dimensions") or DIMENSIONS
        return {"embedding": scripted_vector(text, size), "inputTextTokenCount": len(text.split())}
    texts = body.get("texts")
    if not isinstance(texts, list) or not 0 < len(texts) <= MAX_EMBEDDED_TEXTS or "input_type" not in body:
        return None
    vectors = [scripted_vector(str(text), body.get("output_dimension") or DIMENSIONS) for text in texts]
    return {"id": "emb_scripted", "response_type": "embeddings_floats", "embeddings": vectors, "texts": texts}
