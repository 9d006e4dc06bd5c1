"""Counts of tokens, vectors, and when a refused request may be sent again."""

import pytest

from trunkline.api.model import ModelError
from trunkline.testing.adapter_suite import request_for
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_openai.adapter import MAX_CHARS, MAX_TEXTS, OpenAIAdapter
from trunkline_openai.settings import VENDOR_SETTINGS, OpenAISettings

pytestmark = pytest.mark.anyio


async def test_openai_counts_the_tokens_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer. The request has only the fields that the count takes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with ScriptedProvider() as provider:
        monkeypatch.setattr(OpenAISettings, "url", property(lambda self: provider.url))
        adapter = OpenAIAdapter(OpenAISettings(model="gpt-5"))
        assert await adapter.count_tokens(request_for("one two three")) == 5
        await adapter.aclose()
    [asked] = provider.requests
    assert asked.path == "/v1/responses/input_tokens"
    assert set(asked.body) == {"model", "input", "tools"}


async def test_other_servers_do_not_count() -> None:
    """Nothing is sent."""
    adapter = OpenAIAdapter(OpenAISettings(base_url="http://127.0.0.1:9/v1"))
    assert await adapter.count_tokens(request_for("one")) is None


async def test_many_texts_are_several_requests() -> None:
    """The vectors are in the order of the texts, whatever the batches are."""
    texts = [f"text {number}" for number in range(MAX_TEXTS + 3)]
    with ScriptedProvider() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, embedding_dimensions=3))
        found = await adapter.embed(texts)
        vectors = found.vectors
        long = (await adapter.embed(["x" * MAX_CHARS, "y", "z" * MAX_CHARS])).vectors
        assert (await adapter.embed(texts[-2:])).vectors == vectors[-2:]
        assert (await adapter.embed([])).vectors == ()
        longer = await adapter.embed(["x"], dimensions=5)
        await adapter.aclose()
    assert (found.usage.input_tokens, found.model) == (2 * len(texts), "text-embedding-3-small")
    assert [len(one) for one in longer.vectors] == [5]
    assert (len(vectors), {len(one) for one in vectors}, len(long)) == (len(texts), {3}, 3)
    sizes = [len(request.body["input"]) for request in provider.requests]
    assert sizes == [MAX_TEXTS, 3, 1, 1, 1, 2, 1]
    assert {request.body["dimensions"] for request in provider.requests[:-1]} == {3}


async def test_a_local_server_embeds_by_its_own_model() -> None:
    """The first that it lists with embed in its name; without dimensions the field is not sent."""
    with ScriptedProvider(models=("qwen3:8b", "nomic-embed-text")) as provider:
        adapter = OpenAIAdapter(VENDOR_SETTINGS["lmstudio"](base_url=provider.url))
        assert len((await adapter.embed(["x"])).vectors[0]) == 8
        await adapter.aclose()
    body = provider.answer_requests[0].body
    assert (body["model"], "dimensions" in body) == ("nomic-embed-text", False)


async def test_the_time_until_the_next_request_is_passed_on() -> None:
    """Status 429 with Retry-After says when another request is accepted; other errors say nothing."""
    with ScriptedProvider() as provider:
        adapter = OpenAIAdapter(OpenAISettings(base_url=provider.url, model="m"))
        for program, expected in (("status:429", 7.0), ("status:500", None)):
            with pytest.raises(ModelError) as caught:
                [event async for event in adapter.stream(request_for(program))]
            assert caught.value.retry_after == expected
        await adapter.aclose()


async def test_a_server_that_is_away_is_an_error_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for answers."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    adapter = OpenAIAdapter(OpenAISettings(base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(ModelError) as caught:
        await adapter.embed(["x"])
    await adapter.aclose()
    assert caught.value.fault == "unavailable"
    assert "sk-canary" not in str(caught.value)
