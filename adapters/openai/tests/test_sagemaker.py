"""The adapter for SageMaker endpoints: the contract of adapters, what is sent and signed, and failures of AWS."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from trunkline import ConfigError, Message
from trunkline.api.model import Finish, ModelAdapter, ModelError, ModelRequest, Text
from trunkline.testing.adapter_suite import ScriptedProviderSuite, request_for
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY
from trunkline.testing.vendor_apis.event_stream import encode_exception, encode_frame
from trunkline_openai.sagemaker import SageMakerAdapter
from trunkline_openai.sagemaker_settings import SageMakerSettings
from trunkline_openai.sagemaker_stream import PayloadReader

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def aws_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_SESSION_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def settings(provider: ScriptedProvider, **more: Any) -> SageMakerSettings:
    fields = {"model": "scripted", "region": "eu-west-1", "endpoint_url": provider.address, **more}
    return SageMakerSettings(**fields)


class TestContract(ScriptedProviderSuite):
    def adapter(self, provider: ScriptedProvider, key: str) -> ModelAdapter:
        return SageMakerAdapter(settings(provider))


async def _all(adapter: SageMakerAdapter, request: ModelRequest) -> list[Any]:
    return [event async for event in adapter.stream(request)]


@pytest.fixture
async def provider() -> AsyncIterator[ScriptedProvider]:
    async with ScriptedProvider().serving() as serving:
        yield serving


async def test_the_endpoint_gets_a_signed_chat_completion(provider):
    """The path names the endpoint, the body the model of its container; the signature is that of SageMaker."""
    adapter = SageMakerAdapter(settings(provider, served_model="meta/llama", inference_component="part-1"))
    events = await _all(adapter, request_for("say:Good morning."))
    await adapter.aclose()
    (request,) = provider.requests
    assert request.path == "/endpoints/scripted/invocations-response-stream"
    assert f"Credential={ACCESS_KEY}/" in request.headers["authorization"]
    assert "/eu-west-1/sagemaker/aws4_request" in request.headers["authorization"]
    assert request.headers["x-amzn-sagemaker-inference-component"] == "part-1"
    assert (request.body["model"], request.body["stream"]) == ("meta/llama", True)
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Good morning."
    assert isinstance(events[-1], Finish)
    assert events[-1].usage.input_tokens > 0


async def test_endpoints_in_service_are_the_models(provider):
    """The list comes from the control plane."""
    adapter = SageMakerAdapter(settings(provider))
    assert [model.id for model in await adapter.models()] == ["scripted"]


@pytest.mark.parametrize(
    ("variables", "given", "fault", "says"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, {}, "authentication", "no AWS credentials"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong-canary-key"}, {}, "refused", "signature"),
        ({}, {"profile": "missing"}, "refused", "profile in [adapters.sagemaker]"),
        ({}, {"region": None, "endpoint_url": None}, "refused", "region in [adapters.sagemaker]"),
        ({}, {"model": ""}, "refused", "set model in [adapters.sagemaker]"),
    ],
)  # fmt: skip
async def test_settings_that_do_not_work_are_told_with_the_cure(monkeypatch, variables, given, fault, says):
    """Credentials, profile, region and endpoint: the error names the setting and holds no key."""
    for name, value in variables.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    async with ScriptedProvider().serving() as provider:
        adapter = SageMakerAdapter(settings(provider, **given))
        request = ModelRequest(messages=(Message(id="1", role="user", content="say:Hello."),))
        with pytest.raises(ModelError) as caught:
            await _all(adapter, request)
        await adapter.aclose()
        provider.faults.clear()
    assert caught.value.fault == fault, caught.value
    assert says in caught.value.detail
    assert "canary" not in str(caught.value)


def test_a_name_that_is_no_endpoint_is_refused_at_the_start():
    """An ARN, a path and an address are none."""
    for name in ("arn:aws:sagemaker:eu-west-1:1:endpoint/a", "../x", "-a", "a" * 64):
        with pytest.raises(ConfigError, match=r"adapters\.sagemaker\.model"):
            SageMakerSettings(model=name)


def test_events_are_read_whatever_the_frames_cut():
    """Server-sent events and lines of JSON, in parts of any size, with and without an end of line."""
    text = b'data: {"a": 1}\n\ndata: [DONE]\n\n{"b": 2}\n: comment\n{"c": 3}'
    part = {":event-type": "PayloadPart", ":message-type": "event"}
    for size in range(1, len(text) + 1):
        frames = b"".join(
            encode_frame(part, text[start : start + size]) for start in range(0, len(text), size)
        )
        reader = PayloadReader("key")
        events = [event for byte in frames for event in reader.feed(bytes([byte]))]
        assert [*events, *reader.finish()] == ['{"a": 1}', '{"b": 2}', '{"c": 3}'], size


def test_exceptions_within_the_stream_are_failures():
    """A failure of the container or the service in mid-stream is told by its kind; a broken frame is no answer."""
    for kind in ("ModelStreamError", "InternalStreamFailure"):
        with pytest.raises(ModelError) as caught:
            list(PayloadReader("key").feed(encode_exception(kind, "the container died")))
        assert (caught.value.fault, "the container died" in caught.value.detail) == ("interrupted", True)
    with pytest.raises(ModelError) as caught:
        list(PayloadReader("key").feed(b"<html>" * 10))
    assert caught.value.fault == "bad_response"
