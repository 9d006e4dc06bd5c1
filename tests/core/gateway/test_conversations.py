"""PA's Gateway API over HTTP (PA-F26..F28, PA-T9..T11, T16, ARCH-3, ARCH-4)."""

from datetime import UTC, datetime, timedelta

import anyio
import msgspec
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.feed_messages import StatusShown, TextReset, ToolEnded, ToolStarted
from trunkline.workers.gateway.http.schemas.conversation_schemas import ConversationDetail, ConversationList
from trunkline.workers.gateway.http.schemas.event_schemas import (
    DoneData,
    StatusData,
    ToolCallData,
    ToolFailureData,
    ToolOutputData,
)
from trunkline.workers.gateway.http.schemas.schema_base import Error

from .conftest import Environment, until
from .fake_monitor import FakeTurn
from .sse_client import converse, events_in, text_of

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"


def detail(body: bytes) -> ConversationDetail:
    return msgspec.json.decode(body, type=ConversationDetail)


def page(body: bytes) -> ConversationList:
    return msgspec.json.decode(body, type=ConversationList)


async def answer_with_a_call(fake_turn: FakeTurn) -> None:
    call = ToolCall(id="c1", name="look", arguments={"at": "it"})
    await fake_turn.say("I look. ")
    await fake_turn.show(
        ToolStarted(step=0, call=call), ToolEnded(step=0, call_id="c1", name="look", output="blue")
    )
    await fake_turn.say("It is blue.", step=1)
    between = (
        Message(id="m1", role="assistant", content="I look. ", tool_calls=(call,)),
        Message(id="m2", role="tool", content="blue", tool_call_id="c1", name="look"),
    )
    await fake_turn.end("It is blue.", between=between)


async def test_a_new_conversation_streams_to_its_end(env: Environment) -> None:
    """PA-T9: deltas, tool call, result, deltas, done; the conversation's id is in the header and ``done`` names
    the stored message."""
    env.monitor.script = answer_with_a_call
    response, events = await converse(env.http, NEW, {"content": "what colour?"})
    assert [event.name for event in events] == [
        "text-delta",
        "tool-call",
        "tool-result",
        "text-delta",
        "done",
    ]
    assert events[1].data == ToolCallData(id="c1", name="look", arguments={"at": "it"})
    assert events[2].data == ToolOutputData(id="c1", output="blue")
    done = events[-1].data
    assert isinstance(done, DoneData)
    assert (done.finish_reason, done.usage.prompt_tokens, done.usage.completion_tokens) == ("stop", 7, 3)
    assert response.headers["content-type"].startswith("text/event-stream")
    conversation = response.headers["x-conversation-id"]
    found = detail((await env.http.get(f"/conversations/{conversation}")).content)
    assert [(m.role, m.content) for m in found.messages] == [
        ("user", "what colour?"),
        ("assistant", "I look. "),
        ("assistant", "It is blue."),
    ]
    assert found.messages[-1].id == done.message_id
    assert found.title == "What colour?"


@pytest.mark.parametrize("error", [False, True])
async def test_a_stored_long_result_is_referenced_by_id(env: Environment, error: bool) -> None:
    """The result is shown by its beginning and end, and ``metadata.stored`` has the stored size and the id."""
    stored = StoredResult(id="k3v7qx2mtp4a", characters=200_000, kept=150_000)

    async def answer_with_a_long_result(fake_turn: FakeTurn) -> None:
        call = ToolCall(id="c1", name="look", arguments={})
        ended = ToolEnded(step=0, call_id="c1", name="look", output="blue … blue", error=error, stored=stored)
        await fake_turn.show(ToolStarted(step=0, call=call), ended)
        await fake_turn.end("It is blue.")

    env.monitor.script = answer_with_a_long_result
    _, events = await converse(env.http, NEW, {"content": "what colour?"})
    (reported,) = [event.data for event in events if event.name == "tool-result"]
    assert isinstance(reported, ToolFailureData if error else ToolOutputData)
    assert msgspec.convert(reported.metadata["stored"], StoredResult) == stored


async def test_tools_are_shown_when_asked_for(env: Environment) -> None:
    """Tool messages are stored, and shown with ``include=tools`` only; what PA has no field for is metadata."""
    env.monitor.script = answer_with_a_call
    response, _ = await converse(env.http, NEW, {"content": "what colour?"})
    path = f"/conversations/{response.headers['x-conversation-id']}"
    found = detail((await env.http.get(path, params={"include": "tools"})).content)
    assert [m.role for m in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert found.messages[2].metadata["tool_call_id"] == "c1"
    assert (await env.http.get(path, params={"include": "secrets"})).status_code == 400


async def test_a_conversation_can_be_read_before_it_is_stored(own_env: Environment) -> None:
    """A client with a new id can request the conversation before any of it is stored."""
    own_env.monitor.paused = True
    async with own_env.http.stream("POST", NEW, json={"content": "hello there"}) as response:
        conversation = response.headers["x-conversation-id"]
        found = detail((await own_env.http.get(f"/conversations/{conversation}")).content)
        assert [(m.role, m.content) for m in found.messages] == [("user", "hello there")]
        assert found.title == "Hello there"
        listed = page((await own_env.http.get("/conversations")).content)
        assert [line.id for line in listed.conversations] == [conversation]
        assert listed.total == 1


async def test_a_second_client_lists_and_continues_the_conversation(env: Environment) -> None:
    """ARCH-3: a conversation started by one client is listed for another, which continues it."""
    first, _ = await converse(env.http, NEW, {"content": "one"})
    listed = page((await env.http.get("/conversations")).content)
    found = listed.conversations[0].id
    assert found == first.headers["x-conversation-id"]
    second, events = await converse(env.http, f"/conversations/{found}/messages", {"content": "two"})
    assert second.headers["x-conversation-id"] == found
    assert text_of(events) == "You said: two"
    messages = detail((await env.http.get(f"/conversations/{found}")).content).messages
    assert [m.content for m in messages] == ["one", "You said: one", "two", "You said: two"]
    assert env.monitor.requests[1].history is None, "the monitor takes the stored conversation"


async def test_a_client_reconnects_during_an_answer(env: Environment) -> None:
    """A broken stream continues behind the last received event; the turn is not affected."""
    resume = anyio.Event()

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.say("one ")
        await fake_turn.say("two ", offset=4)
        await resume.wait()
        await fake_turn.say("three", offset=8)
        await fake_turn.end("one two three")

    env.monitor.script = script
    async with env.http.stream("POST", NEW, json={"content": "count"}) as response:
        turn = response.headers["x-turn-id"]
        async for event in events_in(response):
            last = event.id
            break
    resume.set()
    path = f"/api/turns/{turn}/events"
    async with env.http.stream("GET", path, headers={"last-event-id": last}) as response:
        rest = [event async for event in events_in(response)]
    assert text_of(rest) == "two three"
    async with env.http.stream("GET", path, params={"from": rest[0].id}) as response:
        assert text_of([event async for event in events_in(response)]) == "three"
    async with env.http.stream("GET", path) as response:
        assert text_of([event async for event in events_in(response)]) == "one two three"


async def test_a_message_that_is_sent_again_is_the_same_turn(env: Environment) -> None:
    """A repeat with the same client message id attaches to the turn, in a new conversation and in an old one."""
    body = {"content": "once", "metadata": {"client_message_id": "c-1"}}
    first, reported = await converse(env.http, NEW, body)
    again, retold = await converse(env.http, NEW, body)
    assert first.headers["x-turn-id"] == again.headers["x-turn-id"]
    assert first.headers["x-conversation-id"] == again.headers["x-conversation-id"]
    assert text_of(reported) == text_of(retold) == "You said: once"
    path = f"/conversations/{first.headers['x-conversation-id']}/messages"
    second, _ = await converse(env.http, path, {"content": "more"}, **{"idempotency-key": "c-2"})
    third, _ = await converse(env.http, path, {"content": "more"}, **{"idempotency-key": "c-2"})
    assert second.headers["x-turn-id"] == third.headers["x-turn-id"] != first.headers["x-turn-id"]
    assert len(env.monitor.requests) == 2


async def test_a_status_is_an_event_of_its_own(env: Environment) -> None:
    """The agent's status from a plugin reaches HTTP clients as ``status``, and is no part of the text."""

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.show(StatusShown(name="hud", data={"humor": 80}, text="[80]"))
        await fake_turn.say("Tea.")
        await fake_turn.end("Tea.")

    env.monitor.script = script
    _, events = await converse(env.http, NEW, {"content": "x"})
    assert [event.name for event in events] == ["status", "text-delta", "done"]
    assert events[0].data == StatusData(name="hud", data={"humor": 80}, text="[80]")
    assert text_of(events) == "Tea."


async def test_a_dropped_answer_is_withdrawn(env: Environment) -> None:
    """When the model must be called again, ``text-reset`` gives the remaining text, and the answer is sent again."""

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.say("It is gr")
        await shown.wait()
        fake_turn.take_over()
        await fake_turn.show(TextReset(step=0))
        await fake_turn.say("It is blue.")
        await fake_turn.end("It is blue.")

    shown = anyio.Event()
    env.monitor.script = script
    events = []
    async with env.http.stream("POST", NEW, json={"content": "colour?"}) as response:
        async for event in events_in(response):
            events.append(event)
            shown.set()
    assert [event.name for event in events] == ["text-delta", "text-reset", "text-delta", "done"]
    assert text_of(events) == "It is blue."


async def test_a_disconnected_client_does_not_end_the_turn(env: Environment) -> None:
    """The answer is finished and stored without a reader."""
    left = anyio.Event()

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.say("still ")
        await left.wait()
        await fake_turn.end("still here")

    env.monitor.script = script
    async with env.http.stream("POST", NEW, json={"content": "hi"}) as response:
        conversation = response.headers["x-conversation-id"]
    left.set()
    stored: list[str] = []

    async def answered() -> bool:
        found = detail((await env.http.get(f"/conversations/{conversation}")).content).messages
        stored[:] = [message.content for message in found]
        return len(stored) == 2

    await until(answered)
    assert stored == ["hi", "still here"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_request"),
        (b"\xff\xfe", 400, "invalid_request"),
        (b"[]", 400, "invalid_request"),
        (b"{}", 400, "invalid_request"),
        (b'{"message": "hi"}', 400, "invalid_request"),
        (b'{"content": 7}', 400, "invalid_request"),
        (b'{"content": " "}', 400, "invalid_request"),
        (b'{"content": "x", "metadata": []}', 400, "invalid_request"),
        (b'{"content": "x", "metadata": {"block": 1}}', 400, "invalid_request"),
        (b'{"content": "x", "metadata": {"client_message_id": ""}}', 400, "invalid_request"),
        (b'{"content": "x", "metadata": {"block": "nope"}}', 404, "not_found"),
        (b'{"content": "' + b"x" * 1_000_001 + b'"}', 413, "too_large"),
        (b'{"content": "' + b"x" * 7_000_000 + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_bad_messages_change_nothing(env: Environment, body: bytes, status: int, code: str) -> None:
    """PA-T11: the documented status and body, and nothing is in the inbox."""
    before = (await env.http.get("/conversations")).json()["total"]
    response = await env.http.post(NEW, content=body)
    assert response.status_code == status
    assert msgspec.json.decode(response.content, type=Error).code == code
    assert (await env.http.get("/conversations")).json()["total"] == before
    assert env.monitor.seen == []


async def test_the_reason_of_an_invalid_request_is_logged(
    env: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets the fixed sentence, the field and a correlation id; under that id the log says it too."""
    caplog.set_level("INFO", "trunkline.workers.gateway")
    response = await env.http.post(NEW, json={"message": "hi"})
    assert response.json() == {
        "code": "invalid_request",
        "message": "The request is not valid.",
        "metadata": {"field": "/content", "reason": "It is required."},
    }
    [line] = [text for text in caplog.messages if response.headers["x-correlation-id"] in text]
    assert "content: It is required." in line and "\n" not in line


@pytest.mark.parametrize("conversation", ["conv_none", "..%2f..%2fetc", "a" * 200, "*", "conv_%00"])
async def test_unknown_conversations_are_not_found(env: Environment, conversation: str) -> None:
    """PA-T11: an unknown id of any form gets 404, for reading and for continuing."""
    for response in (
        await env.http.get(f"/conversations/{conversation}"),
        await env.http.post(f"/conversations/{conversation}/messages", json={"content": "hi"}),
    ):
        assert response.status_code == 404
        assert msgspec.json.decode(response.content, type=Error).code == "not_found"


async def test_the_list_pages_and_searches(own_env: Environment) -> None:
    """PA-T16: limit, offset, search, from and to; ``total`` counts all that match."""
    for word in ("apple", "banana", "cherry"):
        await converse(own_env.http, NEW, {"content": word})

    async def listed(**query: str | int) -> ConversationList:
        return page((await own_env.http.get("/conversations", params=query)).content)

    everything = await listed()
    assert [line.title for line in everything.conversations] == ["Cherry", "Banana", "Apple"]
    assert (everything.total, everything.limit, everything.offset) == (3, 20, 0)
    assert everything.conversations[0].message_count == 2
    second = await listed(limit=1, offset=1)
    assert [line.title for line in second.conversations] == ["Banana"]
    assert second.total == 3
    assert [line.title for line in (await listed(search="BANAN")).conversations] == ["Banana"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert (await listed(**{"from": tomorrow})).total == 0
    assert (await listed(to=tomorrow)).total == 3


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=-1", "offset=-1", "from=monday", "limit=٣", "to=7"]
)
async def test_a_bad_query_is_refused(env: Environment, query: str) -> None:
    """PA-T16: a limit of 0 or 101, and every other nonsense, is 400."""
    response = await env.http.get(f"/conversations?{query}")
    assert response.status_code == 400
    assert msgspec.json.decode(response.content, type=Error).code == "invalid_request"


async def test_events_of_nonsense_are_refused(env: Environment) -> None:
    """A position that was never issued is 400, an unknown turn 404."""
    response, _ = await converse(env.http, NEW, {"content": "hi"})
    path = f"/api/turns/{response.headers['x-turn-id']}/events"
    assert (await env.http.get(path, params={"from": "yesterday"})).status_code == 400
    assert (await env.http.get("/api/turns/turn_none/events")).status_code == 404


async def test_the_channel_and_http_see_the_same(env: Environment) -> None:
    """PA-F40: a channel over the bus and a client over HTTP have the same conversations."""
    response, _ = await converse(env.http, NEW, {"content": "from http"})
    view = await env.terminal.conversation(response.headers["x-conversation-id"])
    assert [message.content for message in view.messages] == ["from http", "You said: from http"]
