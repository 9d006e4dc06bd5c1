"""A client that sends its whole transcript with every request continues one conversation: exactly, or not at all."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from openai import AsyncOpenAI

import trunkline
from tests.block_client import client_of_new_block
from tests.other_users import share
from tests.support.processes import process_platform
from trunkline.api.gateway import Identity
from trunkline.contracts.conversations.messages import ConversationSummary, ListConversations
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.client import Memory
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}


def configured(provider: ScriptedProvider, **more: Any) -> dict[str, Any]:
    return {**provider.settings, **more}


class Chat:
    """A client's chat with a block: it keeps the messages, and sends them all."""

    def __init__(self, client: AsyncOpenAI, *messages: Any, block: str = "main") -> None:
        self.client = client
        self.block = block
        self.messages: list[Any] = list(messages)
        self.conversation = ""

    async def say(self, *said: Any, stream: bool = False, **given: Any) -> str:
        self.messages += [{"role": "user", "content": one} if isinstance(one, str) else one for one in said]
        raw = await self.client.chat.completions.with_raw_response.create(
            model=self.block, messages=list(self.messages), stream=stream, **given
        )
        self.conversation = raw.headers["x-conversation-id"]
        message = await self._streamed(raw.parse()) if stream else raw.parse().choices[0].message.model_dump()
        self.messages.append({name: value for name, value in message.items() if value is not None})
        return str(message["content"])

    async def _streamed(self, chunks: Any) -> dict[str, Any]:
        parts = [chunk.choices[0].delta.content or "" async for chunk in chunks]
        return {"role": "assistant", "content": "".join(parts)}

    def copy(self) -> "Chat":
        return Chat(self.client, *self.messages, block=self.block)


class Harness:
    def __init__(
        self, running: Platform, provider: ScriptedProvider, client: AsyncOpenAI, block: str = "main"
    ) -> None:
        self.platform, self.provider, self.client = running, provider, client
        self.block = block

    def chat(self, *messages: Any) -> Chat:
        return Chat(self.client, *messages, block=self.block)

    async def listed(self, **query: Any) -> tuple[ConversationSummary, ...]:
        return (
            await self.platform.gateway.conversations(ListConversations(block=self.block, **query))
        ).conversations

    async def stored(self, conversation: str) -> list[str]:
        view = await self.platform.gateway.conversation(conversation, include_tools=True)
        return [message.content for message in view.messages]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The messages of the last request that left, without the system's."""
        return [one for one in self.provider.answer_requests[-1].body["messages"] if one["role"] != "system"]


@asynccontextmanager
async def desks(home: Path | None = None, plugins: Any = (), **config: Any) -> AsyncIterator[Harness]:
    with ScriptedProvider() as provider:
        async with (
            platform(home, plugins=plugins, config=configured(provider, **config)) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, timeout=60) as client,
        ):
            yield Harness(running, provider, client)


async def until(true: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while True:
            if await true():
                return
            await anyio.sleep(0.05)


async def found(memory: Memory, words: str) -> bool:
    return bool((await memory.search(words)).hits)


async def gone(harness: Harness) -> bool:
    return not await harness.listed(one_shot=True)


async def asked(provider: ScriptedProvider, words: str) -> bool:
    return words in str(provider.requests[-1].body)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Harness]:
    """One platform for the tests that need no plugin."""
    async with desks() as one:
        yield one


@pytest.fixture
async def harness(shared: Harness) -> Harness:
    """The shared one, with a block that no other test uses."""
    block = (await client_of_new_block(shared.platform)).block
    return Harness(shared.platform, shared.provider, shared.client, block)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_is_one_conversation_and_grows_by_new_messages(harness: Harness, stream: bool) -> None:
    """Whole or streamed: five requests, one conversation, each message stored once, each told to the model once."""
    chat = harness.chat({"role": "system", "content": "Be kind."})
    for number in range(5):
        await chat.say(f"say:answer {number}", stream=stream)
    said = [one for n in range(5) for one in (f"say:answer {n}", f"answer {n}")]
    assert await harness.stored(chat.conversation) == ["Be kind.", *said]
    assert [one["content"] for one in harness.sent] == said[:-1]
    assert [(one.id, one.message_count) for one in await harness.listed()] == [(chat.conversation, 11)]


async def test_single_requests_are_neither_listed_nor_found(harness: Harness) -> None:
    """A title's request or another single one is stored under its id. It is listed and found once the client
    continues it."""
    chat = harness.chat()
    await chat.say("say:the heliotrope blooms")
    assert await harness.listed() == ()
    [kept] = await harness.listed(one_shot=True)
    assert (kept.id, kept.one_shot) == (chat.conversation, True)
    assert await harness.stored(chat.conversation) == ["say:the heliotrope blooms", "the heliotrope blooms"]
    memory = block_memory(harness.platform.bus, harness.block, "test")
    assert not await found(memory, "heliotrope")
    assert not await found(memory, "eliotrop")  # as the text stands
    await chat.say("say:yes")
    [one] = await harness.listed()
    assert (one.id, one.one_shot) == (chat.conversation, False)
    await until(lambda: found(memory, "heliotrope"))


async def test_chats_with_the_same_beginning_are_separate(harness: Harness) -> None:
    """Two of them, and an answer asked for again: each has a conversation of its own that holds its messages alone."""
    first, second = harness.chat(), harness.chat()
    for chat in (first, second):
        await chat.say("say:hello")
    again = first.copy()
    await first.say("say:one")
    await second.say("say:two")
    await again.say("say:three")
    await first.say("say:end")
    stored = {tuple(await harness.stored(chat.conversation)) for chat in (first, second, again)}
    begin = ("say:hello", "hello")
    assert stored == {
        (*begin, "say:one", "one", "say:end", "end"),
        (*begin, "say:two", "two"),
        (*begin, "say:three", "three"),
    }
    assert len(await harness.listed()) == 3
    assert all(not one.one_shot for one in await harness.listed())


async def test_a_fork_includes_results_of_our_tools(harness: Harness) -> None:
    """The client never received our call; a client that continues the chat, or continues it differently, still gets
    its result."""
    chat = harness.chat()
    await chat.say('call:list_directory {"path": "."} ;; say:Listed.')
    other = chat.copy()
    for one in (chat, other):
        await one.say("say:go")
        assert [m["role"] for m in harness.sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert chat.conversation != other.conversation
    origin = (await harness.platform.gateway.conversation(other.conversation)).summary.forked_from
    assert origin is not None and origin.conversation == chat.conversation


async def test_our_results_are_not_lost_beside_the_clients(harness: Harness) -> None:
    """A step that calls a tool of ours and one of the client's continues with both results, and is stored once."""
    chat = harness.chat()
    await chat.say('parallel:list_directory {"path": "."} weather {} ;; quote', tools=[WEATHER])
    call = chat.messages[-1]["tool_calls"][0]["id"]
    text = await chat.say({"role": "tool", "tool_call_id": call, "content": "rain"}, tools=[WEATHER])
    assert "weather said: rain" in text and "list_directory said:" in text
    assert len(await harness.stored(chat.conversation)) == 5


async def test_simultaneous_chats_of_one_client_are_separate(harness: Harness) -> None:
    """One of the chats gets the existing conversation, each other one a new one; no chat contains another's
    messages."""
    chat = harness.chat()
    await chat.say("say:hello")
    chats = [chat.copy() for _ in range(8)]
    async with anyio.create_task_group() as tasks:
        for number, one in enumerate(chats):
            tasks.start_soon(one.say, f"say:number {number}")
    assert len({one.conversation for one in chats}) == 8
    assert chat.conversation in {one.conversation for one in chats}
    for number, one in enumerate(chats):
        expected = ["say:hello", "hello", f"say:number {number}", f"number {number}"]
        assert await harness.stored(one.conversation) == expected


async def test_a_changed_transcript_starts_a_new_conversation(harness: Harness) -> None:
    """An answer, a question or the instructions that differ by a letter are another transcript."""
    chat = harness.chat()
    await chat.say("say:hello")
    for at, content in ((0, "say:hello!"), (1, "hallo")):
        other = chat.copy()
        other.messages[at] = {**other.messages[at], "content": content}
        await other.say("say:more")
        assert other.conversation != chat.conversation
        assert await harness.stored(other.conversation) == [m["content"] for m in other.messages]
    trimmed = chat.copy()
    trimmed.messages[1] = {**trimmed.messages[1], "content": " hello\n"}
    await trimmed.say("say:more")
    assert trimmed.conversation == chat.conversation


async def test_a_chat_ignores_messages_of_another_channel(harness: Harness) -> None:
    """A message sent at the terminal does not belong to the client: its chat continues without it."""
    chat = harness.chat()
    await chat.say("say:hello")
    elsewhere = chat.conversation
    await harness.platform.say("say:aside", conversation=elsewhere)
    await chat.say("say:more")
    assert chat.conversation != elsewhere
    assert await harness.stored(chat.conversation) == ["say:hello", "hello", "say:more", "more"]


async def test_a_deleted_conversation_starts_again(harness: Harness) -> None:
    """The client still has its messages."""
    chat = harness.chat()
    await chat.say("say:hello")
    next(harness.platform.home.memory.rglob(f"{chat.conversation}.jsonl")).unlink()
    await until(lambda: gone(harness))
    await chat.say("say:more")
    assert await harness.stored(chat.conversation) == ["say:hello", "hello", "say:more", "more"]


class Guests:
    """Two people, each with a key."""

    name = "guests"

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        _, _, name = headers.get("authorization", "").partition(" ")
        return Identity(id=name) if name in ("ann", "bob") else None

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[Any]:
        return [self]


async def test_two_people_with_the_same_messages(tmp_path: Path) -> None:
    """No client gets another's conversation, whatever messages it sends."""
    async with desks(tmp_path, plugins=[Guests()]) as harness:
        await share(harness.platform.bus)
        chats = [Chat(harness.client.with_options(api_key=name)) for name in ("ann", "bob")]
        await chats[0].say("say:hello")
        theirs = Chat(chats[1].client, *chats[0].messages)
        await theirs.say("say:more")
        assert theirs.conversation != chats[0].conversation
        await chats[0].say("say:mine")
        assert await harness.stored(chats[0].conversation) == ["say:hello", "hello", "say:mine", "mine"]


@pytest.mark.parametrize("continued", [False, True])
async def test_a_clients_retry_starts_no_second_turn(harness: Harness, continued: bool) -> None:
    """Its answer comes later than the client waits, so it sends the request again and is given the same turn's. A
    person's second request with the same words is another one."""
    chat = harness.chat()
    if continued:
        await chat.say("say:hello")
    before = len(harness.provider.answer_requests)
    chat.client = harness.client.with_options(timeout=0.7, max_retries=5)
    again = chat.copy()
    answer = await chat.say("slow:40:50")
    assert answer.endswith("word-40") and len(harness.provider.answer_requests) == before + 1
    assert await harness.stored(chat.conversation) == [one["content"] for one in chat.messages]
    assert await again.say("slow:40:50") == answer
    assert again.conversation != chat.conversation and len(harness.provider.answer_requests) == before + 2


async def test_kills_between_and_within_requests() -> None:
    """The gateway killed after each answer and in one: the chat stays one conversation, and nothing is stored twice."""
    with ScriptedProvider() as provider:
        async with process_platform(config=configured(provider)) as running, AsyncExitStack() as clients:

            async def connect() -> AsyncOpenAI:
                client = AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, timeout=60)
                return await clients.enter_async_context(client)

            chat = Chat(await connect())
            conversations = set()
            for number in range(3):
                await chat.say(f"say:answer {number}")
                conversations.add(chat.conversation)
                running.kill("gateway")
                await running.restart("gateway")
                chat.client = await connect()
            assert len(conversations) == 1
            cut = chat.copy()
            with pytest.raises(Exception):  # noqa: B017  whichever way the client says that it was cut off
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cut.say, "slow:100:50")
                    await until(lambda: asked(provider, "slow:100:50"))
                    running.kill("gateway")
            await running.restart("gateway")
            chat.client = await connect()
            await chat.say("say:after")
            view = await running.gateway.conversation(chat.conversation)
            said = [f"{word}answer {n}" for n in range(3) for word in ("say:", "")]
            assert [message.content for message in view.messages] == [*said, "say:after", "after"]
