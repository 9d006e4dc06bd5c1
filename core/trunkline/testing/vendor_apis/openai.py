"""OpenAI's API in scripted form: Chat Completions, Responses and the list of models."""

from collections.abc import Iterable, Sequence
from typing import Any

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
        return ResponsesWireFormat if request.path.endswith("/responses") else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        if request.method != "GET" or not request.path.endswith("/models"):
            return None
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "trunkline"} for name in models]
        return {"object": "list", "data": data}

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        return find_violations(request.path, request.body)
