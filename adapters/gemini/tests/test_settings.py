"""The section [adapters.gemini], what the plugin declares for it, and the translation of errors."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message, Secret
from trunkline.api.model import ModelError, ModelRequest
from trunkline.testing.script import Refuse
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_gemini import plugin
from trunkline_gemini.adapter import GeminiAdapter
from trunkline_gemini.errors import from_status
from trunkline_gemini.settings import GeminiSettings

REQUEST = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, section: GeminiSettings) -> None:
        self._section = section

    def section(self, kind: type[Any]) -> Any:
        assert kind is GeminiSettings
        return self._section


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def failure(adapter: GeminiAdapter) -> ModelError:
    with pytest.raises(ModelError) as caught:
        [event async for event in adapter.stream(REQUEST)]
    await adapter.aclose()
    return caught.value


def test_a_section_of_the_file_is_read() -> None:
    """All keys, the secret as a reference. The address may end with the version."""
    section = msgspec.convert(
        {
            "base_url": "https://gateway.example/gemini/v1beta/",
            "api_key": {"env": "GATEWAY_KEY"},
            "model": "models/gemini-4-argon",
            "parameters": {"reasoning_effort": "low"},
            "extra_body": {"store": False},
        },
        GeminiSettings,
    )
    assert section.api_key == Secret(env="GATEWAY_KEY")
    assert (section.url, section.default_model) == ("https://gateway.example/gemini", "gemini-4-argon")
    assert GeminiSettings().url == "https://generativelanguage.googleapis.com"


@pytest.mark.parametrize(
    ("settings", "told", "cure"),
    [
        ({"base_url": "localhost:8000"}, "not a web address", "http://127.0.0.1:8000"),
        ({"base_url": "https://me:hunter2@models.example"}, "user or password", "api_key"),
        ({"api_version": "beta"}, "not a version", "v1beta"),
        ({"connect_timeout": 0}, "must exceed 0", "10.0"),
        ({"parameters": {"temperatur": 1}}, "no parameter 'temperatur'", "reasoning_effort"),
        ({"parameters": {"reasoning_effort": "lots"}}, "must be one of", "thinks"),
        (
            {"parameters": {"thinking_budget": 512}},
            "no parameter 'thinking_budget'",
            "gemini-3.8-flash takes",
        ),
        (
            {"model": "gemini-2.5-flash", "parameters": {"thinking_budget": 99_999}},
            "at most 32768",
            "tokens that the model may use",
        ),
    ],
)
def test_wrong_settings_are_refused_with_the_cure(settings: dict[str, Any], told: str, cure: str) -> None:
    """The error names the place, and shows no password."""
    with pytest.raises(ConfigError) as caught:
        GeminiSettings(**settings)
    assert told in str(caught.value)
    assert "adapters.gemini." in str(caught.value)
    assert cure in caught.value.hint
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_a_parameter_of_the_configured_model_is_taken() -> None:
    """A budget of thinking belongs to Gemini 2.5."""
    settings = GeminiSettings(model="gemini-2.5-flash", parameters={"thinking_budget": 512})
    assert settings.parameters == {"thinking_budget": 512}


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_the_adapter_is_declared_only_when_it_is_usable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key and address there is no adapter; either of them makes one."""
    assert list(plugin.trunkline_models(settings=Given(GeminiSettings()))) == []
    address = GeminiSettings(base_url="http://127.0.0.1:1")
    assert len(list(plugin.trunkline_models(settings=Given(address)))) == 1
    monkeypatch.setenv(name, "a-key")
    assert len(list(plugin.trunkline_models(settings=Given(GeminiSettings())))) == 1
    assert GeminiSettings().key() == "a-key"


def test_the_vendors_own_variable_precedes_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """If both are set, and a named variable precedes both."""
    monkeypatch.setenv("GOOGLE_API_KEY", "general")
    monkeypatch.setenv("GEMINI_API_KEY", "own")
    assert GeminiSettings().key() == "own"
    monkeypatch.setenv("OTHER_KEY", "named")
    assert GeminiSettings(api_key=Secret(env="OTHER_KEY")).key() == "named"


def test_a_general_key_alone_does_not_make_gemini_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may belong to another product. With settings, or with the variable of its own, Gemini may be the default."""
    monkeypatch.setenv("GOOGLE_API_KEY", "general")
    assert not GeminiAdapter(GeminiSettings()).configured
    assert GeminiAdapter(GeminiSettings(model="gemini-4-argon")).configured
    monkeypatch.setenv("GEMINI_API_KEY", "own")
    assert GeminiAdapter(GeminiSettings()).configured


@pytest.mark.anyio
async def test_the_variables_of_the_sdk_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK reads variables of its own for keys, addresses and the cloud; none of them counts."""
    for name, value in {
        "GOOGLE_API_KEY": "general",
        "OTHER_KEY": " named\n",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "GOOGLE_GENAI_API_VERSION": "v7",
    }.items():
        monkeypatch.setenv(name, value)
    async with ScriptedProvider().serving() as provider:
        adapter = GeminiAdapter(GeminiSettings(base_url=provider.address, api_key=Secret(env="OTHER_KEY")))
        assert len([event async for event in adapter.stream(REQUEST)]) > 1
        await adapter.aclose()
        [request] = provider.answer_requests
    assert request.headers["x-goog-api-key"] == "named"
    assert request.path.startswith("/v1beta/models/")


@pytest.mark.anyio
async def test_a_key_that_is_named_and_not_set_is_reported() -> None:
    """The error names the variable; nothing is sent."""
    settings = GeminiSettings(base_url="http://127.0.0.1:9", api_key=Secret(env="NO_SUCH_KEY"))
    error = await failure(GeminiAdapter(settings))
    assert error.fault == "authentication"
    assert "NO_SUCH_KEY" in error.detail


@pytest.mark.anyio
async def test_a_key_that_no_header_can_carry_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The HTTP library would quote it."""
    monkeypatch.setenv("BAD_KEY", "sk-schlüssel")
    settings = GeminiSettings(base_url="http://127.0.0.1:9", api_key=Secret(env="BAD_KEY"))
    assert "schl" not in str(await failure(GeminiAdapter(settings)))


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
        error = await failure(GeminiAdapter(GeminiSettings(base_url=url, connect_timeout=0.2)))
    assert error.fault == "timeout"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("program", "fault"),
    [("status:401", "authentication"), ("status:503", "unavailable"), ("status:504", "timeout")],
)
async def test_an_http_error_has_its_fault(program: str, fault: str) -> None:
    """The detail has the status, the vendor's code and message."""
    async with ScriptedProvider([program]).serving() as provider:
        error = await failure(GeminiAdapter(GeminiSettings(base_url=provider.address)))
    assert error.fault == fault
    assert error.detail.startswith(f"HTTP {program[-3:]} ")
    assert f"Scripted error {program[-3:]}" in error.detail


@pytest.mark.anyio
async def test_a_rate_limit_says_when_another_request_is_accepted() -> None:
    """From RetryInfo in the body, else from the header."""
    async with ScriptedProvider(["status:429"]).serving() as provider:
        error = await failure(GeminiAdapter(GeminiSettings(base_url=provider.address)))
    assert (error.fault, error.retry_after) == ("rate_limited", 7.0)
    assert from_status(429, {}, "k", {"retry-after": "3"}).retry_after == 3.0
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (from_status(429, {}, "k", {"retry-after": date}).retry_after or 0) <= 60
    assert from_status(429, {}, "k", {"retry-after": "soon"}).retry_after is None


@pytest.mark.anyio
async def test_a_redirect_is_not_followed() -> None:
    """The key goes to the configured address only."""
    async with ScriptedProvider().serving() as other:
        moved = Refuse(status=302, code="moved", message="Moved.", headers=(("Location", other.address),))
        async with ScriptedProvider(lambda heard: (moved,)).serving() as provider:
            error = await failure(GeminiAdapter(GeminiSettings(base_url=provider.address)))
        assert other.requests == []
    assert error.fault == "bad_response"


@pytest.mark.anyio
async def test_the_health_check_says_what_to_do() -> None:
    """A server that does not answer is a warning with a hint; nothing configured is fine."""
    unreachable = GeminiSettings(base_url="http://127.0.0.1:9")
    [check] = plugin.trunkline_health_checks(settings=Given(unreachable))
    result = await check.check()
    assert (check.id, result.status) == ("adapters.gemini", "warning")
    assert "base_url" in result.hint
    [unused] = plugin.trunkline_health_checks(settings=Given(GeminiSettings()))
    assert (await unused.check()).status == "ok"
    async with ScriptedProvider().serving() as provider:
        [used] = plugin.trunkline_health_checks(settings=Given(GeminiSettings(base_url=provider.address)))
        assert "lists 2 models" in (await used.check()).summary


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (400, "refused"),
        (401, "authentication"),
        (403, "authentication"),
        (404, "refused"),
        (408, "timeout"),
        (429, "rate_limited"),
        (499, "unavailable"),
        (500, "unavailable"),
        (503, "unavailable"),
        (504, "timeout"),
        (302, "bad_response"),
    ],
)
def test_every_status_has_its_fault(status: int, fault: str) -> None:
    """With the code provider_error, whatever the body is."""
    for body in ({"error": {"message": "No."}}, [{"error": {"message": "No."}}], "No.", None, ["No."], []):
        error = from_status(status, body, "k")
        assert (error.code, error.fault) == (ErrorCode.PROVIDER_ERROR, fault)


@pytest.mark.parametrize(
    "message",
    [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
    ],
)
def test_the_vendors_wordings_for_a_full_context_are_known(message: str) -> None:
    """Each becomes context_overflow."""
    error = from_status(400, {"error": {"message": message, "status": "INVALID_ARGUMENT"}}, "k")
    assert error.code == ErrorCode.CONTEXT_OVERFLOW


def test_a_refused_key_is_an_authentication_error() -> None:
    """The vendor sends it with status 400 and a reason. A key that it repeats is not in the detail."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    body = {"error": {"message": "API key a-key not valid.", "status": "INVALID_ARGUMENT", "details": [info]}}
    error = from_status(400, body, "a-key")
    assert error.fault == "authentication"
    assert "a-key" not in str(error) + error.detail


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """Loading the plugin and making the adapter costs no heavy import."""
    code = (
        "import sys, trunkline_gemini.plugin as p; from trunkline_gemini.adapter import GeminiAdapter;"
        "from trunkline_gemini.settings import GeminiSettings;"
        "GeminiAdapter(GeminiSettings(base_url='http://x'));"
        "sys.exit(any(name in sys.modules for name in ('google.genai', 'httpx2', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
