"""The cases of the published Open Responses compliance suite, each under its published id.

The list is that of ``src/lib/compliance-tests.ts`` in the repository openresponses/openresponses (17 cases, 7 of them
over WebSocket), which openresponses.org/compliance runs. The requests are the published ones; the tests are written
anew, against a whole platform and a scripted vendor. The suite validates each response and event by its schemas: here
the types of the ``openai`` package validate them, and ``REQUIRED`` has the fields that the suite requires.
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from openai.types.responses import (
    Response,
    ResponseCompactionItem,
    ResponseInputMessageItem,
    ResponseStreamEvent,
    ResponseUsage,
)
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect

from trunkline.testing.platform import Platform, platform
from trunkline.testing.script import CallTools, Reply, Say, ScriptedCall, ScriptedRequest, Stop
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

REQUIRED = {
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model"),
    *("previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation"),
    *("parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"),
    *("temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls", "store", "background"),
    *("service_tier", "metadata", "safety_identifier", "prompt_cache_key"),
}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}
HEART = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFklEQVR42mP4z8CAFWEXZRiaEv///wcA+/8j3fMsMTEAAAAASUVORK5CYII="


def model(request: ScriptedRequest) -> Reply:
    """Answer as a model would: with what the request has."""
    said = "\n".join(line.text for line in request.lines)
    sent = json.dumps(request.body)
    if "get_weather" in request.tools:
        return [
            CallTools((ScriptedCall("get_weather", {"location": "San Francisco, CA"}),)),
            Stop("tool_calls"),
        ]
    if "image_url" in sent:
        return [Say("A red heart."), Stop()]
    if "pirate" in said:
        return [Say("Ahoy!"), Stop()]
    for pattern in (r"[Cc]ode word: (\w+)", r"name is (\w+)", r"number is (\w+)", r"launch on (\w+)"):
        if found := re.search(pattern, said):
            return [Say(f"It is {found[1]}."), Stop()]
    return [Say("Hello to you."), Stop()]


class Suite:
    """The platform that is tested, and the vendor behind it."""

    def __init__(self, running: Platform, provider: ScriptedProvider, http: httpx.AsyncClient) -> None:
        self.platform, self.provider, self.http = running, provider, http

    async def create(self, input: Any, **more: Any) -> dict[str, Any]:
        """Create a response, which must be valid and complete."""
        reply = await self.http.post("/responses", json={"model": "main", "input": input, **more})
        assert reply.status_code == 200, reply.text
        return valid(reply.json())

    async def stream(self, input: Any, **more: Any) -> list[dict[str, Any]]:
        body = {"model": "main", "input": input, "stream": True, **more}
        reply = await self.http.post("/responses", json=body)
        lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
        assert lines[-1] == "[DONE]"
        events = [json.loads(line) for line in lines[:-1]]
        for event in events:
            EVENT.validate_python(event, strict=False)
        valid(events[-1]["response"])
        return events

    def socket(self) -> connect:
        url = str(self.http.base_url).replace("http", "ws", 1) + "responses"
        bearer = {"Authorization": f"Bearer {self.platform.token}"}
        return connect(url, additional_headers=bearer)

    @property
    def last(self) -> list[dict[str, Any]]:
        """The messages of the last request to the vendor."""
        return list(self.provider.answer_requests[-1].body["messages"])


def valid(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response that has every required field, and the types of OpenAI's client."""
    assert response.keys() >= REQUIRED
    Response.model_validate(response)
    assert response["status"] == "completed" and response["output"]
    return response


async def turn(socket: ClientConnection, **body: Any) -> dict[str, Any]:
    """Send ``response.create``, and return the response of the last event, or the error."""
    await socket.send(json.dumps({"type": "response.create", "model": "main", **body}))
    with anyio.fail_after(30):
        while True:
            event = json.loads(await socket.recv())
            if event["type"] == "error":
                return dict(event["error"])
            EVENT.validate_python(event)
            if event["type"] in TERMINAL:
                return valid(event["response"])


def text_of(response: dict[str, Any]) -> str:
    return Response.model_validate(response).output_text


@pytest.fixture(scope="module")
async def suite(anyio_backend: str) -> AsyncIterator[Suite]:
    with ScriptedProvider(model) as provider:
        async with platform(config=provider.settings) as running:
            headers = {"authorization": f"Bearer {running.token}"}
            async with httpx.AsyncClient(base_url=f"{running.url}/v1/", headers=headers, timeout=60) as http:
                yield Suite(running, provider, http)


def user(text: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


async def test_basic_response(suite: Suite) -> None:
    await suite.create([user("Say hello in exactly 3 words.")])


async def test_assistant_phase(suite: Suite) -> None:
    """History with phase labels is accepted, and reaches the vendor in its order."""
    said = [("commentary", "I should answer with the saved number."), ("final_answer", "The number is four.")]
    history = [
        {"type": "message", "role": "assistant", "phase": phase, "content": text} for phase, text in said
    ]
    answer = await suite.create([*history, user("Repeat only the number.")])
    assert text_of(answer) == "It is four."
    assert [one["content"] for one in suite.last if one["role"] == "assistant"] == [text for _, text in said]


async def test_response_output_phase_schema(suite: Suite) -> None:
    """The output labels what comes before the final answer as commentary. The suite has only a fixture for this."""
    answer = await suite.create([user("What's the weather like in San Francisco?")], tools=[WEATHER])
    final = await suite.create([user("Say hello.")])
    assert [item["phase"] for item in final["output"]] == ["final_answer"]
    assert all(item.get("phase") != "final_answer" for item in answer["output"])


async def test_streaming_response(suite: Suite) -> None:
    events = await suite.stream([user("Count from 1 to 5.")])
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_system_prompt(suite: Suite) -> None:
    pirate = "You are a pirate. Always respond in pirate speak."
    system = {"type": "message", "role": "system", "content": pirate}
    assert text_of(await suite.create([system, user("Say hello.")])) == "Ahoy!"
    assert {"role": "system", "content": pirate} in suite.last


@pytest.mark.parametrize("streaming", [False, True], ids=["tool-calling", "tool-calling-streaming"])
async def test_tool_calling(suite: Suite, streaming: bool) -> None:
    """The suite had a case for the stream, too, which its list of today no longer has."""
    asked = [user("What's the weather like in San Francisco?")]
    if streaming:
        events = await suite.stream(asked, tools=[WEATHER])
        kinds = [(event["type"], event.get("item", {}).get("type")) for event in events]
        assert ("response.output_item.added", "function_call") in kinds
        assert ("response.function_call_arguments.delta", None) in kinds
        assert ("response.function_call_arguments.done", None) in kinds
        assert ("response.output_item.done", "function_call") in kinds
        response = events[-1]["response"]
    else:
        response = await suite.create(asked, tools=[WEATHER])
    (call,) = (item for item in response["output"] if item["type"] == "function_call")
    assert json.loads(call["arguments"]) == {"location": "San Francisco, CA"}


async def test_image_input(suite: Suite) -> None:
    """The image reaches the vendor byte for byte."""
    url = f"data:image/png;base64,{HEART}"
    asked = "What do you see in this image? Answer in one sentence."
    parts = [{"type": "input_text", "text": asked}, {"type": "input_image", "image_url": url}]
    assert text_of(await suite.create([user(parts)])) == "A red heart."
    assert suite.last[-1]["content"][-1]["image_url"]["url"] == url


async def test_multi_turn(suite: Suite) -> None:
    greeting = "Hello Alice! Nice to meet you. How can I help you today?"
    answer = await suite.create(
        [
            user("My name is Alice."),
            {"type": "message", "role": "assistant", "content": greeting},
            user("What is my name?"),
        ]
    )
    assert text_of(answer) == "It is Alice."


async def test_compact_response(suite: Suite) -> None:
    """A conversation becomes its user messages and an item, from which the model knows it again."""
    history = [
        user("We agreed to launch on Tuesday and notify support first."),
        {"type": "message", "role": "assistant", "content": "Understood. The launch is Tuesday."},
    ]
    body = {"model": "main", "prompt_cache_key": "openresponses-compact-test", "input": history}
    reply = await suite.http.post("/responses/compact", json=body)
    compacted = reply.json()
    ResponseInputMessageItem.model_validate(compacted["output"][0])
    ResponseCompactionItem.model_validate(compacted["output"][-1])
    ResponseUsage.model_validate(compacted["usage"])
    assert compacted["object"] == "response.compaction"
    assert [item["type"] for item in compacted["output"]] == ["message", "compaction"]
    answer = await suite.create([compacted["output"][-1], user("When is it?")])
    assert text_of(answer) == "Hello to you." and any(
        "It is Tuesday." in one["content"] for one in suite.last
    )


async def test_compact_missing_model(suite: Suite) -> None:
    reply = await suite.http.post("/responses/compact", json={"input": [user("Compact this conversation.")]})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "model"


async def test_websocket_response(suite: Suite) -> None:
    async with suite.socket() as socket:
        await turn(socket, input=[user("Count from 1 to 3.")])


async def test_websocket_sequential_responses(suite: Suite) -> None:
    async with suite.socket() as socket:
        first = await turn(socket, store=False, input="Reply with exactly: first")
        second = await turn(socket, store=False, input="Reply with exactly: second")
    assert first["id"] != second["id"]


async def test_websocket_continuation(suite: Suite) -> None:
    async with suite.socket() as socket:
        first = await turn(socket, store=False, input="Remember the code word: cobalt. Reply with OK.")
        second = await turn(
            socket, store=False, previous_response_id=first["id"], input="What is the code word?"
        )
    assert text_of(second) == "It is cobalt."


async def test_websocket_reconnect_store_false_recovery(suite: Suite) -> None:
    async with suite.socket() as socket:
        first = await turn(socket, store=False, input="Remember the code word: copper. Reply with OK.")
    async with suite.socket() as socket:
        missed = await turn(socket, store=False, previous_response_id=first["id"], input="Try to continue.")
        assert missed["code"] == "previous_response_not_found"
        await turn(socket, store=False, input=[user("Start a new response.")])


async def test_websocket_previous_response_not_found(suite: Suite) -> None:
    async with suite.socket() as socket:
        missed = await turn(
            socket, store=False, previous_response_id="resp_openresponses_missing_1", input="x"
        )
    assert missed["code"] == "previous_response_not_found"


async def test_websocket_failed_continuation_evicts_cache(suite: Suite) -> None:
    async with suite.socket() as socket:
        first = await turn(socket, store=False, input="Remember the code word: ember. Reply with OK.")
        orphan = {"type": "function_call_output", "call_id": "call_missing", "output": "x"}
        failed = await turn(socket, store=False, previous_response_id=first["id"], input=[orphan])
        assert failed["type"] == "invalid_request_error"
        evicted = await turn(socket, store=False, previous_response_id=first["id"], input="Continue.")
    assert evicted["code"] == "previous_response_not_found"


async def test_websocket_compact_new_chain(suite: Suite) -> None:
    """The output of the compaction begins a new chain on a socket, without ``previous_response_id``."""
    body = {"model": "main", "input": [user("Remember the code word: quartz.")]}
    compacted = (await suite.http.post("/responses/compact", json=body)).json()
    async with suite.socket() as socket:
        answer = await turn(socket, store=False, input=[*compacted["output"], user("What is the code word?")])
    assert text_of(answer) == "It is quartz."
