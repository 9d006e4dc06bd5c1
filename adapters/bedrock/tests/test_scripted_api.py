"""The scripted Bedrock: it verifies signatures by itself and refuses what the vendor refuses."""

import base64
import json
from typing import Any

import boto3.session
import botocore.config
import botocore.exceptions
import pytest

from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import (
    ACCESS_KEY,
    SECRET_KEY,
    canonical_request,
    sign,
)
from trunkline.testing.vendor_apis.bedrock_messages import sign_reasoning
from trunkline.testing.vendor_apis.bedrock_rules import find_violations
from trunkline.testing.vendor_apis.event_stream import encode_event

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"


def client(provider: ScriptedProvider, secret: str = SECRET_KEY, **more: Any) -> Any:
    session = boto3.session.Session(
        aws_access_key_id=ACCESS_KEY, aws_secret_access_key=secret, region_name="us-east-1", **more
    )
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    return session.client("bedrock-runtime", endpoint_url=provider.address, config=config)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def call(id: str = "call_1", name: str = "look") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {}}}


def result(id: str = "call_1", text: str = "sea", **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [{"text": text}], **more}}


def tools(*names: str, **more: Any) -> dict[str, Any]:
    schema = {"json": {"type": "object", "properties": {}}}
    return {
        "toolConfig": {"tools": [{"toolSpec": {"name": n, "inputSchema": schema}} for n in names], **more}
    }


HELLO = user({"text": "say:Hello."})
PNG = {"image": {"format": "png", "source": {"bytes": base64.b64encode(b"x").decode()}}}


def document(name: str) -> dict[str, Any]:
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": base64.b64encode(b"x").decode()}}}


def test_boto3_is_answered_and_its_signature_verified() -> None:
    """Model ids with a colon are encoded twice in the signature."""
    with ScriptedProvider() as provider:
        runtime = client(provider, aws_session_token="token with  spaces")
        answer = runtime.converse(modelId=CLAUDE, messages=[HELLO])
        assert answer["output"]["message"]["content"] == [{"text": "Hello."}]
        texts = [
            event["contentBlockDelta"]["delta"]["text"]
            for event in runtime.converse_stream(modelId=CLAUDE, messages=[HELLO])["stream"]
            if "contentBlockDelta" in event
        ]
        assert "".join(texts) == "Hello."


def test_another_key_is_refused() -> None:
    """The signature does not match."""
    with ScriptedProvider() as provider:
        with pytest.raises(botocore.exceptions.ClientError, match="does not match"):
            client(provider, "another secret").converse(modelId=CLAUDE, messages=[HELLO])
        assert len(provider.faults) == 1
        provider.faults.clear()


def test_the_example_of_the_vendors_documentation_is_signed() -> None:
    """The canonical request of AWS's test suite ``get-vanilla-query-order-key-case``."""
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    request = canonical_request("GET", "/", "Param2=value2&Param1=value1", headers, b"")
    assert request == (
        "GET\n/\nParam1=value1&Param2=value2\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
        "host;x-amz-date\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    scope, secret = "20150830/us-east-1/service/aws4_request", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    signature = sign(request, "20150830T123600Z", scope, secret)
    assert signature == "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"


def test_a_frame_has_the_bytes_of_the_specification() -> None:
    """Lengths, checksum of the prelude, headers of type 7, payload, checksum of the frame."""
    frame = encode_event("messageStop", {"stopReason": "end_turn"})
    total, length = int.from_bytes(frame[:4], "big"), int.from_bytes(frame[4:8], "big")
    assert total == len(frame)
    assert frame[12 : 12 + 12] == b"\x0b:event-type"
    assert frame[24:27] == b"\x07\x00\x0b"
    assert json.loads(frame[12 + length : -4]) == {"stopReason": "end_turn"}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [HELLO]},
        {"messages": [HELLO, assistant(call()), user(result())], **tools("look")},
        {
            "messages": [HELLO, assistant(call()), user(result(status="error"), {"text": "x"})],
            **tools("look"),
        },
        {"messages": [user(document("a (1)"), PNG, {"text": "x"})]},
        {"messages": [HELLO, assistant({"text": "The"})]},
    ],
)
def test_what_the_vendor_takes_has_no_violation(body: dict[str, Any]) -> None:
    """The rules refuse nothing else."""
    assert not list(find_violations(CLAUDE, body))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"messages": []}, "must start with a user message"),
        ({"messages": [assistant({"text": "x"})]}, "must start with a user message"),
        ({"messages": [HELLO, HELLO]}, "roles must alternate"),
        ({"messages": [user()]}, "content field is empty"),
        ({"messages": [user({"text": " \n"})]}, "blank"),
        ({"messages": [HELLO], "system": [{"text": ""}]}, "blank"),
        ({"messages": [HELLO], "max_tokens": 5}, "unknown field"),
        ({"messages": [user({"text": "x", "image": {}})]}, "not one known block"),
        ({"messages": [HELLO, assistant(call()), user(result())]}, "toolConfig field must be defined"),
        (
            {"messages": [HELLO, assistant(call()), user({"text": "x"})], **tools("look")},
            "Expected toolResult",
        ),
        ({"messages": [user(result())], **tools("look")}, "unexpected toolUseId"),
        (
            {"messages": [HELLO, assistant(call()), user(result(), result("call_2"))], **tools("look")},
            "unexpected toolUseId",
        ),
        (
            {"messages": [HELLO, assistant(call(name="a b")), user(result())], **tools("look")},
            "no name of a tool",
        ),
        (
            {"messages": [HELLO, assistant(call("a b")), user(result("a b"))], **tools("look")},
            "no id of a call",
        ),
        ({"messages": [HELLO, assistant(call()), user(result(text=""))], **tools("look")}, "blank"),
        (
            {
                "messages": [
                    HELLO,
                    assistant(call()),
                    user({"toolResult": {"toolUseId": "call_1", "content": [], "status": "error"}}),
                ],
                **tools("look"),
            },
            "cannot be empty",
        ),
        ({"messages": [HELLO], **tools("look", "look")}, "already defined"),
        ({"messages": [HELLO], **tools("a.b")}, "no name of a tool"),
        ({"messages": [HELLO], **tools()}, "empty list"),
        ({"messages": [HELLO], **tools("look", toolChoice={"tool": {"name": "x"}})}, "names no tool"),
        ({"messages": [HELLO], **tools("look", toolChoice={"none": {}})}, "not one of"),
        ({"messages": [user(document("a.pdf"), {"text": "x"})]}, "other characters"),
        ({"messages": [user(document("a  b"), {"text": "x"})]}, "other characters"),
        ({"messages": [user(document("a"), document("a"), {"text": "x"})]}, "duplicate"),
        ({"messages": [user(document("a"))]}, "must have a text"),
        ({"messages": [user({"image": {"format": "bmp", "source": {"bytes": "eA=="}}})]}, "no format"),
        ({"messages": [HELLO, assistant({"text": "The "})]}, "trailing whitespace"),
        (
            {"messages": [user({"text": "x"}, *[{"cachePoint": {"type": "default"}}] * 5)]},
            "maximum of 4 cache points",
        ),
        (
            {
                "messages": [
                    HELLO,
                    assistant(
                        {
                            "reasoningContent": {
                                "reasoningText": {"text": "Hm!", "signature": sign_reasoning("Hm.")}
                            }
                        },
                        call(),
                    ),
                    user(result()),
                ],
                **tools("look"),
            },
            "Invalid `signature`",
        ),
        (
            {
                "messages": [HELLO],
                "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
                "inferenceConfig": {"maxTokens": 2000},
            },
            "greater than",
        ),
        (
            {
                "messages": [HELLO],
                "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
                "inferenceConfig": {"temperature": 0.5},
            },
            "temperature",
        ),
    ],
)
def test_what_the_vendor_refuses_is_a_violation(body: dict[str, Any], told: str) -> None:
    """With the vendor's words, as far as they are known."""
    assert told in "; ".join(map(str, find_violations(CLAUDE, body)))


def test_models_have_rules_of_their_own() -> None:
    """Llama takes no text beside calls, no cache points, and no tools in a stream."""
    mixed = {"messages": [HELLO, assistant({"text": "x"}, call()), user(result())], **tools("look")}
    marked = {"messages": [user({"text": "x"}, {"cachePoint": {"type": "default"}})]}
    assert "same turn" in str(list(find_violations("meta.llama3-1-70b-instruct-v1:0", mixed)))
    assert "caching" in str(list(find_violations("meta.llama3-1-70b-instruct-v1:0", marked)))
    assert not list(find_violations(CLAUDE, mixed, streams=True))
    llama = "us.meta.llama4-scout-17b-instruct-v1:0"
    assert "streaming mode" in str(list(find_violations(llama, mixed, streams=True)))
    assert "streaming mode" not in str(list(find_violations(llama, mixed)))
    image = {"messages": [user({"text": "x"}, PNG, {"cachePoint": {"type": "default"}})]}
    assert "extraneous key" in str(list(find_violations("amazon.nova-pro-v1:0", image)))
    assert not list(find_violations(CLAUDE, image))
