"""The Responses API over HTTP: the events in their order, resumed streams, and who may see a response."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import msgspec
import openai
import pytest

import trunkline
from tests.other_users import share
from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ReasoningDelta,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
)
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.http.openai.responses.response_events import RESPONSE_EVENTS
from trunkline.workers.gateway.http.openai.responses.response_schemas import ResponseResource
from trunkline.workers.gateway.http.openai.schemas import ErrorObject

from .conftest import Environment, started_environment
from .fake_monitor import FakeTurn

pytestmark = pytest.mark.anyio

LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
MESSAGE = ("output_item.added", "content_part.added")
MESSAGE_END = ("output_text.done", "content_part.done", "output_item.done")


@pytest.fixture
async def client(env: Environment) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token, max_retries=0) as made:
        yield made


async def streamed(env: Environment, path: str = "/v1/responses", **body: Any) -> list[dict[str, Any]]:
    """Return the events of a stream. Each has exactly the documented fields, and the numbers have no gap."""
    if body:
        response = await env.http.post(path, json={"model": "main", "stream": True, **body})
    else:
        response = await env.http.get(path, params={"stream": "true"})
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    lines = response.text.splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    events = []
    for line in data[:-1]:
        event = msgspec.json.decode(line)
        kind = next(one for one in RESPONSE_EVENTS if one.__struct_config__.tag == event["type"])
        msgspec.json.decode(line, type=kind)
        events.append(event)
    assert [line[7:] for line in lines if line.startswith("event: ")] == [one["type"] for one in events]
    return events


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence_number"] for event in events]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"].endswith("output_text.delta"))


async def test_the_events_of_a_text(env: Environment) -> None:
    """The events come in OpenAI's order, numbered from 0; the last one has the whole response."""
    events = await streamed(env, input="hi there")
    begin, end = ["created", "in_progress"], ["completed"]
    assert types(events) == [*begin, *MESSAGE, *["output_text.delta"] * 4, *MESSAGE_END, *end]
    assert numbers(events) == list(range(len(events)))
    assert [event["delta"] for event in events if "delta" in event] == ["You", " said:", " hi", " there"]
    first, last = events[0]["response"], events[-1]["response"]
    assert (first["status"], first["output"], first["usage"]) == ("in_progress", [], None)
    (item,) = last["output"]
    assert item == events[-2]["item"] and item["content"][0]["text"] == "You said: hi there"
    assert (item["phase"], last["status"], last["usage"]["total_tokens"]) == ("final_answer", "completed", 10)
    assert {event["item_id"] for event in events if "item_id" in event} == {item["id"]}
    assert last["completed_at"] >= last["created_at"] == first["created_at"] > 0


async def test_the_events_of_two_steps_and_a_call(env: Environment) -> None:
    """A tool that runs here is not shown; the text of each model call is a message; the client's call is an item."""

    async def script(turn: FakeTurn) -> None:
        ours, theirs = ToolCall(id="c1", name="ours"), ToolCall(id="c2", name="look", arguments={"at": "ä"})
        await turn.say("Wait.")
        await turn.show(
            ToolStarted(step=0, call=ours), ToolEnded(step=0, call_id="c1", name="ours", output="x")
        )
        await turn.say("Look.", step=1)
        await turn.show(ToolStarted(step=1, call=theirs, client=True))
        await turn.end(reason="tool_calls")

    env.monitor.script = script
    events = await streamed(env, input="hi", tools=[LOOK])
    call = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    message = [*MESSAGE, "output_text.delta", *MESSAGE_END]
    assert types(events) == ["created", "in_progress", *message, *message, *call, "completed"]
    assert [event["output_index"] for event in events if event["type"].endswith("added")] == [0, 0, 1, 1, 2]
    output = events[-1]["response"]["output"]
    assert [item.get("phase") for item in output] == ["commentary", "commentary", None]
    assert output[2]["arguments"] == '{"at":"ä"}' and output[2]["call_id"] == "c2"
    assert len({item["id"] for item in output}) == 3


async def test_reasoning_is_shown_on_request(env: Environment) -> None:
    """A client that requests a summary gets the reasoning before the text; another one gets none."""

    async def script(turn: FakeTurn) -> None:
        await turn.show(ReasoningDelta(step=0, offset=0, text="They greet."))
        await turn.say("Hello.")
        await turn.end("Hello.")

    env.monitor.script = script
    assert "output_item.added" in types(plain := await streamed(env, input="hi"))
    assert [item["type"] for item in plain[-1]["response"]["output"]] == ["message"]
    events = await streamed(env, input="hi", reasoning={"summary": "auto"})
    summary = [
        "reasoning_summary_part.added",
        *["reasoning_summary_text.delta"] * 2,
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ]
    assert types(events)[2:9] == ["output_item.added", *summary, "output_item.done"]
    assert events[-1]["response"]["output"][0]["summary"][0]["text"] == "They greet."
    assert env.monitor.requests[-1].parameters == {"reasoning_summary": "auto"}


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("stopped", "incomplete", "stopped"),
        ("cancelled", "cancelled", None),
    ],
)
async def test_an_early_end(env: Environment, reason: Any, status: str, why: str | None) -> None:
    """A response that ended early says why, and its last event is ``response.incomplete``."""

    async def script(turn: FakeTurn) -> None:
        await turn.say("It is")
        await turn.end("It is", reason=reason)

    env.monitor.script = script
    last = (await streamed(env, input="hi"))[-1]
    details = last["response"]["incomplete_details"]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", status)
    assert (details or {}).get("reason") == why and last["response"]["completed_at"] is None
    assert last["response"]["output"][0]["status"] == "incomplete"


async def test_a_failed_turn(env: Environment, client: openai.AsyncOpenAI) -> None:
    """A stream ends with ``response.failed``; a whole response is an error that the client does not retry."""

    async def failing(turn: FakeTurn) -> None:
        await turn.end(reason="error", code=ErrorCode.RATE_LIMITED)

    env.monitor.script = failing
    last = (await streamed(env, input="hi"))[-1]
    assert last["type"] == "response.failed" and last["response"]["status"] == "failed"
    assert last["response"]["error"]["code"] == "rate_limit_exceeded"
    assert last["response"]["error"]["message"] == FIXED_SENTENCES[ErrorCode.RATE_LIMITED]
    with pytest.raises(openai.RateLimitError) as failed:
        await client.with_options(max_retries=2).responses.create(model="main", input="hi")
    assert failed.value.code == "rate_limit_exceeded" and len(env.monitor.requests) == 2
    kept = await client.responses.retrieve(last["response"]["id"])
    assert kept.status == "failed" and kept.error is not None


async def repeated(turn: FakeTurn, text: str) -> None:
    await turn.say("It is bl")
    await anyio.sleep(0.1)
    turn.take_over()
    await turn.show(TextReset(step=0), *(TextDelta(step=0, offset=n, text=c) for n, c in enumerate(text)))
    await turn.end(text)


async def test_a_repeated_answer_has_no_gap_and_no_repetition(env: Environment) -> None:
    """After a takeover the events continue; a later reader gets the same events with the same numbers."""
    env.monitor.script = lambda turn: repeated(turn, "It is blue, I think.")
    events = await streamed(env, input="hi", background=True)
    assert text_of(events) == "It is blue, I think."
    assert numbers(events) == list(range(len(events)))
    again = await streamed(env, f"/v1/responses/{events[0]['response']['id']}")
    assert [(e["type"], e.get("delta")) for e in again] == [(e["type"], e.get("delta")) for e in events]


@pytest.mark.parametrize("text", ["Perhaps blue.", "It"])
async def test_a_changed_answer_is_an_error(env: Environment, text: str) -> None:
    """Sent text cannot be withdrawn: the stream ends with an error, and the response can be retrieved."""
    env.monitor.script = lambda turn: repeated(turn, text)
    events = await streamed(env, input="hi")
    assert events[-1]["type"] == "error" and events[-1]["code"] == "provider_error"
    assert numbers(events) == list(range(len(events)))
    kept = (await streamed(env, f"/v1/responses/{events[0]['response']['id']}"))[-1]["response"]
    assert (kept["status"], kept["output"][0]["content"][0]["text"]) == ("completed", text)
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as client:
        with pytest.raises(openai.APIError) as raised:
            stream = await client.responses.create(model="main", input="hi", stream=True)
            _ = [event async for event in stream]
    assert raised.value.code == "provider_error"


async def test_a_background_stream_is_resumed_anywhere(env: Environment) -> None:
    """From any number on, the stream has exactly the events after it, and none of them twice."""
    events = await streamed(env, input="one two", background=True)
    assert types(events)[:3] == ["created", "queued", "in_progress"]
    assert events[1]["response"]["status"] == "queued"
    for number in (0, 4, len(events) - 2, len(events) - 1):
        response = await env.http.get(
            f"/v1/responses/{events[0]['response']['id']}",
            params={"stream": "true", "starting_after": number},
        )
        data = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
        rest = [msgspec.json.decode(line) for line in data]
        assert [(e["sequence_number"], e["type"]) for e in rest] == [
            (e["sequence_number"], e["type"]) for e in events[number + 1 :]
        ]


async def test_only_a_background_stream_is_resumed(env: Environment) -> None:
    """As at OpenAI: other streams may show approvals of other turns, so their numbers are not those of the turn."""
    events = await streamed(env, input="hi")
    id = events[0]["response"]["id"]
    response = await env.http.get(f"/v1/responses/{id}?stream=true&starting_after=1")
    error = msgspec.json.decode(response.content, type=ErrorObject).error
    assert (response.status_code, error.param) == (400, "starting_after")


@pytest.mark.parametrize("stream", ["true", "false"])
async def test_the_number_of_an_event_is_valid(env: Environment, stream: str) -> None:
    """A number that is none is refused, whether events are streamed or not."""
    events = await streamed(env, input="hi", background=True)
    id = events[0]["response"]["id"]
    response = await env.http.get(f"/v1/responses/{id}?stream={stream}&starting_after=-1")
    error = msgspec.json.decode(response.content, type=ErrorObject).error
    assert (response.status_code, error.param) == (400, "starting_after")


async def waits(turn: FakeTurn) -> None:
    await turn.say("I will write.")
    call = ToolCall(id="c1", name="write_file")
    detail = ApprovalDetail(text="+Buy beans.")
    await turn.show(ApprovalRequested(call=call, call_hash="h", question="Write?", id="a1", detail=detail))


async def test_an_approval_is_text(env: Environment, client: openai.AsyncOpenAI) -> None:
    """A whole response is returned with the approval and is still in progress; a stream shows it and goes on."""
    env.monitor.script = waits
    waiting = await client.responses.create(model="main", input="hi")
    assert waiting.status == "in_progress" and len(waiting.output) == 2
    assert "Write?" in waiting.output_text and "trunkline approvals approve a1" in waiting.output_text
    assert "+Buy beans." in waiting.output_text

    async def script(turn: FakeTurn) -> None:
        await waits(turn)
        await turn.say("Done.", step=1)
        await turn.end("Done.")

    env.monitor.script = script
    events = await streamed(env, input="hi")
    texts = [item["content"][0]["text"] for item in events[-1]["response"]["output"]]
    assert texts[0] == "I will write." and "Write?" in texts[1] and texts[2] == "Done."


async def test_a_response_continues_and_forks(env: Environment, client: openai.AsyncOpenAI) -> None:
    """The first request that names a response continues its conversation; a later one forks it."""
    first = await client.responses.create(model="main", input="one")
    second = await client.responses.create(model="main", input="two", previous_response_id=first.id)
    third = await client.responses.create(model="main", input="three", previous_response_id=first.id)
    one, two, three = env.monitor.requests
    assert two.conversation == one.conversation != three.conversation
    assert three.fork is not None and three.fork.origin.turn == one.turn
    assert (second.previous_response_id, third.previous_response_id) == (first.id, first.id)
    assert len({first.id, second.id, third.id}) == 3
    named = await client.responses.create(model="main", input="four", conversation=one.conversation)
    assert env.monitor.requests[3].conversation == one.conversation
    assert named.conversation is not None and named.conversation.id == one.conversation
    with pytest.raises(openai.NotFoundError):
        await client.responses.create(model="main", input="x", conversation="conv_unknown")


async def test_all_items_are_added(env: Environment, client: openai.AsyncOpenAI) -> None:
    """With ``previous_response_id`` or ``conversation`` every item of the input is new, in its order: messages, and
    calls with their outputs."""
    first = await client.responses.with_raw_response.create(model="main", input="one")
    call: dict[str, Any] = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    items: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "a"},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "blue"},
        {"role": "user", "content": "b"},
    ]
    places: tuple[dict[str, str], ...] = (
        {"conversation": first.headers["x-conversation-id"]},
        {"previous_response_id": first.parse().id},
    )
    for place in places:
        await client.responses.create(model="main", input=items, **place)  # type: ignore[arg-type]
        request = env.monitor.requests[-1]
        assert [message.role for message in request.preceding or ()] == [
            "system",
            "user",
            "assistant",
            "tool",
        ]
        assert request.message.content == "b" and request.history is None


async def test_a_repeated_request_is_the_same_response(env: Environment, client: openai.AsyncOpenAI) -> None:
    """One turn answers a request, however often it is sent: by a client's id, or as the client's automatic retry."""
    ids = set()
    for _ in range(2):
        headers = {"Idempotency-Key": "once"}
        answer = await client.responses.create(model="main", input="hi", extra_headers=headers)
        ids.add((answer.id, answer.created_at, answer.output_text))
    previous = answer.id
    for count in ("0", "1", "2"):
        answer = await client.responses.create(
            model="main",
            input="ho",
            previous_response_id=previous,
            extra_headers={"x-stainless-retry-count": count},
        )
        ids.add((answer.id, answer.created_at, answer.output_text))
    assert len(ids) == 2 and len(env.monitor.requests) == 2


async def test_a_stateless_client_continues_its_conversation(
    env: Environment, client: openai.AsyncOpenAI
) -> None:
    """A client that sends the output back as input, and stores nothing, is recognised by its transcript."""
    items: list[Any] = [{"role": "user", "content": "hi"}]
    answer = await client.responses.create(model="main", input=items, store=False, instructions="Be brief.")
    items += [item.model_dump() for item in answer.output]
    items.append({"role": "user", "content": "more"})
    await client.responses.create(model="main", input=items, store=False, instructions="Be brief.")
    one, two = env.monitor.requests
    assert two.conversation == one.conversation and two.message.content == "more"
    assert (one.instructions, one.preceding) == ("Be brief.", msgspec.UNSET)


async def test_what_is_not_stored_is_not_found(env: Environment, client: openai.AsyncOpenAI) -> None:
    """A response that was not stored or was deleted, and a turn that is no response, cannot be retrieved."""
    unstored = await client.responses.create(model="main", input="hi", store=False)
    deleted = await client.responses.create(model="main", input="hi")
    await client.responses.delete(deleted.id)
    chat = await client.chat.completions.with_raw_response.create(
        model="main", messages=[{"role": "user", "content": "hi"}]
    )
    turn = "resp_" + chat.headers["x-turn-id"].removeprefix("turn_")
    for id in (unstored.id, deleted.id, turn, "resp_", "resp_*", "turn_x", "resp_" + "a" * 300, "%00"):
        for ask in (
            client.responses.retrieve(id),
            client.responses.cancel(id),
            client.responses.delete(id),
            client.responses.input_items.list(id),
        ):
            with pytest.raises(openai.NotFoundError):
                await ask
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model="main", input="x", previous_response_id=id)
        assert refused.value.code == "previous_response_not_found"


async def test_the_input_is_listed(env: Environment, client: openai.AsyncOpenAI) -> None:
    """The items of the request, the newest first, page by page."""
    items: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "input_text", "text": "there"}]},
    ]
    answer = await client.responses.create(model="main", input=items)
    listed = [item async for item in client.responses.input_items.list(answer.id, limit=1)]
    assert [(item.role, item.content[0].text) for item in listed] == [  # type: ignore[union-attr]
        ("user", "there"),
        ("user", "hi"),
        ("system", "Be brief."),
    ]
    with pytest.raises(openai.BadRequestError):
        await client.responses.input_items.list(answer.id, after="msg_unknown")


async def test_the_request_reaches_the_turn(env: Environment, client: openai.AsyncOpenAI) -> None:
    """Each option is in the turn's request, and the response repeats it."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = await client.responses.create(
        model="main:openai/gpt-5",
        input="hi",
        instructions="Be brief.",
        tools=[LOOK, {**LOOK, "name": "listen"}],
        tool_choice={
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "look"}] * 2,
        },
        text={"format": {"type": "json_schema", "name": "report", "schema": schema}, "verbosity": "low"},
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=9,
        reasoning={"effort": "low"},
        metadata={"for": "tests"},
        parallel_tool_calls=False,
        truncation="auto",
        include=["reasoning.encrypted_content"],
        user="ann",
        safety_identifier="s",
        prompt_cache_key="k",
    )
    (request,) = env.monitor.requests
    assert (request.model, request.max_tokens, request.temperature) == ("openai/gpt-5", 9, 0.5)
    assert request.parameters == {"top_p": 0.9, "reasoning_effort": "low", "verbosity": "low"}
    assert [tool.name for tool in request.client_tools] == ["look"] and request.instructions == "Be brief."
    assert request.tool_choice and (request.tool_choice.mode, request.tool_choice.tools) == (
        "required",
        ("look",),
    )
    assert request.response_format and request.response_format.schema == schema
    repeated = answer.model_dump()
    assert {name: repeated[name] for name in ("instructions", "temperature", "top_p", "user")} == {
        "instructions": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.9,
        "user": "ann",
    }
    assert (answer.metadata, answer.truncation, answer.parallel_tool_calls) == (
        {"for": "tests"},
        "auto",
        False,
    )
    assert [tool["name"] for tool in repeated["tools"]] == ["look", "listen"]
    raw = await env.http.get(f"/v1/responses/{answer.id}")
    msgspec.json.decode(raw.content, type=ResponseResource)


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/responses/x/y/z", "/v1/files/x/y", "/v1/"])
async def test_unknown_routes_have_openais_errors(env: Environment, path: str) -> None:
    response = await env.http.get(path)
    error = msgspec.json.decode(response.content, type=ErrorObject).error
    assert (response.status_code, error.type, error.code) == (404, "invalid_request_error", "not_found")


class GuestDoor:
    """Knows a guest by a header."""

    name = "guests"

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        return Identity(id="guest", type="collaborator") if headers.get("x-guest") == "yes" else None


class Guests:
    """A plugin that lets guests in."""

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[GuestDoor]:
        return [GuestDoor()]


async def test_another_identity_finds_no_responses_and_no_files() -> None:
    """Ids of another identity's responses and files are not found, whatever is done with them."""
    async with (
        started_environment(Guests()) as env,
        openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as owner,
        openai.AsyncOpenAI(
            base_url=f"{env.url}/v1", api_key="none", default_headers={"x-guest": "yes"}
        ) as guest,
    ):
        await share(env.bus)
        answer = await owner.responses.create(model="main", input="secret")
        file = await owner.files.create(file=("a.txt", b"secret"), purpose="user_data")
        response, upload = f"/v1/responses/{answer.id}", f"/v1/files/{file.id}"
        for method, path in (
            ("GET", response),
            ("DELETE", response),
            ("POST", f"{response}/cancel"),
            ("GET", f"{response}/input_items"),
            ("GET", upload),
            ("GET", f"{upload}/content"),
            ("DELETE", upload),
        ):
            refused = await env.http.request(method, path, headers={"x-guest": "yes", "authorization": ""})
            assert refused.status_code == 404, (method, path)
        part: Any = {"role": "user", "content": [{"type": "input_file", "file_id": file.id}]}
        requests: tuple[dict[str, Any], ...] = (
            {"input": "x", "previous_response_id": answer.id},
            {"input": [part]},
        )
        for given in requests:
            with pytest.raises(openai.BadRequestError):
                await guest.responses.create(model="main", **given)
        assert (await guest.files.list()).data == [] and len((await owner.files.list()).data) == 1
        mine = await guest.responses.create(model="main", input="hi")
        assert (await guest.responses.retrieve(mine.id)).output_text == "You said: hi"
