"""The official ``openai`` client against the gateway: chat streamed and whole, the client's tools, models, errors."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import openai
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.turns.feed_messages import TextDelta, TextReset, ToolEnded, ToolStarted
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.http.openai import schemas as shapes

from .conftest import Environment
from .fake_monitor import FakeTurn

pytestmark = pytest.mark.anyio

HI: Any = [{"role": "user", "content": "hi"}]
LOOK: Any = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


@pytest.fixture
async def client(env: Environment) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as made:
        yield made


async def test_a_whole_answer(env: Environment, client: openai.AsyncOpenAI) -> None:
    """Text, finish reason and tokens as OpenAI's clients expect them; the conversation is in the header."""
    raw = await client.chat.completions.with_raw_response.create(model="main", messages=HI)
    answer = raw.parse()
    assert answer.choices[0].message.content == "You said: hi"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (
        7,
        3,
        10,
    )
    assert answer.model == "main"
    stored = await env.terminal.conversation(raw.headers["x-conversation-id"])
    assert [message.content for message in stored.messages] == ["hi", "You said: hi"]
    msgspec.json.decode(raw.content, type=shapes.ChatCompletion)


async def test_a_streamed_answer(env: Environment, client: openai.AsyncOpenAI) -> None:
    """Chunks with the text, a last one with the reason, and one with usage when it was asked for."""
    stream = await client.chat.completions.create(
        model="main", messages=HI, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "You said: hi"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 10


async def test_every_chunk_keeps_the_contract(env: Environment) -> None:
    """No undocumented field in any chunk (ARCH-4), and ``[DONE]`` at the end."""
    for options, shape in (
        ({}, shapes.ChatCompletionChunk),
        ({"include_usage": True}, shapes.ChatCompletionChunkWithUsage),
    ):
        body = {"model": "main", "messages": HI, "stream": True, "stream_options": options}
        response = await env.http.post("/v1/chat/completions", json=body)
        lines = [line.removeprefix("data: ") for line in response.text.splitlines() if line]
        assert lines[-1] == "[DONE]"
        for line in lines[:-1]:
            msgspec.json.decode(line, type=shape)


async def test_our_tools_are_not_seen(env: Environment, client: openai.AsyncOpenAI) -> None:
    """A tool that runs here is no tool call for the client; the texts around it are one answer."""

    async def script(turn: FakeTurn) -> None:
        call = ToolCall(id="c1", name="ours")
        await turn.say("Wait. ")
        await turn.show(
            ToolStarted(step=0, call=call), ToolEnded(step=0, call_id="c1", name="ours", output="x")
        )
        await turn.say("Done.", step=1)
        await turn.end("Done.")

    env.monitor.script = script
    stream = await client.chat.completions.create(model="main", messages=HI, stream=True)
    deltas = [chunk.choices[0].delta async for chunk in stream]
    assert "".join(delta.content or "" for delta in deltas) == "Wait. Done."
    assert not any(delta.tool_calls for delta in deltas)


async def asks_the_client(turn: FakeTurn) -> None:
    call = ToolCall(id="call_1", name="look", arguments={"at": "ä"})
    await turn.show(ToolStarted(step=0, call=call, client=True))
    answer = Message(id="m", role="assistant", content="", tool_calls=(call,))
    await turn.end(reason="tool_calls", between=(answer,))


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_clients_tools(env: Environment, client: openai.AsyncOpenAI, streamed: bool) -> None:
    """A call of the client's tool is returned to it, and its result continues the conversation."""
    env.monitor.script = asks_the_client
    if streamed:
        stream = await client.chat.completions.create(model="main", messages=HI, tools=[LOOK], stream=True)
        chunks = [chunk async for chunk in stream]
        found = [one for chunk in chunks for one in chunk.choices[0].delta.tool_calls or []]
        assert [one.index for one in found] == [0]
        id, function = found[0].id, found[0].function
        reason = chunks[-1].choices[0].finish_reason
    else:
        answer = await client.chat.completions.create(model="main", messages=HI, tools=[LOOK])
        call: Any = (answer.choices[0].message.tool_calls or [])[0]
        id, function, reason = call.id, call.function, answer.choices[0].finish_reason
    assert (id, reason) == ("call_1", "tool_calls")
    assert function is not None
    assert (function.name, msgspec.json.decode(function.arguments or "")) == ("look", {"at": "ä"})
    assert [tool.name for tool in env.monitor.requests[0].client_tools] == ["look"]

    async def script(turn: FakeTurn) -> None:
        await turn.say("blue")
        await turn.end("blue")

    env.monitor.script = script
    call_request = {"id": id, "type": "function", "function": {"name": "look", "arguments": '{"at": "ä"}'}}
    transcript: Any = [
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [call_request]},
        {"role": "tool", "tool_call_id": id, "content": "it is blue"},
    ]
    answer = await client.chat.completions.create(model="main", messages=transcript, tools=[LOOK])
    assert answer.choices[0].message.content == "blue"
    request = env.monitor.requests[1]
    assert (request.message.role, request.message.content) == ("tool", "it is blue")
    assert request.message.tool_call_id == "call_1"
    assert (request.history, request.conversation) == (None, env.monitor.requests[0].conversation)
    transcript[0] = {"role": "user", "content": "hello"}  # as this client has never said
    await client.chat.completions.create(model="main", messages=transcript, tools=[LOOK])
    request = env.monitor.requests[2]
    assert request.history is not None
    assert [message.role for message in request.history] == ["user", "assistant"]
    assert request.history[1].tool_calls[0].arguments == {"at": "ä"}


async def test_a_transcript_is_the_history(env: Environment, client: openai.AsyncOpenAI) -> None:
    """Without a conversation the whole transcript counts, for a new one; parts of text are put together."""
    transcript: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    await client.chat.completions.create(model="main:openai/gpt-5", messages=transcript, max_tokens=9)
    request = env.monitor.requests[0]
    assert request.history is not None
    assert [(m.role, m.content) for m in request.history] == [
        ("system", "Be brief."),
        ("user", "ab"),
        ("assistant", "c"),
    ]
    assert (request.message.content, request.model, request.max_tokens) == ("d", "openai/gpt-5", 9)


async def test_a_conversation_continues(env: Environment, client: openai.AsyncOpenAI) -> None:
    """With the header of a conversation only the last message counts; the stored messages are the history."""
    raw = await client.chat.completions.with_raw_response.create(model="main", messages=HI)
    conversation = raw.headers["x-conversation-id"]
    more: Any = [*HI, {"role": "assistant", "content": "You said: hi"}, {"role": "user", "content": "more"}]
    await client.chat.completions.create(
        model="main", messages=more, extra_headers={"X-Conversation-ID": conversation}
    )
    assert env.monitor.requests[1].history is None
    stored = await env.terminal.conversation(conversation)
    assert [message.content for message in stored.messages] == [
        "hi",
        "You said: hi",
        "more",
        "You said: more",
    ]


async def test_blocks_are_models(env: Environment, client: openai.AsyncOpenAI) -> None:
    """The list of models is the list of blocks; an unknown one is what OpenAI calls it."""
    await env.terminal.create_block("garden")
    assert [model.id async for model in client.models.list()] == ["garden", "main"]
    assert (await client.models.retrieve("garden")).owned_by == "trunkline"
    await client.chat.completions.create(model="garden", messages=HI)
    assert env.monitor.requests[0].block == "garden"
    for ask in (
        client.models.retrieve("nope"),
        client.chat.completions.create(model="nope", messages=HI),
        client.chat.completions.create(model="gpt-5", messages=HI, stream=True),
    ):
        with pytest.raises(openai.NotFoundError) as refused:
            await ask
        assert refused.value.code == "model_not_found" and refused.value.param == "model"
        assert "No block has this name. Existing blocks: garden, main." in refused.value.message
    with pytest.raises(openai.NotFoundError, match=r"Did you mean garden\?"):
        await client.chat.completions.create(model="gardne:gpt-5", messages=HI)
    assert len(env.monitor.requests) == 1


async def test_a_wrong_key_is_refused_as_openai_does(env: Environment) -> None:
    """The client raises its own AuthenticationError."""
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key="wrong") as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            await client.chat.completions.create(model="main", messages=HI)
    assert refused.value.code == "invalid_api_key"
    assert "in the header Authorization" in refused.value.message and "wrong" not in refused.value.message


@pytest.mark.parametrize(
    "given",
    [
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": HI, "n": 2},
        {"messages": HI, "response_format": {"type": "yaml"}},
        {"messages": HI, "response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
        {"messages": HI, "tools": [{"type": "function"}]},
        {"messages": HI, "tool_choice": "required"},
        {"messages": HI, "temperature": 3},
        {"messages": HI, "max_tokens": 0},
    ],
    ids=lambda value: repr(value)[:50],
)
async def test_unsupported_requests_are_refused(env: Environment, given: dict[str, Any]) -> None:
    """An option that would change the answer is not ignored: 400 in OpenAI's form, and no turn."""
    response = await env.http.post("/v1/chat/completions", json={"model": "main", **given})
    assert response.status_code == 400
    error = msgspec.json.decode(response.content, type=shapes.ErrorObject).error
    assert (error.type, error.code) == ("invalid_request_error", "invalid_request")
    assert env.monitor.seen == []


ASKED: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "blue"}


@pytest.mark.parametrize(
    ("messages", "at"),
    [
        ([{**RESULT, "tool_call_id": "zz"}], 0),
        ([*HI, RESULT], 1),
        ([*HI, ASKED, {**RESULT, "tool_call_id": "zz"}], 2),
        ([*HI, ASKED, RESULT, RESULT], 3),
        ([*HI, ASKED, *HI, RESULT], 3),
        ([RESULT, *HI], 0),
    ],
)
async def test_a_result_without_its_call_is_refused_as_openai_does(
    env: Environment, messages: list[Any], at: int
) -> None:
    """400 with the message that is wrong, and no turn: a model would be sent what no provider takes."""
    response = await env.http.post("/v1/chat/completions", json={"model": "main", "messages": messages})
    error = msgspec.json.decode(response.content, type=shapes.ErrorObject).error
    assert (response.status_code, error.param) == (400, f"messages[{at}].tool_call_id")
    assert env.monitor.seen == []


async def failing(turn: FakeTurn) -> None:
    await turn.say("Some ")
    await turn.end(reason="error", code=ErrorCode.PROVIDER_ERROR)


async def test_a_failed_turn_is_not_asked_for_twice(env: Environment, client: openai.AsyncOpenAI) -> None:
    """The client gets the fixed sentence and does not retry, which would be a second turn."""
    env.monitor.script = failing
    with pytest.raises(openai.InternalServerError) as failed:
        await client.chat.completions.create(model="main", messages=HI)
    assert failed.value.code == "provider_error"
    assert FIXED_SENTENCES[ErrorCode.PROVIDER_ERROR] in str(failed.value)
    with pytest.raises(openai.APIError) as cut:
        stream = await client.chat.completions.create(model="main", messages=HI, stream=True)
        _ = [chunk async for chunk in stream]
    assert cut.value.code == "provider_error"
    assert len(env.monitor.requests) == 2


async def repeated(turn: FakeTurn, text: str) -> None:
    await turn.say("It is ")
    await anyio.sleep(0.2)
    turn.take_over()
    await turn.show(TextReset(step=0), *(TextDelta(step=0, offset=n, text=c) for n, c in enumerate(text)))
    await turn.end(text)


async def test_a_repeated_answer_is_trimmed(env: Environment, client: openai.AsyncOpenAI) -> None:
    """After a takeover repeated text is not sent twice."""
    env.monitor.script = lambda turn: repeated(turn, "It is blue.")
    stream = await client.chat.completions.create(model="main", messages=HI, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text == "It is blue."


@pytest.mark.parametrize("text", ["Perhaps blue.", "It"])
async def test_a_changed_answer_is_an_error(env: Environment, client: openai.AsyncOpenAI, text: str) -> None:
    """Sent text cannot be withdrawn, so a stream whose text changed ends with an error."""
    env.monitor.script = lambda turn: repeated(turn, text)
    stream = await client.chat.completions.create(model="main", messages=HI, stream=True)
    with pytest.raises(openai.APIError):
        _ = [chunk async for chunk in stream]
