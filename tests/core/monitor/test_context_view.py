"""What a model was sent in a turn is told from the journal, part by part, with the tokens that the vendor counted."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from trunkline.contracts.conversations.messages import ToolCall, Usage
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.adapter import Call, Finish, ModelAdapter, ModelRequest
from trunkline.contracts.turns.context import ContextPart, TurnInfo
from trunkline.contracts.turns.context_view import ContextView, SentPart
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.workers.channels.context_text import describe_context, describe_texts
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio

COUNTED = Usage(input_tokens=1_003, output_tokens=2, cached_tokens=400)


class Recall:
    """A context source whose parts say how often it was asked."""

    name = "counts"

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, turn: TurnInfo) -> list[ContextPart]:
        self.asked += 1
        return [
            ContextPart(source="rules", text="Be brief."),
            ContextPart(source="own", text="Words of the plugin.", trusted=True, priority=90),
            ContextPart(source="recalled", text=f"Asked {self.asked} times.", changing=True),
        ]


class ContextPlugin:
    """A model that calls a tool for "look", and counts tokens unless the message is "uncounted"."""

    def __init__(self) -> None:
        self.model, self.source = ScriptedModel(self.answer), Recall()

    @trunkline.hookimpl
    def trunkline_models(self) -> list[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_context_sources(self) -> list[Recall]:
        return [self.source]

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def look() -> str:
            """Look around."""
            return "a sea"

        return [look]

    def answer(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.content == "look":
            return [Call(ToolCall(id="c", name="look"))]
        if last.content == "read":
            return [Call(ToolCall(id="c", name="read_file", arguments={"path": "a.txt"}))]
        usage = Usage() if last.content == "uncounted" else COUNTED
        return ["yes", Finish(usage=usage, model="scripted-1")]

    def running(self, home: Path) -> Any:
        config = {"runtime.provider_adapter": self.model.name, "monitor.context_window": 200_000}
        return platform(home, plugins=[self], config=config)


def kinds(view: ContextView) -> list[str]:
    return list(dict.fromkeys(part.kind for part in view.parts))


def texts(view: ContextView, *kinds: str) -> list[str]:
    return [part.text for part in view.parts if part.kind in kinds]


def sent(request: ModelRequest) -> list[str]:
    return [message.content for message in request.messages]


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[ContextPlugin, Platform]]:
    """One platform for the tests that do not restart it."""
    plugin = ContextPlugin()
    async with plugin.running(tmp_path_factory.mktemp("context")) as running:
        yield plugin, running


@pytest.fixture
def plugin(shared: tuple[ContextPlugin, Platform]) -> ContextPlugin:
    """The plugin of the shared platform."""
    return shared[0]


@pytest.fixture
async def client(shared: tuple[ContextPlugin, Platform]) -> BlockClient:
    """A client of the shared platform, with a block of its own."""
    return await client_of_new_block(shared[1])


async def test_the_view_has_exactly_what_the_model_was_sent(
    plugin: ContextPlugin, client: BlockClient
) -> None:
    """The texts of the parts, put together, are the messages of the last request, and the tools are those that were
    offered, in their order. Each part of the context has its source, marked or not."""
    first = await client.say("hello")
    answer = await client.say("look", conversation=first.accepted.conversation)
    view = await client.gateway.context(answer.accepted.conversation, texts=True)
    request = plugin.model.requests[-1]
    assert (view.turn, view.step, view.model) == (answer.accepted.turn, 1, "scripted")
    assert [part.name for part in view.parts if part.kind == "tool"] == [tool.name for tool in request.tools]
    constant, *messages = sent(request)
    assert "\n\n".join(texts(view, "bootstrap", "context")) == constant
    assert texts(view, "history", "recall", "message", "turn") == messages
    assert kinds(view) == ["tool", "bootstrap", "context", "history", "recall", "message", "turn"]
    assert {"own", "rules"} <= {part.name for part in view.parts if part.kind == "context"}
    assert [part.name for part in view.parts if part.kind == "turn"] == ["assistant", "tool look"]


async def test_the_parts_share_the_tokens_that_the_vendor_counted(client: BlockClient) -> None:
    """They add up to its count, and the cached tokens are at the beginning. Without a count the sizes are estimated."""
    answer = await client.say("hello")
    view = await client.gateway.context(answer.accepted.conversation)
    uncounted = await client.say("uncounted", conversation=answer.accepted.conversation)
    estimated = await client.gateway.context(answer.accepted.conversation, uncounted.accepted.turn)
    assert (view.input_tokens, view.cached_tokens) == (1_003, 400)
    assert sum(part.tokens for part in view.parts) == 1_003
    assert sum(part.cached for part in view.parts) == 400
    # A part that is too small for a token of its own is neither cached nor uncached.
    full = [part.cached == part.tokens for part in view.parts if part.tokens]
    assert full[0] and not full[-1] and full == sorted(full, reverse=True)
    assert not any(part.text for part in view.parts)
    assert estimated.input_tokens == 0 < min(part.tokens for part in estimated.parts)
    assert "counted by the vendor" in describe_context(view)
    assert "all of them estimated" in describe_context(estimated)


async def test_an_earlier_turn_is_told_from_its_journal(tmp_path: Path) -> None:
    """Files that changed since, later messages and a restart change nothing; no source is asked again."""
    plugin = ContextPlugin()
    soul = tmp_path / "memory" / "identity" / "SOUL.md"
    soul.parent.mkdir(parents=True)
    soul.write_text("You are kind.\n")
    async with plugin.running(tmp_path) as running:
        first = await running.say("one")
        before = await running.gateway.context(first.accepted.conversation, texts=True)
    soul.write_text("You are strict.\n")
    async with plugin.running(tmp_path) as running:
        await running.say("two", conversation=first.accepted.conversation)
        asked = plugin.source.asked
        after = await running.gateway.context(first.accepted.conversation, first.accepted.turn, texts=True)
        assert plugin.source.asked == asked
    assert after == before
    assert any("You are kind." in part.text for part in after.parts)


async def test_the_view_of_a_turn_shows_shortened_results(plugin: ContextPlugin, client: BlockClient) -> None:
    """The history in the view is the one that the model was sent, also with old results."""
    workspace = client.workspace
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "a.txt").write_text("a line of text\n" * 1_500)
    conversation = None
    for _ in range(5):
        conversation = (await client.say("read", conversation=conversation)).accepted.conversation
    await client.say("hello", conversation=conversation)
    assert conversation is not None
    view = await client.gateway.context(conversation, texts=True)
    assert texts(view, "history", "recall", "message") == sent(plugin.model.requests[-1])[1:]
    assert "An old result, shortened" in describe_texts(view)


async def test_a_turn_without_a_model_and_an_unknown_one_are_refused(client: BlockClient) -> None:
    """The sentence says which it is. A turn of another conversation is not shown."""
    command = await client.say("/tool look")
    other = await client.say("hello")
    conversation = command.accepted.conversation
    for turn, words in [
        (None, "No turn of the conversation asked a model"),
        (command.accepted.turn, "asked no model"),
        (other.accepted.turn, "no journal of turn"),
        ("no id", "There is no such turn"),
    ]:
        with pytest.raises(RemoteFault, match=words) as caught:
            await client.gateway.context(conversation, turn)
        assert caught.value.code == "not_found"
    with pytest.raises(RemoteFault, match="no such conversation"):
        await client.gateway.context("conv_" + "a" * 26)


async def test_commands_after_a_turn_do_not_hide_it(client: BlockClient) -> None:
    """Without a turn, the last one that asked a model is shown."""
    asked = await client.say("hello")
    conversation = asked.accepted.conversation
    for command in ("/tool look", "/compact", "/compact undo"):
        await client.say(command, conversation=conversation)
        assert (await client.gateway.context(conversation)).turn == asked.accepted.turn


async def test_a_clients_transcript_and_instructions_are_told(client: BlockClient) -> None:
    """The transcript is the history, and the instructions are a part of their own."""
    first = await client.say("hello")
    stored = await client.gateway.conversation(first.accepted.conversation)
    message = SendMessage(content="more", history=stored.messages, instructions="Rhyme.", block=client.block)
    accepted = await client.gateway.send(message)
    await client.answer(accepted)
    view = await client.gateway.context(accepted.conversation, texts=True)
    assert texts(view, "instructions") == ["Rhyme."]
    assert texts(view, "history") == ["hello", "yes"]


def test_a_history_is_counted_where_it_is_not_listed() -> None:
    """A channel shows one line for it; the command lists each message."""
    parts = (
        SentPart(kind="tool", name="look", tokens=10, cached=10),
        *(SentPart(kind="history", name="user", tokens=5) for _ in range(3)),
        SentPart(kind="message", name="user", tokens=7),
    )
    view = ContextView(conversation="c", turn="t", step=0, model="a/b", window=100, parts=parts)
    assert describe_context(view, history=False).splitlines()[-4:] == [
        "   TOKENS   SHARE    CACHED  PART",
        "       10   10.0%        10  tools: look",
        "       15   15.0%            history (3)",
        "        7    7.0%            message",
    ]
    assert describe_context(view).count("  user") == 3
