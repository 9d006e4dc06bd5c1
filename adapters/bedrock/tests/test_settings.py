"""The section [adapters.bedrock], what the plugin declares for it, and errors."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message
from trunkline.api.model import ModelError, ModelRequest
from trunkline.testing.script import Refuse
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bedrock import plugin
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.bedrock_models import base_model, features_of
from trunkline_bedrock.errors import from_client_error
from trunkline_bedrock.settings import BedrockSettings

ASK = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, section: BedrockSettings) -> None:
        self._section = section

    def section(self, kind: type[Any]) -> Any:
        assert kind is BedrockSettings
        return self._section


async def failure_of(**settings: Any) -> ModelError:
    adapter = BedrockAdapter(BedrockSettings(model="m", **settings))
    with pytest.raises(ModelError) as caught:
        [event async for event in adapter.stream(ASK)]
    await adapter.aclose()
    return caught.value


def test_a_section_of_the_file_is_read() -> None:
    """All keys that people set."""
    section = msgspec.convert(
        {
            "model": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "profile": "work",
            "region": "eu-west-1",
            "parameters": {"reasoning_effort": "low"},
        },
        BedrockSettings,
    )
    assert (section.profile, section.region) == ("work", "eu-west-1")


@pytest.mark.parametrize(
    ("wrong", "told", "hint"),
    [
        ({"endpoint_url": "bedrock.local"}, "not a web address", "https://"),
        ({"control_endpoint_url": "bedrock.local"}, "not a web address", "https://"),
        ({"endpoint_url": "https://me:hunter2@bedrock.example"}, "user or password", "credential chain"),
        ({"max_tokens": 0}, "at least one token", "positive"),
        ({"parameters": {"tone": "kind"}}, "no parameter 'tone'", "reasoning_effort"),
        ({"parameters": {"reasoning_effort": "huge"}}, "must be one of", "thinks"),
        ({"model": "meta.llama4", "parameters": {"reasoning_effort": "low"}}, "no parameter", "top_p"),
        ({"parameters": {"thinking_budget": 10}}, "at least 1024", "tokens"),
    ],
)
def test_wrong_settings_are_refused_with_the_cure(wrong: dict[str, Any], told: str, hint: str) -> None:
    """At start, and without a password in the text."""
    with pytest.raises(ConfigError, match=told) as caught:
        BedrockSettings(**wrong)
    assert hint in caught.value.hint
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_the_adapter_is_declared_only_when_it_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credentials of an AWS account alone choose no model; a section or a Bedrock API key does."""
    assert list(plugin.trunkline_models(settings=Given(BedrockSettings()))) == []
    [adapter] = plugin.trunkline_models(settings=Given(BedrockSettings(region="eu-west-1")))
    assert not adapter.configured
    [adapter] = plugin.trunkline_models(settings=Given(BedrockSettings(model="amazon.nova-lite-v1:0")))
    assert adapter.configured
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "key")
    assert len(list(plugin.trunkline_models(settings=Given(BedrockSettings())))) == 1


@pytest.mark.anyio
async def test_a_missing_region_is_refused_with_the_cure() -> None:
    """Nothing is sent."""
    error = await failure_of()
    assert error.fault == "refused"
    assert "region in [adapters.bedrock]" in error.detail


@pytest.mark.anyio
async def test_missing_credentials_are_told_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = await failure_of(region="us-east-1")
    assert error.fault == "authentication"
    assert "AWS_PROFILE" in error.detail


@pytest.mark.anyio
async def test_half_of_the_credentials_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that is missing is named."""
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = await failure_of(region="us-east-1")
    assert (error.fault, "secret" in error.detail.lower()) == ("authentication", True)


@pytest.mark.anyio
async def test_an_unknown_profile_is_told() -> None:
    """By its name."""
    error = await failure_of(region="us-east-1", profile="no-such-profile")
    assert (error.fault, "no-such-profile" in error.detail) == ("authentication", True)


@pytest.mark.anyio
async def test_a_profile_of_the_aws_files_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its key and its region, before those of the environment."""
    from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY

    credentials = tmp_path / "credentials"
    credentials.write_text(
        f"[work]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\nregion = eu-west-3\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER00000000000")
    async with ScriptedProvider().serving() as provider:
        adapter = BedrockAdapter(BedrockSettings(endpoint_url=provider.address, profile="work", model="m"))
        assert [event async for event in adapter.stream(ASK)]
        await adapter.aclose()
        assert "/eu-west-3/bedrock/" in provider.answer_requests[0].headers["authorization"]


@pytest.mark.anyio
async def test_a_bedrock_api_key_is_sent_over_https_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """botocore refuses to send it otherwise, and no error contains it."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-canary")
    async with ScriptedProvider().serving() as provider:
        error = await failure_of(endpoint_url=provider.address, region="us-east-1")
        assert provider.requests == []
    assert (error.fault, "HTTPS" in error.detail) == ("refused", True)
    assert "canary" not in f"{error} {error.detail}"


@pytest.mark.anyio
async def test_a_session_token_repeated_by_the_server_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the only secret that is sent."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-token-canary")
    refuse = Refuse(status=401, code="x", message="Bad token session-token-canary.")
    async with ScriptedProvider(lambda heard: (refuse,)).serving() as provider:
        error = await failure_of(endpoint_url=provider.address, region="us-east-1")
        assert provider.answer_requests[0].headers["x-amz-security-token"] == "session-token-canary"
    assert error.fault == "authentication"
    assert "canary" not in f"{error} {error.detail}"


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog is silent on Linux only")
async def test_a_connection_that_is_not_made_in_time_is_a_timeout() -> None:
    """The time for connecting is the adapter's own; how long a model may think is not."""
    with socket.socket() as server, ExitStack() as held:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # more than the backlog takes, so that the next one hangs
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        error = await failure_of(endpoint_url=url, region="us-east-1", connect_timeout=0.2)
    assert error.fault == "timeout"


@pytest.mark.anyio
async def test_a_redirect_is_not_followed() -> None:
    """A signed request goes to the configured endpoint only."""
    async with ScriptedProvider().serving() as other:
        refuse = Refuse(
            307, "moved", "Moved.", headers=(("Location", f"{other.address}/model/m/converse-stream"),)
        )
        async with ScriptedProvider(lambda heard: (refuse,)).serving() as provider:
            error = await failure_of(endpoint_url=provider.address, region="us-east-1")
        assert other.requests == []
    assert error.fault in ("bad_response", "refused")


@pytest.mark.anyio
async def test_the_health_check_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that does not answer is a warning with a hint; nothing configured is fine."""
    section = BedrockSettings(endpoint_url="http://127.0.0.1:9", region="us-east-1")
    [check] = plugin.trunkline_health_checks(settings=Given(section))
    result = await check.check()
    assert (check.id, result.status) == ("adapters.bedrock", "warning")
    assert "endpoint_url" in result.hint
    [unused] = plugin.trunkline_health_checks(settings=Given(BedrockSettings()))
    assert (await unused.check()).status == "ok"
    async with ScriptedProvider().serving() as provider:
        section = BedrockSettings(endpoint_url=provider.address, region="us-east-1")
        [check] = plugin.trunkline_health_checks(settings=Given(section))
        assert (await check.check()).status == "ok"
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = await check.check()
    assert "AWS_PROFILE" in result.hint


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("AccessDeniedException", 403, "authentication"),
        ("UnrecognizedClientException", 403, "authentication"),
        ("ExpiredTokenException", 403, "authentication"),
        ("InvalidSignatureException", 403, "authentication"),
        ("ThrottlingException", 429, "rate_limited"),
        ("ServiceQuotaExceededException", 400, "rate_limited"),
        ("ServiceUnavailableException", 503, "unavailable"),
        ("InternalServerException", 500, "unavailable"),
        ("ModelNotReadyException", 429, "unavailable"),
        ("ModelTimeoutException", 408, "timeout"),
        ("ModelErrorException", 424, "unavailable"),
        ("ResourceNotFoundException", 404, "refused"),
        ("ValidationException", 400, "refused"),
        ("SomethingNew", 429, "rate_limited"),
        ("SomethingNew", 504, "timeout"),
        ("", 502, "unavailable"),
        ("302", 302, "bad_response"),
    ],
)
def test_every_code_has_its_fault(code: str, status: int, fault: str) -> None:
    """A code that is not known counts by its status."""
    response = {"Error": {"Code": code, "Message": "No."}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = from_client_error(response, ())
    assert (error.code, error.fault) == (ErrorCode.PROVIDER_ERROR, fault)


def test_a_failure_of_the_model_counts_by_the_models_own_status() -> None:
    """Bedrock answers 424 for it."""
    response = {
        "Error": {"Code": "ModelErrorException", "Message": "No."},
        "ResponseMetadata": {"HTTPStatusCode": 424},
        "originalStatusCode": 429,
    }
    assert from_client_error(response, ()).fault == "rate_limited"


@pytest.mark.parametrize(
    "message",
    [
        "Input is too long for requested model.",
        "The model returned the following errors: prompt is too long: 903884 tokens > 200000 maximum",
        "The model returned the following errors: input length and `max_tokens` exceed context limit: 1 + 2 > 2",
        "The model returned the following errors: too many total text bytes: 9 > 8",
        "This model's maximum context length is 202752 tokens. However, you requested 65536 output tokens",
        "Too many input tokens. Max input tokens: 8192, request input token count: 9000",
        "The context length is exceeded",
    ],
)
def test_the_wordings_for_a_full_context_are_known(message: str) -> None:
    """Each becomes context_overflow; a limit of tokens in a minute does not."""
    metadata = {"HTTPStatusCode": 400}
    told = {"Code": "ValidationException", "Message": message}
    assert (
        from_client_error({"Error": told, "ResponseMetadata": metadata}, ()).code
        == ErrorCode.CONTEXT_OVERFLOW
    )
    told = {"Code": "ThrottlingException", "Message": "Too many tokens, please wait before trying again."}
    assert from_client_error({"Error": told, "ResponseMetadata": metadata}, ()).fault == "rate_limited"


def test_a_model_that_cannot_stream_is_told_with_the_cure() -> None:
    """The table may not know the model."""
    told = {
        "Code": "ValidationException",
        "Message": "This model doesn't support tool use in streaming mode.",
    }
    assert "streaming = false" in from_client_error({"Error": told}, ()).detail


def test_credentials_repeated_by_a_server_are_redacted() -> None:
    """Keys in use, ids of keys, and the signed headers that AWS quotes for a wrong signature."""
    message = "The key AKIAIOSFODNN7EXAMPLE with token-canary is invalid."
    told = {"Code": "UnrecognizedClientException", "Message": message}
    detail = from_client_error({"Error": told}, ("token-canary",)).detail
    assert "AKIA" not in detail
    assert "canary" not in detail
    quoted = (
        "The request signature we calculated does not match the signature you provided. Check your key.\n\n"
        "The Canonical String for this request should have been\n'POST\nx-amz-security-token:other-canary\n'"
    )
    told = {"Code": "InvalidSignatureException", "Message": quoted}
    assert "canary" not in from_client_error({"Error": told}, ()).detail


@pytest.mark.anyio
async def test_the_time_of_the_next_attempt_is_told() -> None:
    """As the header Retry-After has it."""
    async with ScriptedProvider(["status:429"]).serving() as provider:
        error = await failure_of(endpoint_url=provider.address, region="us-east-1")
    assert (error.fault, error.retry_after) == ("rate_limited", 7.0)


@pytest.mark.parametrize(
    ("model", "base"),
    [
        ("anthropic.claude-3-haiku-20240307-v1:0", "anthropic.claude-3-haiku-20240307-v1:0"),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", "anthropic.claude-opus-4-1-20250805-v1:0"),
        ("us-gov.anthropic.claude-3-haiku", "anthropic.claude-3-haiku"),
        ("global.amazon.nova-2-lite-v1:0", "amazon.nova-2-lite-v1:0"),
        ("arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-8b", "meta.llama3-8b"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/eu.amazon.nova-pro-v1:0", "amazon.nova-pro-v1:0"),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/abc123", "abc123"),
        ("us.deepseek.r1-v1:0", "deepseek.r1-v1:0"),
        ("scripted", "scripted"),
    ],
)
def test_the_foundation_model_of_every_form_of_id_is_found(model: str, base: str) -> None:
    """The features are those of the foundation model."""
    assert base_model(model) == base
    assert features_of(model) == features_of(base)


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """Loading the plugin and making the adapter costs no heavy import."""
    code = (
        "import sys, trunkline_bedrock.plugin as p; from trunkline_bedrock.adapter import BedrockAdapter;"
        "from trunkline_bedrock.settings import BedrockSettings;"
        "BedrockAdapter(BedrockSettings(region='eu-west-1'));"
        "sys.exit(any(name in sys.modules for name in ('boto3', 'botocore', 'urllib3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
