"""Models that the server does not have: the error, and the pull at the first use."""

import logging
from typing import Any

import httpx2
import pytest

from trunkline import Message
from trunkline.api.model import ModelError, ModelEvent, ModelRequest, Reasoning, ReasoningDone, Text
from trunkline.testing.script import Raw
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.ollama_chat import UNKNOWN_MODEL, json_line
from trunkline_ollama.adapter import OllamaAdapter
from trunkline_ollama.model_pull import PullProgress
from trunkline_ollama.settings import OllamaSettings

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(messages=(Message(id="msg_1", role="user", content="Hi"),), model="qwen3:8b")


async def ask(programs: list[str], *, pull: bool, model: str = "qwen3:8b") -> tuple[list[ModelEvent], Any]:
    """The events, and the paths of the requests, or the error."""
    async with ScriptedProvider(programs).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, pull=pull))
        request = ModelRequest(messages=REQUEST.messages, model=model)
        events: list[ModelEvent] = []
        try:
            async for event in adapter.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        finally:
            await adapter.aclose()
        return events, [one.path for one in provider.requests]


async def test_a_missing_model_is_told_with_the_command_that_pulls_it() -> None:
    """Nothing is pulled unless the settings say so."""
    events, error = await ask(["status:404"], pull=False)
    assert events == []
    assert (error.fault, 'run "ollama pull qwen3:8b"' in error.detail) == ("refused", True)


async def test_a_missing_model_is_pulled_and_then_answers(caplog: pytest.LogCaptureFixture) -> None:
    """A person sees the percent as reasoning; the log has it, too. It is no thinking of the model."""
    caplog.set_level(logging.INFO)
    events, paths = await ask(["status:404", "think:Hm. ;; say:Done."], pull=True)
    assert paths == ["/api/chat", "/api/pull", "/api/chat"]
    shown = "".join(event.text for event in events if isinstance(event, Reasoning)).splitlines()
    assert shown[:2] == ["Pulling qwen3:8b: 0 % of 5.2 GB", "Pulling qwen3:8b: 10 % of 5.2 GB"]
    assert shown[10:] == [
        "Pulling qwen3:8b: 100 % of 5.2 GB",
        "Pulling qwen3:8b: verifying sha256 digest",
        "Pulling qwen3:8b: writing manifest",
        "Pulled qwen3:8b.",
        "Hm.",
    ]
    assert "".join(event.text for event in events if isinstance(event, Text)) == "Done."
    [done] = [event for event in events if isinstance(event, ReasoningDone)]
    assert done.block.data == {"thinking": "Hm."}
    assert "Pulling qwen3:8b: 50 % of 5.2 GB" in caplog.messages


async def test_a_missing_model_is_refused_before_anything_is_shown() -> None:
    """So that a fallback may answer."""
    events, error = await ask(["status:404"], pull=True, model=UNKNOWN_MODEL)
    assert events == []
    assert error.fault == "refused"
    assert "file does not exist" in error.detail


async def test_a_model_that_is_missing_after_its_pull_is_not_pulled_again() -> None:
    """One pull for each request."""
    _, error = await ask(["status:404", "status:404"], pull=True)
    assert "ollama pull" in error.detail


async def test_an_answer_that_has_begun_is_not_repeated() -> None:
    """Whatever the server reports in the middle of it."""
    data = json_line({"message": {"content": "Half"}}) + json_line({"error": "model 'x' not found"})
    async with ScriptedProvider(lambda heard: (Raw(data),)).serving() as provider:
        adapter = OllamaAdapter(OllamaSettings(base_url=provider.address, pull=True))
        with pytest.raises(ModelError):
            [event async for event in adapter.stream(REQUEST)]
        await adapter.aclose()
    assert [request.path for request in provider.requests] == ["/api/chat"]


async def test_vectors_pull_their_model() -> None:
    """As answers do, if the settings say so."""
    paths: list[str] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        paths.append(request.url.path)
        if request.url.path == "/api/pull":
            return httpx2.Response(200, content=json_line(part(1000)) + json_line({"status": "success"}))
        if paths.count("/api/embed") == 1:
            return httpx2.Response(
                404, json={"error": 'model "embeddinggemma" not found, try pulling it first'}
            )
        return httpx2.Response(200, json={"embeddings": [[1.0]]})

    for pull in (False, True):
        paths.clear()
        adapter = OllamaAdapter(OllamaSettings(base_url="http://127.0.0.1:9", pull=pull))
        adapter._client = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))
        if pull:
            assert (await adapter.embed(["sea"])).vectors == ((1.0,),)
        else:
            with pytest.raises(ModelError, match="ollama pull embeddinggemma"):
                await adapter.embed(["sea"])
        await adapter.aclose()
    assert paths == ["/api/embed", "/api/pull", "/api/embed"]


# Progress ----------------------------------------------------------------------------------------------------


def progress_of(*lines: dict[str, Any], seconds: float = 0.0) -> tuple[PullProgress, list[str]]:
    """The progress after these lines, one every so many seconds, and what it told."""
    now = iter(1000.0 + seconds * number for number in range(1000))
    progress = PullProgress("m", "", clock=lambda: next(now))
    return progress, [text for line in lines if (text := progress.feed(json_line(line)))]


def part(completed: int, total: int = 1000, digest: str = "a") -> dict[str, Any]:
    return {"status": "pulling", "digest": digest, "total": total, "completed": completed}


def test_a_slow_pull_is_told_every_quarter_of_a_minute() -> None:
    """So that it does not count as a silent model."""
    _, told = progress_of(*(part(number) for number in range(6)), seconds=10)
    assert told == ["Pulling m: 0 % of 1 kB\n"] * 3


def test_files_are_added_up() -> None:
    """A model has several files; the percent is that of all that are known."""
    _, told = progress_of(part(500), part(1000), part(0, 3000, "b"), part(3000, 3000, "b"))
    assert told == ["Pulling m: 50 % of 1 kB\n", "Pulling m: 100 % of 1 kB\n"]


def test_a_pull_that_ends_early_is_an_error() -> None:
    """As after a broken connection of the server."""
    progress, _ = progress_of(part(500))
    with pytest.raises(ModelError) as caught:
        progress.finish()
    assert caught.value.fault == "interrupted"


def test_a_model_that_was_there_already_tells_nothing() -> None:
    """Another request has pulled it meanwhile."""
    progress, told = progress_of({"status": "pulling manifest"}, {"status": "success"})
    progress.finish()
    assert told == []
