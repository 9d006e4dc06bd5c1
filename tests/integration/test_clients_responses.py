"""The official ``openai`` package uses the Responses API of a whole platform, as it would use OpenAI's."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import openai
import pydantic
import pytest
from openai import AsyncOpenAI

from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather somewhere.",
    "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
}


class Report(pydantic.BaseModel):
    """What the client wants to know."""

    sea: Literal["calm", "rough"]
    waves: int


class Harness:
    """The platform, its vendor, and the client."""

    def __init__(self, running: Platform, provider: ScriptedProvider, client: AsyncOpenAI) -> None:
        self.platform, self.provider, self.client = running, provider, client

    async def ask(self, input: Any, **given: Any) -> Any:
        return await self.client.responses.create(model="main", input=input, **given)

    @property
    def asked(self) -> dict[str, Any]:
        """The last request to the vendor."""
        return dict(self.provider.answer_requests[-1].body)


@pytest.fixture(scope="module")
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    with ScriptedProvider() as provider:
        async with (
            platform(config=provider.settings) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, max_retries=0) as client,
        ):
            yield Harness(running, provider, client)


async def test_our_tools_run_and_are_not_shown(harness: Harness) -> None:
    before = len(harness.provider.answer_requests)
    answer = await harness.ask('call:list_directory {"path": "."} ;; say:All done.')
    assert (answer.output_text, answer.status) == ("All done.", "completed")
    assert [item.type for item in answer.output] == ["message"]
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0
    assert len(harness.provider.answer_requests) == before + 2


async def test_the_stream_helper(harness: Harness) -> None:
    """The package's own accumulation of events finds the text and the calls of the client's tools."""
    program = 'say:Both. ;; parallel:weather {"town": "Ulm"} weather {"town": "Bonn"} ;; quote'
    async with harness.client.responses.stream(model="main", input=program, tools=[WEATHER]) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert final.output_text == "Both."
    calls = [item for item in final.output if item.type == "function_call"]
    assert [json.loads(call.arguments)["town"] for call in calls] == ["Ulm", "Bonn"]
    results: Any = [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"sun in {number}"}
        for number, call in enumerate(calls)
    ]
    answer = await harness.ask(results, previous_response_id=final.id, tools=[WEATHER])
    assert answer.output_text == "weather said: sun in 0\nweather said: sun in 1"
    roles = [one["role"] for one in harness.asked["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool"]


async def test_a_loop_without_server_state(harness: Harness) -> None:
    """A client that stores nothing sends the output back, and the vendor gets one conversation in its order."""
    items: list[Any] = [{"role": "user", "content": 'say:I look. ;; call:weather {"town": "Ulm"} ;; quote'}]
    first = await harness.ask(items, tools=[WEATHER], store=False)
    items += [item.model_dump(exclude_none=True) for item in first.output]
    call = first.output[-1]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
    second = await harness.ask(items, tools=[WEATHER], store=False)
    assert second.output_text == "weather said: rain"
    assert [one["role"] for one in harness.asked["messages"]] == ["system", "user", "assistant", "tool"]
    assert harness.asked["messages"][2]["content"] == "I look."


async def test_items_by_reference(harness: Harness) -> None:
    """A client that names the items of stored responses by their ids continues its conversation, as with the items."""
    items: list[Any] = [{"role": "user", "content": 'say:I look. ;; call:weather {"town": "Ulm"} ;; quote'}]
    first = await harness.ask(items, tools=[WEATHER])
    items += [{"type": "item_reference", "id": item.id} for item in first.output]
    items.append({"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "rain"})
    second = await harness.ask(items, tools=[WEATHER])
    assert second.output_text == "weather said: rain"
    assert [one["role"] for one in harness.asked["messages"]] == ["system", "user", "assistant", "tool"]
    wrong = [{"type": "item_reference", "id": first.output[0].id + "9"}, {"role": "user", "content": "say:x"}]
    with pytest.raises(openai.BadRequestError):
        await harness.ask(wrong)


async def test_parse_returns_the_clients_type(harness: Harness) -> None:
    """``parse`` of both surfaces, which ask the vendor for the same format."""
    answer = await harness.client.responses.parse(
        model="main", input='say:{"sea": "calm", "waves": 3}', text_format=Report
    )
    assert answer.output_parsed == Report(sea="calm", waves=3)
    by_responses = [one for one in harness.asked["messages"] if one["role"] == "system"]
    assert any("waves" in one["content"] for one in by_responses)
    chat = await harness.client.chat.completions.parse(
        model="main",
        messages=[{"role": "user", "content": 'say:{"sea": "calm", "waves": 3}'}],
        response_format=Report,
    )
    assert chat.choices[0].message.parsed == Report(sea="calm", waves=3)
    assert [one for one in harness.asked["messages"] if one["role"] == "system"] == by_responses


async def test_tool_choice_reaches_the_vendor_from_both_surfaces(harness: Harness) -> None:
    """Every form means the same on both surfaces."""
    nested = {"type": "function", "function": {name: WEATHER[name] for name in ("name", "parameters")}}
    chosen = {"type": "function", "name": "weather"}
    forms: tuple[tuple[Any, Any], ...] = (
        ("required", "required"),
        (chosen, {"type": "function", "function": {"name": "weather"}}),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [chosen]},
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "weather"}}],
                },
            },
        ),
    )
    called = 'call:weather {"town": "Ulm"}'
    for responses, chat in forms:
        await harness.ask(called, tools=[WEATHER], tool_choice=responses)
        by_responses = harness.asked["tool_choice"]
        await harness.client.chat.completions.create(
            model="main",
            messages=[{"role": "user", "content": called}],
            tools=[nested],  # type: ignore[list-item]
            tool_choice=cast("Any", chat),
        )
        assert harness.asked["tool_choice"] == by_responses
    for none in ("none", "auto"):
        await harness.ask("say:x", tools=[WEATHER], tool_choice=none)
        offered = [tool["function"]["name"] for tool in harness.asked["tools"]]
        assert ("weather" in offered) == (none == "auto") and "read_file" in offered


async def test_sampling_reaches_the_vendor(harness: Harness) -> None:
    """Options that the model takes are sent, on both surfaces; others are not, and are no error."""
    await harness.ask("say:x", temperature=0.5, top_p=0.25, max_output_tokens=77, reasoning={"effort": "low"})
    asked = harness.asked
    assert (asked["temperature"], asked["top_p"]) == (0.5, 0.25)
    assert 77 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    await harness.client.chat.completions.create(
        model="main", messages=[{"role": "user", "content": "say:x"}], temperature=0.5, top_p=0.25
    )
    assert harness.asked["top_p"] == 0.25


async def test_instructions_hold_for_one_response(harness: Harness) -> None:
    """The next response of the chain has its own, and the conversation stores none."""
    first = await harness.client.responses.with_raw_response.create(
        model="main", input="say:x", instructions="Be a pirate."
    )
    assert {"role": "system", "content": "Be a pirate."} in harness.asked["messages"]
    await harness.ask("say:y", previous_response_id=first.parse().id)
    assert "pirate" not in json.dumps(harness.asked["messages"])
    stored = await harness.platform.gateway.conversation(first.headers["x-conversation-id"])
    assert [message.role for message in stored.messages] == ["user", "assistant", "user", "assistant"]


async def test_input_tokens_are_estimated(harness: Harness) -> None:
    """No vendor is asked. The client's input, instructions and tools count, and the conversation before, without what
    came after the response. The estimate is within a factor of two of the words."""
    text = "The sea was calm this morning. " * 40
    count = harness.client.responses.input_tokens.count
    first = await harness.ask(f"say:{text}")
    await harness.ask("say:later " * 200, previous_response_id=first.id)
    before = len(harness.provider.requests)
    short = await count(model="main", input="hi")
    assert (short.object, short.input_tokens < 20) == ("response.input_tokens", True)
    long = (await count(model="main", input=text)).input_tokens
    assert 240 / 2 < long < 2 * 240
    assert (await count(model="main", input="hi", instructions=text)).input_tokens >= long
    assert (await count(input="hi", tools=[WEATHER])).input_tokens > short.input_tokens
    continued = (await count(input="hi", previous_response_id=first.id)).input_tokens
    assert 2 * long <= continued < 2.5 * long, "question and answer of the first response"
    assert len(harness.provider.requests) == before
    told = await harness.platform.say(f"say:{text}")
    assert (await count(input="hi", conversation=told.accepted.conversation)).input_tokens >= 2 * long
    for given, param in (
        ({"input": [{"type": "robot"}]}, "input[0].type"),
        ({"model": "attic"}, "model"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"previous_response_id": first.id, "conversation": "conv_x"}, "previous_response_id"),
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await count(**given)  # type: ignore[arg-type]
        assert refused.value.body["param"] == param, given  # type: ignore[index]
    with pytest.raises(openai.NotFoundError):
        await count(conversation="conv_x")


async def test_a_chain_over_the_clients_socket(harness: Harness) -> None:
    """The package's connection has the events of one response after the other, and the second continues the first."""
    async with harness.client.responses.connect() as connection:
        first = await _completed(connection, "say:one")
        second = await _completed(connection, "roles", previous_response_id=first.id)
    assert first.output_text == "one"
    assert second.output_text.split() == ["system", "user", "assistant", "user"]


async def _completed(connection: Any, input: str, **given: Any) -> Any:
    await connection.response.create(model="main", input=input, **given)
    async for event in connection:
        if event.type == "response.completed":
            return event.response
        assert event.type != "error", event
    raise AssertionError("the connection ended before the response")


async def test_background_cancel(harness: Harness) -> None:
    """A response in the background is queued at once, can be polled, and ends when it is cancelled."""
    queued = await harness.ask("slow:500:50", background=True)
    assert (queued.status, queued.output) == ("queued", [])
    with anyio.fail_after(30):
        while (await harness.client.responses.retrieve(queued.id)).status == "queued":  # noqa: ASYNC110
            await anyio.sleep(0.01)
    cancelled = await harness.client.responses.cancel(queued.id)
    assert (cancelled.status, cancelled.background) == ("cancelled", True)
    assert (await harness.client.responses.cancel(queued.id)).status == "cancelled"


async def test_background_is_resumed_after_a_restart(tmp_path: Path) -> None:
    """The platform is restarted while the response is written: the stream continues after the last event that
    arrived, with no gap and no repetition."""
    with ScriptedProvider() as provider:
        events: list[Any] = []
        async with platform(tmp_path, config=provider.settings) as running:
            async with AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token) as client:
                stream = await client.responses.create(
                    model="main", input="slow:60:30", background=True, stream=True
                )
                async for event in stream:
                    events.append(event)
                    if len(events) == 12:
                        break
                await stream.close()
            id = events[0].response.id
        async with (
            platform(tmp_path, config=provider.settings) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token) as client,
        ):
            rest = await client.responses.retrieve(id, stream=True, starting_after=events[-1].sequence_number)
            events += [event async for event in rest]
            whole = await client.responses.retrieve(id)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas).split() == [f"word-{number}" for number in range(1, 61)]
    assert events[-1].response.output_text == whole.output_text == "".join(deltas)


async def test_a_failed_model_call(harness: Harness) -> None:
    """The status of the vendor's failure as on the chat surface, in OpenAI's exceptions, and no automatic retry."""
    before = len(harness.provider.answer_requests)
    with pytest.raises(openai.APIStatusError) as failed:
        await harness.client.with_options(max_retries=2).responses.create(model="main", input="status:400")
    assert failed.value.status_code == 502 and failed.value.code == "provider_error"
    assert len(harness.provider.answer_requests) == before + 1
