"""Requests and answers against boto3's own service model of Bedrock."""

from collections.abc import Iterator
from typing import Any

import botocore.loaders
import botocore.model
import botocore.session
import botocore.validate
import pytest

from trunkline import Image, Message, ToolCall
from trunkline.api.model import DocumentFile, ModelRequest, ReasoningBlock, ToolChoice
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import CALLS, PROGRAMS, conversation_after_calls, request_for
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bedrock.bedrock_clients import BedrockClients
from trunkline_bedrock.embeddings import embedding_body
from trunkline_bedrock.message_request import build_request, count_request
from trunkline_bedrock.settings import BedrockSettings

MODELS = (
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "anthropic.claude-opus-4-7-v1",
    "global.anthropic.claude-sonnet-5-5-v1:0",
    "anthropic.claude-3-haiku-20240307-v1:0",
    "us.amazon.nova-2-lite-v1:0",
    "amazon.nova-pro-v1:0",
    "openai.gpt-oss-120b-1:0",
    "meta.llama3-1-70b-instruct-v1:0",
    "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123def456",
)


@pytest.fixture(scope="module")
def service() -> botocore.model.ServiceModel:
    loader = botocore.loaders.create_loader()
    return botocore.model.ServiceModel(
        loader.load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime"
    )


def problems(given: Any, shape: Any) -> str:
    report = botocore.validate.ParamValidator().validate(given, shape)
    return str(report.generate_report()) if report.has_errors() else ""


def requests() -> Iterator[ModelRequest]:
    """Requests that have together everything that the adapter sends."""
    tool = ToolSchema(name="look", description="", parameters={"properties": {"at": {"type": "string"}}})
    yield request_for("say:Hello.")
    yield ModelRequest(messages=conversation_after_calls(), max_tokens=9000, temperature=0.5)
    for mode in ("auto", "none", "required"):
        yield ModelRequest(
            messages=conversation_after_calls(),
            tools=(tool,),
            tool_choice=ToolChoice(mode=mode, tools=("look",)),
        )
    files = Message(
        id="msg_1",
        role="user",
        content="",
        images=(Image(media_type="image/png", data=b"\x89PNG"),),
        documents=(DocumentFile(media_type="application/pdf", name="a_b.pdf", data=b"%PDF"),),
    )
    yield ModelRequest(messages=(files,), partial="The harb")
    signed = {"reasoningText": {"text": "Hm.", "signature": "sig"}}
    blocks = tuple(
        ReasoningBlock(vendor="aws.bedrock", model=model, data=data)
        for model in MODELS
        for data in (signed, {"redactedContent": "AAEC"})
    )
    call = ToolCall(id="call_1", name="look", arguments={"at": "sea"})
    yield ModelRequest(
        messages=(
            Message(id="msg_1", role="user", content="Look."),
            Message(id="msg_2", role="assistant", content="", tool_calls=(call,), reasoning=blocks),
            Message(id="msg_3", role="tool", content="", tool_call_id="call_1", name="look", error=True),
        ),
        parameters={
            "reasoning_effort": "high",
            "top_p": 0.5,
            "stop_sequences": ["END"],
            "service_tier": "flex",
            "latency": "optimized",
            "guardrail": {"guardrailIdentifier": "gr-1", "guardrailVersion": "1"},
        },
    )


@pytest.mark.parametrize("model", MODELS)
def test_every_request_is_valid(model: str, service: botocore.model.ServiceModel) -> None:
    """For Converse, ConverseStream and CountTokens."""
    settings = BedrockSettings(extra_fields={"top_k": 5})
    for request in requests():
        body = build_request(request, model, settings)
        for operation in ("Converse", "ConverseStream"):
            assert not problems(body, service.operation_model(operation).input_shape)
        counted = {"modelId": "anthropic.claude", "input": count_request(request, model, settings)}
        assert not problems(counted, service.operation_model("CountTokens").input_shape)


def test_requests_for_vectors_are_valid(service: botocore.model.ServiceModel) -> None:
    """The body of InvokeModel is the model's own."""
    shape = service.operation_model("InvokeModel").input_shape
    assert not problems({"modelId": "amazon.titan-embed-text-v2:0", "body": b"{}"}, shape)
    assert embedding_body(["a"], "amazon.titan-embed-text-v2:0") == {"inputText": "a"}


@pytest.mark.anyio
@pytest.mark.parametrize("program", ["text", "reasoning", "calls", "text_and_calls", "limit"])
async def test_every_event_of_the_scripted_api_is_valid(
    program: Any, service: botocore.model.ServiceModel
) -> None:
    """boto3 parses the frames, and each event has the members that the model requires and no other."""
    shape = service.operation_model("ConverseStream").output_shape.members["stream"]
    seen: set[str] = set()
    async with ScriptedProvider().serving() as provider:
        clients = BedrockClients(BedrockSettings(endpoint_url=provider.address, region="us-east-1"))
        body = build_request(request_for(PROGRAMS[program]), "scripted", BedrockSettings())
        async for event in clients.events(body, streaming=True):
            assert not problems(event, shape)
            seen |= set(event)
        whole = await clients.call("bedrock-runtime", "converse", body)
        await clients.aclose()
    assert {"messageStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"} <= seen
    assert ("contentBlockStart" in seen) == ("calls" in program)
    del whole["ResponseMetadata"]
    assert not problems(whole, service.operation_model("Converse").output_shape)
    assert len(CALLS) == 2


@pytest.mark.anyio
async def test_the_lists_of_the_scripted_api_are_valid() -> None:
    """Foundation models and inference profiles."""
    loader = botocore.loaders.create_loader()
    service = botocore.model.ServiceModel(loader.load_service_model("bedrock", "service-2"), "bedrock")
    async with ScriptedProvider(
        models=("anthropic.claude-x", "amazon.titan-embed-text-v2:0")
    ).serving() as provider:
        clients = BedrockClients(BedrockSettings(endpoint_url=provider.address, region="us-east-1"))
        for operation, method in (
            ("ListFoundationModels", "list_foundation_models"),
            ("ListInferenceProfiles", "list_inference_profiles"),
        ):
            answer = await clients.call("bedrock", method, {})
            del answer["ResponseMetadata"]
            assert not problems(answer, service.operation_model(operation).output_shape)
        await clients.aclose()
