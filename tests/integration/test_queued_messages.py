"""A message behind a turn that waits for a person: its watchers receive the question that it waits for, and the end
of the wait."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from openai import AsyncOpenAI

from tests.block_client import BlockClient, stopped_at_the_end
from trunkline.contracts.approvals.messages import Approval
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider

from .approval_helpers import asked_by, asking, waiting, write

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Platform]:
    """One platform for all tests of the module."""
    with ScriptedProvider() as provider:
        async with platform(config=asking(provider.url)) as one:
            yield one


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own, which leaves no question."""
    async with stopped_at_the_end(shared) as client:
        yield client


async def decide(running: BlockClient, approval: Approval, *, allow: bool) -> None:
    await running.gateway.decide(approval.turn, approval.call, approval.call_hash, allow=allow)


def http_of(running: BlockClient) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {running.token}"}
    return httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60)


def openai_of(running: BlockClient) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, timeout=60)


async def test_the_stream_reports_the_question_it_waits_for(running: BlockClient) -> None:
    """The first event names the question and the path at which it is decided; deciding there lets the answer come."""
    accepted, approval = await asked_by(running, write("a.md"))
    async with (
        http_of(running) as http,
        http.stream(
            "POST", f"/conversations/{accepted.conversation}/messages", json={"content": "say:me too"}
        ) as response,
    ):
        lines = response.aiter_lines()
        reported: dict[str, Any] = {}
        names: list[str] = []
        async for line in lines:
            name, _, value = line.partition(": ")
            if name == "event":
                names.append(value)
            elif name == "data" and names == ["status"]:
                reported = json.loads(value)
                decision = {"hash": reported["data"]["approval"]["hash"], "allow": True}
                assert (await http.post(reported["data"]["decision"], json=decision)).status_code == 202
    assert reported["name"] == "waiting"
    assert reported["data"]["turn"] == accepted.turn
    assert reported["data"]["approval"]["approval"] == approval.id
    assert f"trunkline approvals approve {approval.id}" in reported["text"]
    assert names[0] == "status" and names[-1] == "done" and "text-delta" in names
    stored = (await running.gateway.conversation(accepted.conversation)).messages
    assert [message.content for message in stored][-2:] == ["say:me too", "me too"]


async def test_a_queued_message_is_reported_when_the_turn_asks_later(running: BlockClient) -> None:
    """The earlier turn was still running when the message arrived: the question is reported all the same, once."""
    first = await running.send("slow:20:50 ;; " + write("a.md"))
    async with (
        http_of(running) as http,
        http.stream(
            "POST", f"/conversations/{first.conversation}/messages", json={"content": "say:me too"}
        ) as response,
    ):
        received = b""
        async for chunk in response.aiter_bytes():
            received += chunk
            if received.count(b'"waiting"') == 1 and b"event: done" not in received:
                for one in await running.gateway.waiting():
                    path = f"/api/turns/{one.turn}/calls/{one.call}/decision"
                    await http.post(path, json={"hash": one.call_hash, "allow": False})
    assert received.count(b'"waiting"') == 1 and b"event: done" in received
    stored = (await running.gateway.conversation(first.conversation)).messages
    assert stored[-1].content == "me too"


async def test_an_openai_client_gets_an_answer_at_once(running: BlockClient) -> None:
    """The answer names the question that the message waits for. The message stays: it is answered and stored once
    that is decided."""
    accepted, approval = await asked_by(running, write("a.md"))
    async with openai_of(running) as client:
        answer = await client.chat.completions.create(
            model=running.block,
            messages=[{"role": "user", "content": "say:me too"}],
            extra_headers={"X-Conversation-ID": accepted.conversation},
        )
    [choice] = answer.choices
    assert choice.finish_reason == "stop"
    assert "is behind another, which waits for approval" in (choice.message.content or "")
    assert f"(trunkline approvals approve {approval.id})" in (choice.message.content or "")
    await decide(running, approval, allow=True)
    with anyio.fail_after(60):
        while True:
            stored = (await running.gateway.conversation(accepted.conversation)).messages
            if stored[-1].content == "me too":
                break
            await anyio.sleep(0.05)


async def test_an_openai_stream_reports_the_queue_and_continues(running: BlockClient) -> None:
    """The same as text, and the answer follows."""
    accepted, approval = await asked_by(running, write("a.md"))
    async with openai_of(running) as client:
        stream = await client.chat.completions.create(
            model=running.block,
            messages=[{"role": "user", "content": "say:me too"}],
            extra_headers={"X-Conversation-ID": accepted.conversation},
            stream=True,
        )
        text = ""
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if approval.id in text and await running.gateway.waiting():
                await decide(running, approval, allow=False)
    assert text.startswith("[This message is behind another, which waits for approval: ")
    assert text.endswith("me too")


async def test_a_chat_without_a_header_continues_where_it_waits(running: BlockClient) -> None:
    """The client sends the received status back, and its next message is queued behind the first in the same
    conversation."""
    async with openai_of(running) as client:
        messages: list[Any] = [{"role": "user", "content": write("a.md")}]
        raw = await client.chat.completions.with_raw_response.create(model=running.block, messages=messages)
        [approval] = await waiting(running)
        said = raw.parse().choices[0].message.content or ""
        assert approval.id in said
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "say:me too"}]
        again = await client.chat.completions.with_raw_response.create(model=running.block, messages=messages)
    assert again.headers["x-conversation-id"] == raw.headers["x-conversation-id"] == approval.conversation
    assert "is behind another" in (again.parse().choices[0].message.content or "")


async def test_a_response_behind_an_approval(running: BlockClient) -> None:
    """A whole response is returned with the approval and in progress; a stream shows it and continues; a response in
    the background is queued, and its stream is that of its own turn."""
    accepted, approval = await asked_by(running, write("a.md"))
    asked: dict[str, Any] = {"model": running.block, "conversation": accepted.conversation}
    async with openai_of(running) as client:
        whole = await client.responses.create(input="say:one", **asked)
        assert (whole.status, f"approvals approve {approval.id}" in whole.output_text) == (
            "in_progress",
            True,
        )
        stream = await client.responses.create(input="say:two", stream=True, **asked)
        later = await client.responses.create(input="say:three", background=True, **asked)
        assert later.status == "queued"
        assert (await client.responses.retrieve(later.id)).status == "queued"
        events = []
        async for event in stream:
            events.append(event)
            if event.type == "response.output_item.done" and len(events) < 12:
                await decide(running, approval, allow=True)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        texts = [part.text for item in events[-1].response.output for part in item.content]
        assert f"approvals approve {approval.id}" in texts[0] and texts[1:] == ["two"]
        rest = await client.responses.retrieve(later.id, stream=True)
        kinds = [event.type async for event in rest]
        assert kinds.count("response.output_item.done") == 1 and kinds[-1] == "response.completed"
        assert (await client.responses.retrieve(whole.id)).output_text == "one"
