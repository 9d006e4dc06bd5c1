"""The section [adapters.ollama], the address and the key, errors, and the plugin's declarations."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message, Secret
from trunkline.api.model import ModelError, ModelRequest
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_ollama import plugin
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.errors import from_status
from trunkline_ollama.model_listing import ShownModel, first_that_answers, missing_models
from trunkline_ollama.server_address import parse_host
from trunkline_ollama.settings import OllamaSettings

REQUEST = ModelRequest(messages=(Message(id="msg_1", role="user", content="say:x"),), model="m")


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, section: OllamaSettings) -> None:
        self._section = section

    def section(self, kind: type[Any]) -> Any:
        assert kind is OllamaSettings
        return self._section


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)


async def fail(settings: OllamaSettings) -> ModelError:
    adapter = OllamaAdapter(settings)
    with pytest.raises(ModelError) as caught:
        [event async for event in adapter.stream(REQUEST)]
    await adapter.aclose()
    return caught.value


# Settings ----------------------------------------------------------------------------------------------------


def test_a_section_of_the_file_is_read() -> None:
    """All keys, the secret as a reference."""
    section = msgspec.convert(
        {
            "base_url": "http://nas:11434/",
            "api_key": {"env": "NAS_KEY"},
            "model": "qwen3:8b",
            "pull": True,
            "parameters": {"num_ctx": 8192, "reasoning_effort": "low", "keep_alive": "30m"},
        },
        OllamaSettings,
    )
    assert (section.url, section.api_key) == ("http://nas:11434", Secret(env="NAS_KEY"))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"base_url": "localhost:11434"}, "not a web address"),
        ({"base_url": "http://me:hunter2@nas"}, "user or password"),
        ({"parameters": {"num_cxt": 8192}}, "no parameter 'num_cxt'"),
        ({"parameters": {"num_ctx": "8192"}}, "must be of type integer"),
        ({"parameters": {"top_p": 2}}, "at most 1"),
        ({"parameters": {"reasoning_effort": "much"}}, "must be one of none, on, low"),
        ({"parameters": {"keep_alive": "soon"}}, "no duration"),
        ({"parameters": {"stop": [1]}}, "other than texts"),
        ({"extra_body": {"options": 1}}, "not a table"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_cure(settings: dict[str, Any], says: str) -> None:
    """With its place, and without a password."""
    with pytest.raises(ConfigError, match=says) as caught:
        OllamaSettings(**settings)
    assert "adapters.ollama." in caught.value.sentence
    assert caught.value.hint
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("duration", ["5m", "1h30m", "-1", "0", "300", "1.5h", "-1m"])
def test_durations_of_the_vendor_are_taken(duration: str) -> None:
    """Numbers with units, or seconds."""
    assert OllamaSettings(parameters={"keep_alive": duration})


def test_an_unknown_parameter_is_answered_with_the_known_ones() -> None:
    """All of the table."""
    with pytest.raises(ConfigError) as caught:
        OllamaSettings(parameters={"nun_ctx": 1})
    assert "num_ctx" in caught.value.hint
    assert "reasoning_effort" in caught.value.hint


@pytest.mark.parametrize("address", ["http://nas:1/v1", "http://nas:1/api/", "http://nas:1/"])
def test_the_address_of_another_protocol_is_understood(address: str) -> None:
    """People have the address with /v1 or /api at hand."""
    assert OllamaSettings(base_url=address).url == "http://nas:1"


# Address and key ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":56789", "http://127.0.0.1:56789"),
        ("1.2.3.4:56789", "http://1.2.3.4:56789"),
        ("http://1.2.3.4", "http://1.2.3.4:80"),
        ("https://1.2.3.4", "https://1.2.3.4:443"),
        ("example.com/", "http://example.com:11434"),
        ("example.com:56789/path", "http://example.com:56789/path"),
        ("https://example.com:56789/path/", "https://example.com:56789/path"),
        ("[0001:002:003:0004::1]", "http://[0001:002:003:0004::1]:11434"),
        ("[0001:002:003:0004::1]:56789/path", "http://[0001:002:003:0004::1]:56789/path"),
        ("http://[::1]", "http://[::1]:80"),
    ],
)
def test_the_variable_is_read_as_the_vendors_client_reads_it(host: str, url: str) -> None:
    """Compared with the client itself."""
    from ollama._client import _parse_host

    assert parse_host(host) == url == _parse_host(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "0.0.0.0:11434", "[::]", "http://0.0.0.0:11434"])
def test_an_address_to_listen_on_is_this_machine(host: str) -> None:
    """The variable configures the server, too."""
    assert parse_host(host) == "http://127.0.0.1:11434"


def test_the_environment_gives_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting wins over the variable, the variable over the default."""
    assert OllamaSettings().url == "http://127.0.0.1:11434"
    monkeypatch.setenv("OLLAMA_HOST", "nas:8080")
    assert OllamaSettings().url == "http://nas:8080"
    assert OllamaSettings(base_url="http://other:1").url == "http://other:1"


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["nas:port", "two words", "ftp://nas"])
async def test_a_variable_that_is_no_address_is_told(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name, and the cure."""
    monkeypatch.setenv("OLLAMA_HOST", host)
    error = await fail(OllamaSettings())
    assert error.fault == "unavailable"
    assert "OLLAMA_HOST" in error.detail
    assert "base_url" in error.detail


def test_a_key_goes_to_the_vendor_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the settings name it, and never over an unencrypted connection."""
    monkeypatch.setenv("OLLAMA_API_KEY", "key")
    assert OllamaSettings(base_url="https://ollama.com").key() == "key"
    assert OllamaSettings(base_url="https://api.ollama.com").key() == "key"
    for elsewhere in (None, "http://ollama.com", "https://notollama.com", "https://ollama.com.example"):
        assert OllamaSettings(base_url=elsewhere).key() == ""
    named = OllamaSettings(base_url="http://nas:1", api_key=Secret(env="OLLAMA_API_KEY"))
    assert named.key() == "key"


@pytest.mark.anyio
async def test_a_server_of_ones_own_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the environment; a named key is sent."""
    monkeypatch.setenv("OLLAMA_API_KEY", "key")
    async with ScriptedProvider().serving() as provider:
        for secret in (None, Secret(env="OLLAMA_API_KEY")):
            adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, api_key=secret))
            assert [event async for event in adapter.stream(REQUEST)]
            await adapter.aclose()
    assert [request.headers.get("authorization") for request in provider.requests] == [None, "Bearer key"]


@pytest.mark.anyio
async def test_a_key_that_is_named_and_not_set_is_reported() -> None:
    """The error names the variable; nothing is sent."""
    error = await fail(OllamaSettings(base_url="http://127.0.0.1:9", api_key=Secret(env="NO_SUCH_KEY")))
    assert error.fault == "authentication"
    assert "NO_SUCH_KEY" in error.detail


@pytest.mark.anyio
async def test_a_key_that_no_header_can_carry_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The HTTP library would quote it."""
    monkeypatch.setenv("BAD_KEY", "sk-schlüssel\n")
    error = await fail(OllamaSettings(base_url="http://127.0.0.1:9", api_key=Secret(env="BAD_KEY")))
    assert "schl" not in str(error)


@pytest.mark.anyio
async def test_a_redirect_is_not_followed() -> None:
    """The key goes to the configured address and nowhere else."""
    import httpx2

    def serve(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(307, headers={"location": "http://evil.example/api/chat"})

    adapter = OllamaAdapter(OllamaSettings(base_url="http://127.0.0.1:9"))
    adapter._client = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))
    with pytest.raises(ModelError) as caught:
        [event async for event in adapter.stream(REQUEST)]
    await adapter.aclose()
    assert caught.value.fault == "bad_response"


# Errors ------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_server_that_does_not_run_has_a_cure() -> None:
    """The address and the command that starts it."""
    error = await fail(OllamaSettings(base_url="http://127.0.0.1:9"))
    assert error.fault == "unavailable"
    assert "http://127.0.0.1:9 cannot be reached: Connection refused" in error.detail
    assert "ollama serve" in error.detail


@pytest.mark.parametrize(
    "message",
    [
        "the prompt is longer than the context length currently available to the model",
        "the input length exceeds the context length",
        "input length exceeds maximum context length",
        "prompt too long; exceeded max context length by 12 tokens",
        "the request exceeds the available context size, try increasing it",
        "request (4476 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "context length exceeded",
    ],
)
def test_the_wordings_for_a_full_context_are_known(message: str) -> None:
    """Each becomes context_overflow, whatever the status."""
    for status in (400, 500):
        error = from_status(status, msgspec.json.encode({"error": message}), {}, "")
        assert error.code == ErrorCode.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("status", "message", "fault", "cure"),
    [
        (400, '"gemma:2b" does not support tools', "refused", "capability tools"),
        (400, '"gemma:2b" does not support thinking', "refused", "reasoning_effort"),
        (
            500,
            "model requires more system memory (9 GiB) than is available (2 GiB)",
            "refused",
            "smaller model",
        ),
        (404, 'model "qwen3" not found, try pulling it first', "refused", "ollama pull qwen3"),
        (404, "404 page not found", "refused", ""),
        (503, "server busy, please try again.  maximum pending requests exceeded", "unavailable", ""),
        (429, "you have reached your weekly usage limit", "rate_limited", ""),
        (401, "unauthorized", "authentication", ""),
        (403, "this model requires a subscription", "authentication", ""),
        (408, "", "timeout", ""),
        (504, "", "timeout", ""),
        (502, "bad gateway", "unavailable", ""),
        (500, "llama runner process has terminated", "unavailable", ""),
        (302, "", "bad_response", ""),
    ],
)
def test_every_failure_has_its_fault_and_cure(status: int, message: str, fault: str, cure: str) -> None:
    """Whether the body is JSON or text."""
    for content in (msgspec.json.encode({"error": message}), message.encode()):
        error = from_status(status, content, {}, "", "qwen3")
        assert (error.code, error.fault) == (ErrorCode.PROVIDER_ERROR, fault)
        assert cure in error.detail


def test_the_pause_that_the_server_asks_for_is_kept() -> None:
    """In seconds or as a date; anything else is none."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    waits = [
        from_status(429, b"", {"retry-after": value}, "").retry_after for value in ("7", later, "soon", "")
    ]
    assert waits[0] == 7
    assert waits[1] is not None
    assert 50 < waits[1] <= 60
    assert waits[2:] == [None, None]


def test_a_key_repeated_by_a_server_is_redacted() -> None:
    """Nothing of it is in the detail."""
    error = from_status(401, b'{"error": "bad key sk-secret-1"}', {}, "sk-secret-1")
    assert "sk-secret-1" not in str(error) + error.detail


# Models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "num_ctx", "window"),
    [
        (None, None, 40960),
        ("stop x\nnum_ctx 8192\n", None, 8192),
        ("num_ctx 8192", 4096, 4096),
        (None, 99999, 40960),
    ],
)
def test_the_context_window_is_the_one_in_use(
    parameters: str | None, num_ctx: int | None, window: int
) -> None:
    """That of the settings, else of the Modelfile, else the model's largest."""
    details = {"general.architecture": "qwen3", "clip.context_length": 77, "qwen3.context_length": 40960}
    shown = ShownModel(parameters=parameters, model_info=details)
    assert shown.info("m", num_ctx).context_window == window
    assert shown.info("m", num_ctx).abilities is None


def test_an_old_server_that_lists_no_capabilities_has_a_first_model() -> None:
    """Chosen by its name."""
    infos = [ShownModel().info(name, None) for name in ("mxbai-embed-large", "llama2")]
    assert first_that_answers(infos) == "llama2"
    assert first_that_answers([]) == ""


def test_a_name_without_a_tag_is_the_latest() -> None:
    """As the server reads it; upper and lower case are one."""
    there = ["qwen3:8b", "llama3.2:latest", "hf.co/a/B-GGUF:Q4"]
    assert missing_models(["llama3.2", "qwen3", "hf.co/a/b-gguf:q4", ""], there) == ["qwen3"]


# The plugin --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "configured"),
    [({}, False), ({"model": "m"}, True), ({"base_url": "http://nas"}, True), ({"pull": True}, True)],
)
def test_the_adapter_is_configured_by_a_setting(settings: dict[str, Any], configured: bool) -> None:
    """It is always there to be named, but chosen automatically only with a setting."""
    [adapter] = plugin.trunkline_models(settings=Given(OllamaSettings(**settings)))
    assert adapter.configured is configured


async def check(section: OllamaSettings) -> Any:
    [health] = plugin.trunkline_health_checks(settings=Given(section))
    assert (health.id, health.online) == ("adapters.ollama", True)
    return await health.check()


@pytest.mark.anyio
async def test_the_health_check_says_what_to_do() -> None:
    """A server that does not run, and one that does not accept the key; nothing configured is fine."""
    assert (await check(OllamaSettings())).status == "ok"
    down = await check(OllamaSettings(base_url="http://127.0.0.1:9"))
    assert (down.status, "ollama serve" in down.hint) == ("warning", True)
    unset = await check(OllamaSettings(api_key=Secret(env="NO_SUCH_KEY")))
    assert (unset.status, "OLLAMA_API_KEY" in unset.hint) == ("warning", True)


@pytest.mark.anyio
async def test_the_health_check_lists_missing_models() -> None:
    """With the command that pulls them, unless the adapter pulls them itself."""
    async with ScriptedProvider(models=("qwen3:8b", "llama3.2:latest")).serving() as provider:
        url = provider.address
        for model in ("qwen3:8b", "llama3.2", ""):
            assert (await check(OllamaSettings(base_url=url, model=model))).status == "ok"
        missing = await check(OllamaSettings(base_url=url, model="gpt-oss:20b"))
        assert (missing.status, missing.hint) == ("warning", "Run: ollama pull gpt-oss:20b")
        pulled = await check(OllamaSettings(base_url=url, model="gpt-oss:20b", pull=True))
        assert (pulled.status, "first use" in pulled.summary) == ("ok", True)
    async with ScriptedProvider(models=()).serving() as provider:
        empty = await check(OllamaSettings(base_url=provider.address))
        assert (empty.status, "ollama pull" in empty.hint) == ("warning", True)


def test_no_http_library_is_imported_before_it_is_used() -> None:
    """Loading the plugin and making the adapter costs no heavy import."""
    code = (
        "import sys, trunkline_ollama.plugin as p; from trunkline_ollama.adapter import OllamaAdapter;"
        "from trunkline_ollama.settings import OllamaSettings;"
        "OllamaAdapter(OllamaSettings(base_url='http://x'));"
        "sys.exit(any(name in sys.modules for name in ('ollama', 'httpx', 'httpx2', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
