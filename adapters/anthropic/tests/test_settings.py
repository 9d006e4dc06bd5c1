"""The section [adapters.anthropic], and what the plugin declares for it."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import SocketAttribute, SocketStream

from trunkline import ConfigError, ErrorCode, Message, Secret
from trunkline.api.model import ModelError, ModelRequest
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_anthropic import plugin
from trunkline_anthropic.adapter import AnthropicAdapter
from trunkline_anthropic.errors import from_status, from_stream_error
from trunkline_anthropic.settings import AnthropicSettings

ASK = ModelRequest(messages=(Message(id="msg_1", role="user", content="x"),))


class Given:
    """Settings as the plugin loader gives them."""

    home = Path("/nowhere")

    def __init__(self, section: AnthropicSettings) -> None:
        self._section = section

    def section(self, kind: type[Any]) -> Any:
        assert kind is AnthropicSettings
        return self._section


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


async def failure(settings: AnthropicSettings) -> ModelError:
    adapter = AnthropicAdapter(settings)
    with pytest.raises(ModelError) as caught:
        [event async for event in adapter.stream(ASK)]
    await adapter.aclose()
    return caught.value


def test_a_section_of_the_file_is_read() -> None:
    """All keys, the secret as a reference."""
    section = msgspec.convert(
        {
            "base_url": "https://gateway.example/anthropic/v1",
            "api_key": {"env": "GATEWAY_KEY"},
            "model": "claude-haiku-5-5",
            "max_tokens": 2000,
            "connect_timeout": 3.0,
            "prompt_cache": False,
            "parameters": {"reasoning_effort": "low"},
            "extra_body": {"speed": "fast"},
        },
        AnthropicSettings,
    )
    assert section.api_key == Secret(env="GATEWAY_KEY")
    assert section.url == "https://gateway.example/anthropic"


@pytest.mark.parametrize(
    ("section", "message", "cure"),
    [
        ({"base_url": "localhost:8000"}, "not a web address", "Write the address"),
        ({"max_tokens": 0}, "at least one token", "positive number"),
        ({"parameters": {"reasoning": "high"}}, "no parameter 'reasoning'", "reasoning_effort"),
        (
            {"parameters": {"reasoning_effort": "hard"}},
            "must be one of none, low",
            "How much the model thinks",
        ),
        ({"parameters": {"thinking_budget": 9}}, "no parameter 'thinking_budget'", "claude-sonnet-5-5 takes"),
        (
            {"model": "claude-haiku-4-5", "parameters": {"thinking_budget": 9}},
            "must be at least 1024",
            "at least 1024",
        ),
        ({"parameters": {"stop_sequences": "END"}}, "must be of type array", "list of strings"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_cure(section: Any, message: str, cure: str) -> None:
    """At the start, with the name of the setting."""
    with pytest.raises(ConfigError, match=message) as caught:
        AnthropicSettings(**section)
    assert "adapters.anthropic." in str(caught.value)
    assert cure in str(caught.value.hint)


def test_an_address_with_a_password_is_refused_without_telling_it() -> None:
    """Secrets are references: doctor and errors show the address, so it may hold none."""
    with pytest.raises(ConfigError, match="user or password") as caught:
        AnthropicSettings(base_url="https://me:hunter2@models.example")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    assert AnthropicSettings(base_url="https://models.example/@me").base_url


def test_the_adapter_is_declared_only_when_it_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without key and address there is no adapter; either of them makes one."""

    def declared(section: AnthropicSettings) -> int:
        return len(list(plugin.trunkline_models(settings=Given(section))))

    assert declared(AnthropicSettings()) == 0
    assert declared(AnthropicSettings(base_url="http://127.0.0.1:1")) == 1
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-x")
    assert declared(AnthropicSettings()) == 1


@pytest.mark.anyio
async def test_a_key_that_is_named_and_not_set_is_reported() -> None:
    """The error names the variable; nothing is sent."""
    error = await failure(AnthropicSettings(base_url="http://127.0.0.1:9", api_key=Secret(env="NO_SUCH_KEY")))
    assert error.fault == "authentication"
    assert "NO_SUCH_KEY" in str(error)


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog is silent on Linux only")
async def test_a_connection_that_is_not_made_in_time_is_a_timeout() -> None:
    """The adapter limits the time to connect, and not the time that a model thinks."""
    with socket.socket() as server, ExitStack() as held:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):  # more than the backlog takes, so that the next one hangs
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        error = await failure(AnthropicSettings(base_url=url, model="m", connect_timeout=0.2))
    assert error.fault == "timeout"


@pytest.mark.anyio
async def test_a_key_that_no_header_can_carry_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The HTTP library would quote it."""
    monkeypatch.setenv("BAD_KEY", "sk-schlüssel")
    error = await failure(
        AnthropicSettings(base_url="http://127.0.0.1:9", model="m", api_key=Secret(env="BAD_KEY"))
    )
    assert "schl" not in str(error)


@pytest.mark.anyio
async def test_the_environment_of_the_sdk_changes_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the settings say where requests go and with which key."""
    async with ScriptedProvider().serving() as provider:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-other")
        adapter = AnthropicAdapter(AnthropicSettings(base_url=provider.address, model="m"))
        assert [event async for event in adapter.stream(ASK)]
        await adapter.aclose()
    assert "sk-other" not in str(provider.requests[0].headers)


@pytest.mark.anyio
async def test_a_compatible_server_without_counts_gives_none() -> None:
    """Many have Messages only."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        adapter = AnthropicAdapter(AnthropicSettings(base_url=url, model="m"))
        assert await adapter.count_tokens(ASK) is None
        await adapter.aclose()
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_the_health_check_says_what_to_do() -> None:
    """A server that does not answer is a warning with a hint; nothing configured is fine."""
    [check] = plugin.trunkline_health_checks(
        settings=Given(AnthropicSettings(base_url="http://127.0.0.1:9", model="m"))
    )
    result = await check.check()
    assert (check.id, result.status) == ("adapters.anthropic", "warning")
    assert "base_url" in result.hint
    [unused] = plugin.trunkline_health_checks(settings=Given(AnthropicSettings()))
    assert (await unused.check()).status == "ok"
    async with ScriptedProvider().serving() as provider:
        [check] = plugin.trunkline_health_checks(settings=Given(AnthropicSettings(base_url=provider.address)))
        assert (await check.check()).status == "ok"


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 215000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "This model's maximum context length is 4096 tokens.",
        "request exceeded model's context window",
    ],
)
def test_the_wordings_for_a_full_context_are_known(message: str) -> None:
    """Each becomes context_overflow."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    assert from_status(400, body, "k").code == ErrorCode.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("status", "kind", "fault"),
    [
        (400, "invalid_request_error", "refused"),
        (401, "authentication_error", "authentication"),
        (402, "billing_error", "rate_limited"),
        (403, "permission_error", "authentication"),
        (404, "not_found_error", "refused"),
        (413, "request_too_large", "refused"),
        (429, "rate_limit_error", "rate_limited"),
        (500, "api_error", "unavailable"),
        (504, "timeout_error", "timeout"),
        (529, "overloaded_error", "unavailable"),
    ],
)
def test_every_type_of_error_has_its_fault(status: int, kind: str, fault: str) -> None:
    """By its status, and by its type alone in a stream."""
    error = {"type": kind, "message": "No."}
    for body in ({"type": "error", "error": error, "request_id": "req_1"}, error, "No.", None, ["No."]):
        made = from_status(status, body, "k")
        assert (made.code, made.fault) == (ErrorCode.PROVIDER_ERROR, fault)
    assert from_stream_error(error, "k").fault == fault


@pytest.mark.parametrize(("status", "fault"), [(302, "bad_response"), (408, "timeout"), (503, "unavailable")])
def test_a_status_without_a_type_has_its_fault(status: int, fault: str) -> None:
    """Gateways answer with bodies of their own."""
    assert from_status(status, "No.", "k").fault == fault


def test_an_account_without_credit_is_rate_limited() -> None:
    """The vendor answers 400; another key or provider may answer."""
    error = {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}
    assert from_status(400, {"error": error}, "k").fault == "rate_limited"


def test_a_key_repeated_by_a_server_is_redacted() -> None:
    """No part of it is in the detail."""
    error = from_status(401, {"error": {"message": "Bad key sk-secret-1."}}, "sk-secret-1")
    assert "sk-secret-1" not in str(error) + error.detail


def test_the_sdk_is_not_imported_before_it_is_used() -> None:
    """Loading the plugin and making the adapter costs no heavy import."""
    code = (
        "import sys, trunkline_anthropic.plugin; from trunkline_anthropic.adapter import AnthropicAdapter;"
        "from trunkline_anthropic.settings import AnthropicSettings;"
        "AnthropicAdapter(AnthropicSettings(base_url='http://x'));"
        "sys.exit(any(name in sys.modules for name in ('anthropic', 'httpx2', 'pydantic')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
