"""The section [adapters.openai], and the plugin's declaration for it."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline import ConfigError, ErrorCode, Message, Secret
from trunkline.api.model import ModelError, ModelRequest
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai import plugin
from trunkline_openai.adapter import OpenAIAdapter
from trunkline_openai.errors import from_status
from trunkline_openai.settings import OpenAISettings


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, section: OpenAISettings) -> None:
        self._section = section

    def section(self, kind: type[Any]) -> Any:
        return self._section if kind is type(self._section) else kind()


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("settings", "protocol"),
    [
        (OpenAISettings(), "responses"),
        (OpenAISettings(base_url="http://127.0.0.1:11434/v1"), "chat"),
        (OpenAISettings(api="chat"), "chat"),
        (OpenAISettings(base_url="http://127.0.0.1:11434/v1", api="responses"), "responses"),
    ],
)
def test_openai_is_asked_by_responses_and_others_by_chat(settings: OpenAISettings, protocol: str) -> None:
    """Unless it is configured otherwise."""
    assert settings.protocol == protocol


def test_a_section_of_the_file_is_read() -> None:
    """All keys, the secret as a reference."""
    section = msgspec.convert(
        {
            "base_url": "https://openrouter.ai/api/v1",
            "api_key": {"env": "ROUTER_KEY"},
            "extra_body": {"seed": 1},
        },
        OpenAISettings,
    )
    assert section.api_key == Secret(env="ROUTER_KEY")
    assert section.extra_body == {"seed": 1}


def test_an_invalid_base_url_is_refused_with_a_hint() -> None:
    """A base_url without http is recognized at once."""
    with pytest.raises(ConfigError, match="not a web address"):
        OpenAISettings(base_url="localhost:11434")


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    """Secrets are references: doctor and errors show the address, so it may hold none."""
    with pytest.raises(ConfigError, match="user or password") as caught:
        OpenAISettings(base_url="https://me:hunter2@models.example/v1")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    assert OpenAISettings(base_url="https://models.example/@me/v1").base_url


def test_the_adapter_is_declared_only_when_it_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key and address there is no adapter; either of them makes one."""
    assert list(plugin.trunkline_models(settings=Given(OpenAISettings()))) == []
    assert (
        len(list(plugin.trunkline_models(settings=Given(OpenAISettings(base_url="http://127.0.0.1:1"))))) == 1
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert len(list(plugin.trunkline_models(settings=Given(OpenAISettings())))) == 1


@pytest.mark.anyio
async def test_a_key_that_is_named_and_not_set_is_reported() -> None:
    """The error names the variable; nothing is sent."""
    adapter = OpenAIAdapter(OpenAISettings(base_url="http://127.0.0.1:9", api_key=Secret(env="NO_SUCH_KEY")))
    request = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))
    with pytest.raises(ModelError, match="NO_SUCH_KEY") as caught:
        [event async for event in adapter.stream(request)]
    assert caught.value.fault == "authentication"


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
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        adapter = OpenAIAdapter(OpenAISettings(base_url=url, model="m", connect_timeout=0.2))
        request = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))
        with pytest.raises(ModelError) as caught:
            [event async for event in adapter.stream(request)]
        await adapter.aclose()
    assert caught.value.fault == "timeout"


@pytest.mark.anyio
async def test_a_key_that_no_header_can_carry_is_not_shown() -> None:
    """The HTTP library would quote it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAD_KEY", "sk-schlüssel")
        adapter = OpenAIAdapter(
            OpenAISettings(base_url="http://127.0.0.1:9", model="m", api_key=Secret(env="BAD_KEY"))
        )
        with pytest.raises(ModelError) as caught:
            [
                e
                async for e in adapter.stream(
                    ModelRequest(messages=(Message(id="m", role="user", content="x"),))
                )
            ]
    assert "schl" not in str(caught.value)


@pytest.mark.anyio
async def test_the_health_check_gives_a_hint() -> None:
    """A server that does not answer is a warning with a hint; nothing configured is fine."""
    [check] = plugin.trunkline_health_checks(settings=Given(OpenAISettings(base_url="http://127.0.0.1:9/v1")))
    result = await check.check()
    assert (check.id, result.status) == ("adapters.openai", "warning")
    assert "base_url" in result.hint
    [unused] = plugin.trunkline_health_checks(settings=Given(OpenAISettings()))
    assert (await unused.check()).status == "ok"


@pytest.mark.anyio
async def test_the_health_check_warns_about_an_unlisted_model() -> None:
    """It is refused when it is asked; the name may be misspelled."""
    with ScriptedProvider(models=("small:latest", "big")) as provider:
        for model, status in (("big", "ok"), ("small", "ok"), ("bgi", "warning"), ("", "ok")):
            section = OpenAISettings(base_url=provider.url, model=model)
            [check] = plugin.trunkline_health_checks(settings=Given(section))
            result = await check.check()
            assert (result.status, "'bgi'" in result.summary) == (status, model == "bgi"), result


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "the request exceeds the available context size, try increasing it",
        "request (4476 tokens) exceeds the available context size (4096 tokens)",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "the input length exceeds context length",
        "prompt too long; exceeded max context length by 12 tokens",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with 4096",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        "prompt is too long: 215000 tokens > 200000 maximum",
    ],
)
def test_the_wordings_of_servers_for_a_full_context_are_known(message: str) -> None:
    """Each becomes context_overflow."""
    assert (
        from_status(400, {"error": {"message": message, "code": 400}}, "k").code == ErrorCode.CONTEXT_OVERFLOW
    )


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (400, "refused"),
        (401, "authentication"),
        (403, "authentication"),
        (404, "refused"),
        (408, "timeout"),
        (413, "refused"),
        (422, "refused"),
        (429, "rate_limited"),
        (500, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "timeout"),
        (302, "bad_response"),
    ],
)
def test_every_status_has_its_fault(status: int, fault: str) -> None:
    """The code is provider_error, for any body."""
    for body in ({"error": {"message": "No."}}, {"detail": "No."}, "No.", None, ["No."]):
        error = from_status(status, body, "k")
        assert (error.code, error.fault) == (ErrorCode.PROVIDER_ERROR, fault)


def test_a_rate_limit_on_tokens_is_not_a_context_overflow() -> None:
    """Groq answers 413 for it, and speaks of tokens."""
    body = {
        "error": {"message": "Request too large on tokens per minute (TPM)", "code": "rate_limit_exceeded"}
    }
    assert from_status(413, body, "k").fault == "rate_limited"


def test_a_key_repeated_by_a_server_is_redacted() -> None:
    """The detail contains no part of the key."""
    error = from_status(401, {"error": {"message": "Bad key sk-secret-1."}}, "sk-secret-1")
    assert "sk-secret-1" not in str(error) + error.detail


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """Loading the plugin and making the adapter costs no heavy import."""
    code = (
        "import sys, trunkline_openai.plugin as p; from trunkline_openai.adapter import OpenAIAdapter;"
        "from trunkline_openai.settings import OpenAISettings;"
        "OpenAIAdapter(OpenAISettings(base_url='http://x'));"
        "sys.exit(any(name in sys.modules for name in ('openai', 'httpx2', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
