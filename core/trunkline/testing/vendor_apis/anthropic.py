"""Anthropic's API in scripted form: Messages, the list of models and the counts of tokens."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qs

from trunkline.testing.vendor_apis.anthropic_messages import MessagesWireFormat, hear_messages
from trunkline.testing.vendor_apis.anthropic_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat

VERSION_HEADER = "anthropic-version"
DEFAULT_PAGE = 20
"""The number of models on a page of the list if the request does not say it."""


class AnthropicApi(VendorApi):
    """Anthropic, and the servers that speak its protocol."""

    vendor = "Anthropic"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        asks = request.method == "POST" and request.path.endswith("/v1/messages")
        return MessagesWireFormat if asks else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        if VERSION_HEADER not in request.headers:
            return None
        if request.method == "POST" and request.path.endswith("/v1/messages/count_tokens"):
            return {"input_tokens": hear_messages(request.body).words}
        if request.method == "GET" and request.path.endswith("/v1/models"):
            return _model_page(request, models)
        return None

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        return find_violations(request.headers, request.body)

    def refusal(self, violation: RuleViolation) -> Any:
        error = {"type": "invalid_request_error", "message": str(violation)}
        return {"type": "error", "error": error, "request_id": "req_scripted"}


def _model_page(request: RecordedRequest, models: Sequence[str]) -> dict[str, Any]:
    """Return the page of models that begins after ``after_id``."""
    query = parse_qs(request.query)
    after = query.get("after_id", [""])[0]
    begin = models.index(after) + 1 if after in models else 0
    end = begin + int(query.get("limit", [DEFAULT_PAGE])[0])
    page = models[begin:end]
    return {
        "data": [_model(name) for name in page],
        "first_id": page[0] if page else None,
        "has_more": end < len(models),
        "last_id": page[-1] if page else None,
    }


def _model(name: str) -> dict[str, Any]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": _CAPABILITIES,
    }


_YES, _NO = {"supported": True}, {"supported": False}

_CAPABILITIES: dict[str, Any] = {
    "batch": _NO,
    "citations": _NO,
    "code_execution": _NO,
    "context_management": {
        **_NO,
        "clear_thinking_20251015": _NO,
        "clear_tool_uses_20250919": _NO,
        "compact_20260112": _NO,
    },
    "effort": {**_YES, "low": _YES, "medium": _YES, "high": _YES, "xhigh": _NO, "max": _NO},
    "image_input": _YES,
    "pdf_input": _YES,
    "server_tools": {**_NO, "code_execution": _NO, "web_search": _NO},
    "structured_outputs": _YES,
    "thinking": {
        **_YES,
        "types": {"adaptive": _YES, "between_tools": _NO, "disabled": _YES, "enabled": _YES},
    },
}
