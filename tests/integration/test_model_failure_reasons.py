"""Why a model did not answer reaches the person who asked, on every way; no key, address, account or path does."""

import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.other_users import GUEST, HEADER, Visitors, share
from tests.ports import free_port
from tests.support.tmux import MISSING, Tmux
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline.testing.script import Hang, Refuse, Reply, ScriptedRequest
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

KEY = "sk-proj-4fZ9mQ2xT7vB1nK8wR5yH3cL6dJ0sA"
OTHERS = (
    KEY, "sk-ant-api03-9Qx7Zt2Lm5Vb8Nc1Rk4Wy6Hs3Jd0Fg", "http://10.1.2.3:8000/v1", "10.9.8.7", "fd00::1f2e",
    "vendor.internal",
    "ada@tenant.example", "org-8Hk2Lm9Qx7Zt", "/srv/vendor/pod.py", "9b2c1f7e-4d5a-4c3b-8e2f-1a2b3c4d5e6f",
)  # fmt: skip
"""What a provider's error may quote, of this home and of others."""

Script = Callable[[ScriptedRequest], Reply]


def refuses(status: int, code: str, message: str) -> Script:
    return lambda heard: (Refuse(status=status, code=code, message=message),)


@contextlib.contextmanager
def nobody(script: Script) -> Iterator[str]:
    """An address at which nobody listens."""
    yield f"http://127.0.0.1:{free_port()}/v1"


@contextlib.contextmanager
def serving(script: Script) -> Iterator[str]:
    with ScriptedProvider(script) as provider:
        yield provider.url


FAILURES: Mapping[str, tuple[Any, Script, tuple[str, ...]]] = {
    "a refused key": (
        serving,
        refuses(401, "invalid_api_key", f"Incorrect API key provided: {KEY}."),
        ("openai/gpt-nope: ", "refused the credential", "401", "Incorrect API key provided: ["),
    ),
    "an unknown model": (
        serving,
        refuses(404, "model_not_found", "The model gpt-nope does not exist."),
        ("refused the request", "404 model_not_found", "The model gpt-nope does not exist"),
    ),
    "no connection": (nobody, refuses(500, "", ""), ("cannot be reached", "Connection refused")),
    "silence": (serving, lambda heard: (Hang(),), ("did not answer in time",)),
    "words of others": (
        serving,
        refuses(
            403,
            "forbidden",
            f"Denied for {' and '.join(OTHERS)}\nTraceback (most recent call last): File x.py",
        ),
        ("refused the credential", "Denied for [key] and [REDACTED] and [address]"),
    ),
}


@asynccontextmanager
async def failing(kind: str, *plugins: object) -> AsyncIterator[tuple[Platform, tuple[str, ...]]]:
    """A platform whose model fails in this way, and what must be told of it."""
    serve, script, reported = FAILURES[kind]
    with serve(script) as url:
        config = {
            "runtime.provider_adapter": "openai",
            "adapters.openai.base_url": url,
            "adapters.openai.model": "gpt-nope",
            "adapters.openai.api_key": {"env": "MY_KEY"},
            "monitor.model_idle_timeout": 1.5,
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MY_KEY", KEY)
            async with platform(plugins=plugins, config=config) as running:
                yield running, reported


def assert_reported(text: str, reported: tuple[str, ...]) -> None:
    assert all(part in text for part in reported), text
    assert_nothing_of_others(text)
    assert "\n" not in text and len(text) < 400


def assert_nothing_of_others(text: str) -> None:
    assert not [one for one in (*OTHERS, "127.0.0.1", "Traceback") if one in text], text


@pytest.mark.parametrize("kind", FAILURES)
async def test_the_reason_reaches_the_owner_on_every_way(kind: str) -> None:
    """The feed, which terminal and ``say`` show, the HTTP stream, OpenAI's route in one piece and as a stream."""
    async with failing(kind) as (running, reported):
        answer = await running.say("hello")
        assert (
            answer.ended.code == "provider_error"
            and answer.ended.sentence == "The model provider failed to answer."
        )
        assert_reported(answer.ended.detail, reported)
        headers = {"authorization": f"Bearer {running.token}"}
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
            stream = (await http.post("/conversations/messages", json={"content": "hello"})).text
        error = json.loads(stream.partition("event: error")[2].partition("data: ")[2].splitlines()[0])
        assert error["message"] == "The model provider failed to answer."
        assert_reported(error["metadata"]["detail"], reported)
        assert_nothing_of_others(stream)
        async with openai.AsyncOpenAI(
            base_url=f"{running.url}/v1", api_key=running.token, timeout=60
        ) as client:
            request: dict[str, Any] = {"model": "main", "messages": [{"role": "user", "content": "hello"}]}
            with pytest.raises(openai.APIStatusError) as whole:
                await client.chat.completions.create(**request)
            with pytest.raises(openai.APIError) as streamed:
                async for _ in await client.chat.completions.create(stream=True, **request):
                    pass
        assert_reported(whole.value.message.replace("\n", " "), reported)
        assert_reported(streamed.value.message, reported)


async def test_others_than_the_owner_see_only_the_error_code() -> None:
    """What a provider says may tell of the owner's account."""
    async with failing("an unknown model", Visitors(GUEST)) as (running, _):
        await share(running.bus)
        async with httpx.AsyncClient(base_url=running.url, headers={HEADER: GUEST.id}, timeout=60) as http:
            stream = await http.post("/conversations/messages", json={"content": "hello"})
            request = {"model": "main", "messages": [{"role": "user", "content": "hello"}]}
            whole = await http.post("/v1/chat/completions", json=request)
            streamed = await http.post("/v1/chat/completions", json={**request, "stream": True})
        for heard in (stream, whole, streamed):
            assert "The model provider failed to answer." in heard.text
            assert "gpt-nope" not in heard.text and "HTTP" not in heard.text


async def test_a_home_with_a_broken_file_starts_no_dialog() -> None:
    """The reason names the file and the line, as the log does."""
    async with failing("an unknown model") as (running, _):
        await running.say("first")
        (running.home.path / "memory" / "preferences.toml").write_text(
            'model = "openai/x"\nalways_send == 3\n'
        )
        answer = await running.gateway.answerer("main")
        while not answer.problem:
            answer = await running.gateway.answerer("main")
        assert "preferences.toml" in answer.problem and "line" in answer.problem


def started(home: Path, url: str) -> dict[str, str]:
    """The environment of a home with such a model."""
    settings = f'[adapters.openai]\nbase_url = "{url}"\nmodel = "gpt-nope"\napi_key = {{ env = "MY_KEY" }}\n'
    prices = '[models.prices."openai/*"]\ninput = 2.0\noutput = 8.0\n'
    prices += '[models.context_windows]\n"openai/gpt-nope" = 128000\n'
    (home / "trunkline.toml").write_text(f"{settings}{prices}[gateway]\nport = 0\n")
    return {**clean_environ(), "TRUNKLINE_HOME": str(home), "MY_KEY": KEY, "NO_COLOR": "1"}


def test_say_and_a_pipe_show_the_model_and_the_failure(tmp_path: Path) -> None:
    """On standard error, without a colour; the JSON has both as fields."""
    _, script, reported = FAILURES["a refused key"]
    with ScriptedProvider(script) as provider:
        environ = started(tmp_path, provider.url)
        for words, given in (
            (["say", "hello"], None),
            (["say", "hello", "--json"], None),
            (["chat"], "hello\n"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "trunkline.cli.main", *words], env=environ, input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True, text=True, timeout=180, check=False,
            )  # fmt: skip
            heard = done.stdout + done.stderr
            assert done.returncode == 1 and "\x1b" not in heard and KEY not in heard
            assert all(part in heard for part in reported), heard
            if "--json" in words:
                assert json.loads(done.stdout)["answered_by"] == "openai/gpt-nope"
            else:
                assert done.stdout == ""


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_chat_shows_model_context_cost_and_failure_on_80_columns(tmp_path: Path) -> None:
    """The bar stays one line whatever it holds, and an answer's neighbours stay whole."""
    turns = iter(("answers", "refused"))

    def script(heard: ScriptedRequest) -> Reply:
        from trunkline.testing.script import answer_by_message

        return (
            answer_by_message(heard)
            if next(turns, "refused") == "answers"
            else FAILURES["a refused key"][1](heard)
        )

    with ScriptedProvider(script) as provider:
        environ = started(tmp_path, provider.url)
        line = " ".join(
            f"{name}={value}"
            for name, value in environ.items()
            if name in ("TRUNKLINE_HOME", "MY_KEY", "NO_COLOR")
        )
        with Tmux(f"env {line} {sys.executable} -m trunkline.cli.main chat", columns=80) as terminal:
            terminal.wait_shows("openai/gpt-nope answers.", "trunkline ›")
            terminal.type("say:a title that is much too long for a line of eighty columns and goes on and on")
            terminal.wait_shows(" of 128k", "$0.0")
            rows = terminal.screen().splitlines()
            bars = [row for row in rows if "openai/gpt-nope ·" in row]
            assert len(bars) == 1 and "context " in bars[0] and "$" in bars[0] and len(bars[0]) <= 80
            terminal.type("again")
            terminal.wait_shows("refused the credential", "(provider_error)")
            assert KEY not in terminal.screen(history=True)
