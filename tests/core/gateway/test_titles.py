"""Titles of conversations: made from the first message, or set by the owner, which nothing overwrites (PA-F28)."""

from typing import Any

import httpx
import pytest

from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.history import BlameMemory
from trunkline.contracts.memory.subjects import MEMORY_BLAME, MEMORY_READ
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.errors import ErrorCode
from trunkline_bus import RemoteFault

from .conftest import Environment, started_environment, until
from .test_block_changes import Guests
from .test_blocks import talk

pytestmark = pytest.mark.anyio


async def title_of(env: Environment, conversation: str) -> str | None:
    """Return the title, as shown and as listed."""
    shown = (await env.http.get(f"/conversations/{conversation}")).json().get("title")
    page = await env.terminal.conversations(ListConversations(limit=100))
    assert [one.title for one in page.conversations if one.id == conversation] == [shown]
    return shown  # type: ignore[no-any-return]


async def test_the_owner_names_a_conversation(env: Environment) -> None:
    """Shown, listed and found by it; later messages leave it; taken back, the title is made again."""
    conversation = await talk(env, "Where are the beans?")
    assert await title_of(env, conversation) == "Where are the beans?"
    response = await env.http.patch(f"/conversations/{conversation}", json={"title": " Next\n year "})
    assert response.status_code == 200 and response.json()["title"] == "Next year", response.text
    await talk(env, "And the peas?", conversation=conversation)
    assert await title_of(env, conversation) == "Next year"
    found = (await env.http.get("/conversations", params={"search": "next year"})).json()["conversations"]
    assert [one["id"] for one in found] == [conversation]
    assert (await env.terminal.rename_conversation(conversation, None)).title == "Where are the beans?"
    assert await title_of(env, conversation) == "Where are the beans?"
    messages = (await env.terminal.conversation(conversation)).messages
    assert [message.content for message in messages][0::2] == ["Where are the beans?", "And the peas?"]


async def test_the_title_is_the_owners_commit(env: Environment) -> None:
    """History says who gave it; the lines of the conversation stay whose they were."""
    conversation = await talk(env, "hi")
    await env.http.patch(f"/conversations/{conversation}", json={"title": "Mine"})
    path = f"blocks/main/conversations/{conversation[-1].lower()}/{conversation}.jsonl"
    assert '"Mine"' in (await env.bus.call(MEMORY_READ, ReadMemory(path=path))).content
    blamed = await env.bus.call(MEMORY_BLAME, BlameMemory(path=path))
    assert [(span.author, span.message) for span in blamed.spans][:1] == [
        ("owner", f"Conversation {conversation}: title")
    ]
    assert {span.author for span in blamed.spans[1:]} == {"fake"}


async def test_a_conversation_is_named_while_its_first_answer_comes(own_env: Environment) -> None:
    """Nothing of it is stored yet, and once it is, the title stays."""
    own_env.monitor.paused = True
    accepted = await own_env.terminal.send(SendMessage(content="Where are the beans?"))
    renamed = await own_env.http.patch(f"/conversations/{accepted.conversation}", json={"title": "Early"})
    assert renamed.status_code == 200 and renamed.json()["title"] == "Early"
    assert await title_of(own_env, accepted.conversation) == "Early"
    own_env.monitor.paused = False
    async for _ in FeedReader(own_env.bus, accepted.conversation, accepted.turn):
        pass

    async def stored() -> bool:
        return len((await own_env.terminal.conversation(accepted.conversation)).messages) == 2

    await until(stored)
    assert await title_of(own_env, accepted.conversation) == "Early"
    page = await own_env.terminal.conversations(ListConversations())
    assert [one.message_count for one in page.conversations] == [2]


@pytest.mark.parametrize("body", [{}, {"title": 7}, {"title": ""}, {"title": " \n "}, {"title": "x" * 201}])
async def test_titles_that_no_list_can_show(env: Environment, body: dict[str, Any]) -> None:
    """Refused with the field, and nothing is changed."""
    conversation = await talk(env, "hello there")
    response = await env.http.patch(f"/conversations/{conversation}", json=body)
    assert response.status_code == 400 and response.json()["metadata"]["field"] == "/title", response.text
    assert await title_of(env, conversation) == "Hello there"


async def test_a_title_cannot_move_a_terminal_cursor(env: Environment) -> None:
    """A list prints a title as one line without control characters."""
    conversation = await talk(env, "hello there")
    response = await env.http.patch(f"/conversations/{conversation}", json={"title": "a\x1b[2Jb\u202ec"})
    assert response.status_code == 200
    assert not {"\x1b", "\u202e", "\n"} & set(str(await title_of(env, conversation)))


async def test_invalid_titles_are_refused() -> None:
    """The cases are an unknown conversation, one of an archived block, and a caller with whom the block is not
    shared. That caller neither marks the conversation nor reads its branches or its export."""
    async with started_environment(Guests()) as env:
        for unknown in ("conv_nothing", "..%2f", "x" * 300):
            assert (await env.http.patch(f"/conversations/{unknown}", json={"title": "t"})).status_code == 404
        await env.terminal.create_block("garden")
        conversation = await talk(env, "hi", block="garden")
        await env.terminal.archive_block("garden")
        with pytest.raises(RemoteFault) as gone:
            await env.terminal.rename_conversation(conversation, "t")
        assert gone.value.code == ErrorCode.NOT_FOUND
        assert not (env.platform.home.memory / "blocks" / "garden").exists()
        mine = await talk(env, "hi")
        async with httpx.AsyncClient(base_url=env.url, timeout=60) as stranger:
            path = f"/conversations/{mine}"
            assert (await stranger.patch(path, json={"title": "t"})).status_code == 401
            guest = {"x-guest": "yes"}
            assert (await stranger.patch(path, json={"title": "t"}, headers=guest)).status_code == 404
            for mark in ({"pinned": True}, {"archived": True}):
                assert (await stranger.patch(path, json=mark, headers=guest)).status_code == 404
            for part in ("branches", "export"):
                assert (await stranger.get(f"/api{path}/{part}", headers=guest)).status_code == 404
        assert await title_of(env, mine) == "Hi"
        (shown,) = (await env.terminal.conversations(ListConversations(block="main"))).conversations
        assert not shown.pinned and not shown.archived
