"""Amazon SageMaker in scripted form: an endpoint whose container speaks Chat Completions, and the list of endpoints.

Requests are signed with the credentials of ``bedrock_authorization``; the signature is verified.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from trunkline.testing.script import OVERFLOW, Refuse, Reply, Script, ScriptedCall, ScriptedRequest
from trunkline.testing.vendor_apis.bedrock_authorization import signature_violations
from trunkline.testing.vendor_apis.event_stream import CONTENT_TYPE, encode_frame
from trunkline.testing.vendor_apis.openai_chat import ChatWireFormat
from trunkline.testing.vendor_apis.openai_rules import find_violations
from trunkline.testing.vendor_apis.vendor_api import RecordedRequest, RuleViolation, VendorApi, WireFormat

SERVICE = "sagemaker"
ROUTE = "/invocations-response-stream"
TARGET = "SageMaker.ListEndpoints"

PART = 50
"""The bytes of a part: fewer than an event has, because the service cuts the container's answer anywhere."""

MODEL_ERROR = 424
"""The status of an answer with an error of the container."""


class SageMakerApi(VendorApi):
    """The runtime of SageMaker, and the list of endpoints."""

    vendor = "SageMaker"

    def wire_format(self, request: RecordedRequest) -> type[WireFormat] | None:
        asks = request.path.startswith("/endpoints/") and request.path.endswith(ROUTE)
        return SageMakerWireFormat if request.method == "POST" and asks else None

    def document(self, request: RecordedRequest, models: Sequence[str]) -> Any:
        if request.headers.get("x-amz-target") != TARGET:
            return None
        listed = [
            {
                "EndpointName": name,
                "EndpointArn": f"arn:aws:sagemaker:us-east-1:111122223333:endpoint/{name}",
                "CreationTime": 1_700_000_000,
                "LastModifiedTime": 1_700_000_000,
                "EndpointStatus": "InService",
            }
            for name in models
        ]
        return {"Endpoints": listed}

    def violations(self, request: RecordedRequest, content: bytes) -> Iterable[RuleViolation]:
        yield from signature_violations(
            request.method, request.path, request.query, request.headers, content, SERVICE
        )
        yield from find_violations("/chat/completions", request.body)

    def refusal(self, violation: RuleViolation) -> Any:
        return {"Message": str(violation)}


class SageMakerWireFormat(ChatWireFormat):
    """The events of Chat Completions, in the frames of the service."""

    content_type = CONTENT_TYPE

    def __init__(self, request: ScriptedRequest, number: int) -> None:
        super().__init__(request, number)
        self._waiting = b""

    @staticmethod
    def streams(request: RecordedRequest) -> bool:
        return True

    def reply(self, script: Script) -> Reply:
        return tuple(
            replace(step, status=MODEL_ERROR) if step == OVERFLOW else step for step in script(self.heard)
        )

    def begin(self) -> bytes:
        return self._framed(super().begin())

    def text(self, piece: str) -> bytes:
        return self._framed(super().text(piece))

    def reasoning(self, piece: str) -> bytes:
        return self._framed(super().reasoning(piece))

    def calls(self, calls: tuple[ScriptedCall, ...]) -> Iterable[bytes]:
        return map(self._framed, super().calls(calls))

    def stop(self, reason: str) -> bytes:
        return self._framed(super().stop(reason)) + self._part(self._waiting)

    def malformed(self) -> bytes:
        return self._framed(super().malformed()) + self._part(self._waiting + b"\n\n")

    def refusal(self, refuse: Refuse) -> dict[str, Any]:
        if refuse.status != MODEL_ERROR:
            return {"Message": refuse.message}
        original = json.dumps(super().refusal(refuse))
        return {
            "Message": "Received client error (400) from primary", "OriginalStatusCode": 400,
            "OriginalMessage": original, "ErrorCode": "CLIENT_ERROR_FROM_MODEL",
        }  # fmt: skip

    def _framed(self, data: bytes) -> bytes:
        """Return the frames of full parts. What is left is sent with the next event."""
        self._waiting += data
        frames = b""
        while len(self._waiting) > PART:
            frames += self._part(self._waiting[:PART])
            self._waiting = self._waiting[PART:]
        return frames

    def _part(self, data: bytes) -> bytes:
        headers = {
            ":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event",
        }  # fmt: skip
        return encode_frame(headers, data)
