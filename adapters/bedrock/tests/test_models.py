"""The lists of models, vectors and counts of tokens."""

import pytest

from trunkline import Message
from trunkline.api.model import ModelError, ModelRequest
from trunkline.api.tool import ToolSchema
from trunkline.testing.adapter_suite import conversation_after_calls
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bedrock.adapter import BedrockAdapter
from trunkline_bedrock.embeddings import batches, read_vectors
from trunkline_bedrock.settings import BedrockSettings

pytestmark = pytest.mark.anyio

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
TITAN, COHERE = "amazon.titan-embed-text-v2:0", "cohere.embed-v4:0"
SAID = ModelRequest(messages=(Message(id="msg_1", role="user", content="one two three"),))


def adapter_of(provider: ScriptedProvider, model: str = CLAUDE) -> BedrockAdapter:
    return BedrockAdapter(BedrockSettings(endpoint_url=provider.address, region="us-east-1", model=model))


async def test_foundation_models_and_inference_profiles_are_listed() -> None:
    """With what the vendor lists, and with the limits that are known of Claude and Nova."""
    async with ScriptedProvider(models=(CLAUDE, "meta.llama9", TITAN)).serving() as provider:
        adapter = adapter_of(provider)
        listed = {model.id: model for model in await adapter.models()}
        await adapter.aclose()
    assert list(listed) == [CLAUDE, "meta.llama9", TITAN, f"us.{CLAUDE}", "us.meta.llama9"]
    assert listed[TITAN].abilities == {"embeddings"}
    assert listed["us.meta.llama9"].abilities is None
    for claude in (listed[CLAUDE], listed[f"us.{CLAUDE}"]):
        assert (claude.context_window, claude.max_output) == (200_000, 64_000)
        assert claude.abilities == {"tools", "images", "documents", "reasoning"}


async def test_every_page_of_profiles_is_read() -> None:
    """A page has at most 1000."""
    names = tuple(f"meta.llama{number}" for number in range(1001))
    async with ScriptedProvider(models=names).serving() as provider:
        adapter = adapter_of(provider)
        listed = await adapter.models()
        await adapter.aclose()
    assert len(listed) == 2002


async def test_titan_embeds_one_text_in_each_request() -> None:
    """The vectors are in the order of the texts."""
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)
        texts = [f"text {number}" for number in range(20)]
        found = await adapter.embed(texts)
        again = await adapter.embed(texts[7:8], model=TITAN, dimensions=4)
        with pytest.raises(ModelError, match="one length"):
            await adapter.embed(["x"], model="amazon.titan-embed-text-v1", dimensions=4)
        await adapter.aclose()
        assert len(provider.answer_requests) == 21
        assert {request.path for request in provider.requests} == {
            f"/model/{TITAN.replace(':', '%3A')}/invoke"
        }
    assert len(set(found.vectors)) == 20
    assert (found.usage.input_tokens, found.model) == (40, TITAN)
    assert again.vectors == (found.vectors[7][:4],)


async def test_cohere_embeds_ninety_six_texts_in_each_request() -> None:
    """By a regional id too."""
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)
        found = await adapter.embed([f"text {number}" for number in range(100)], model=f"us.{COHERE}")
        assert (await adapter.embed([], model=COHERE)).vectors == ()
        await adapter.aclose()
        assert [len(request.body["texts"]) for request in provider.requests] in ([96, 4], [4, 96])
    assert len(set(found.vectors)) == 100
    assert found.usage.input_tokens == 200


def test_vectors_by_type_are_read() -> None:
    """Cohere's other form."""
    assert read_vectors(b'{"embeddings": {"float": [[1.5], [2]]}}') == ([(1.5,), (2.0,)], 0)


async def test_a_model_without_vectors_is_refused_with_those_that_have() -> None:
    """Before anything is sent."""
    with pytest.raises(ModelError, match=r"amazon\.titan-embed") as caught:
        list(batches(["x"], CLAUDE))
    assert caught.value.fault == "refused"


async def test_a_failed_request_fails_the_vectors() -> None:
    """The scripted API refuses a blank text."""
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider)
        with pytest.raises(ModelError):
            await adapter.embed(["one", " ", "three"])
        await adapter.aclose()


async def test_tokens_are_counted_for_claude_only() -> None:
    """By the foundation model of a profile."""
    tool = ToolSchema(name="look", description="Look.")
    async with ScriptedProvider().serving() as provider:
        adapter = adapter_of(provider, f"us.{CLAUDE}")
        assert await adapter.count_tokens(SAID) == 3
        asked = ModelRequest(messages=conversation_after_calls(), tools=(tool,))
        assert await adapter.count_tokens(asked) or 0 > 3
        assert provider.requests[0].path == f"/model/{CLAUDE.replace(':', '%3A')}/count-tokens"
        await adapter.aclose()
        other = adapter_of(provider, "amazon.nova-lite-v1:0")
        assert await other.count_tokens(SAID) is None
        await other.aclose()
