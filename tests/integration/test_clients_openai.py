"""The official ``openai`` package as a client: a program that was written for OpenAI talks to blocks as models."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.workers.monitor.transcript_repair import UNANSWERED

pytestmark = pytest.mark.anyio

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather somewhere.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
ASKED = 'say:I will look. ;; call:weather {"town": "Ulm"} ;; quote'


class Harness:
    """The platform, its provider, and the client."""

    def __init__(self, running: Platform, provider: ScriptedProvider, client: AsyncOpenAI) -> None:
        self.platform, self.provider, self.client = running, provider, client

    async def ask(self, *messages: Any, **given: Any) -> Any:
        said = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
        return await self.client.chat.completions.create(model="main", messages=said, **given)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [request.body for request in self.provider.answer_requests]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Harness]:
    """One platform for all tests of the module: each has conversations of its own."""
    with ScriptedProvider() as provider:
        config = provider.settings
        async with (
            platform(config=config) as running,
            AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token, timeout=30) as client,
        ):
            yield Harness(running, provider, client)


@pytest.fixture
def harness(shared: Harness) -> Harness:
    """The shared one, whose provider has seen nothing."""
    shared.provider.forget()
    return shared


async def test_an_answer_without_streaming(harness: Harness) -> None:
    """Content, finish reason, usage and model are there; our own tools ran without the client noticing."""
    answer = await harness.ask('call:list_directory {"path": "."} ;; say:All done.')
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, answer.model) == ("All done.", "stop", "main")
    assert choice.message.tool_calls is None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert len(harness.asked) == 2


async def test_a_stream(harness: Harness) -> None:
    """Chunks arrive while the model writes, make up the text, and end with a reason and, on request, the usage."""
    stream = await harness.ask("slow:12:20", stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    texts = [
        chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content
    ]
    assert "".join(texts).split() == [f"word-{number}" for number in range(1, 13)] and len(texts) > 3
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 12
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_clients_tools_in_two_rounds(harness: Harness) -> None:
    """A tool of the client is returned as a call; its result, sent with the transcript, lets the model continue."""
    first = await harness.ask(ASKED, tools=[WEATHER])
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls" and message.content == "I will look."
    (call,) = message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"town": "Ulm"})
    result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    second = await harness.ask(ASKED, message, result, tools=[WEATHER])
    assert second.choices[0].message.content == "weather said: rain"
    roles = [one["role"] for one in harness.asked[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert harness.asked[-1]["messages"][2]["content"] == "I will look."
    offered = [tool["function"]["name"] for tool in harness.asked[-1]["tools"]]
    assert "weather" in offered and "read_file" in offered


async def test_the_clients_tools_in_a_stream(harness: Harness) -> None:
    """The package's own accumulation of deltas finds the same calls, two of one answer too."""
    program = 'say:Both. ;; parallel:weather {"town": "Ulm"} weather {"town": "Bonn"} ;; quote'
    async with harness.client.chat.completions.stream(
        model="main", messages=[{"role": "user", "content": program}], tools=[WEATHER]
    ) as stream:
        async for _ in stream:
            pass
        message = (await stream.get_final_completion()).choices[0].message
    assert message.content == "Both." and message.tool_calls
    towns = [json.loads(call.function.arguments)["town"] for call in message.tool_calls]
    assert towns == ["Ulm", "Bonn"] and len({call.id for call in message.tool_calls}) == 2
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"sun in {town}"}
        for call, town in zip(message.tool_calls, towns, strict=True)
    ]
    said = {
        "role": "assistant",
        "content": "Both.",
        "tool_calls": [c.model_dump() for c in message.tool_calls],
    }
    second = await harness.ask(program, said, *results, tools=[WEATHER])
    assert second.choices[0].message.content == "weather said: sun in Ulm\nweather said: sun in Bonn"


async def test_our_tools_beside_the_clients(harness: Harness) -> None:
    """In one turn our tools run here and only the client's call is returned to it."""
    first = await harness.ask(
        'call:write_file {"path": "a.md", "content": "x"} ;; call:weather {"town": "Ulm"}', tools=[WEATHER]
    )
    assert [call.function.name for call in first.choices[0].message.tool_calls] == ["weather"]
    assert (harness.platform.home.workspace("main") / "a.md").read_text() == "x"


async def test_a_conversation_is_kept_or_not(harness: Harness) -> None:
    """Without an id the transcript is all that counts; with ``X-Conversation-ID`` the stored conversation continues."""
    raw = await harness.client.chat.completions.with_raw_response.create(
        model="main", messages=[{"role": "user", "content": "say:one"}]
    )
    header = {"X-Conversation-ID": raw.headers["x-conversation-id"]}
    await harness.ask("say:two", extra_headers=header)
    assert [one["content"] for one in harness.asked[-1]["messages"][1:]] == ["say:one", "one", "say:two"]
    await harness.ask({"role": "system", "content": "Be kind."}, "say:three")
    contents = [one["content"] for one in harness.asked[-1]["messages"]]
    assert contents[-2:] == ["Be kind.", "say:three"] and "one" not in contents


async def test_models_are_blocks(harness: Harness) -> None:
    """They are listed, and one can be asked about; a name that is none is OpenAI's own error."""
    await harness.platform.gateway.create_block("garden")
    assert {model.id async for model in harness.client.models.list()} == {"main", "garden"}
    assert (await harness.client.models.retrieve("garden")).owned_by == "trunkline"
    with pytest.raises(openai.NotFoundError) as unknown:
        await harness.client.chat.completions.create(
            model="gpt-nothing", messages=[{"role": "user", "content": "x"}]
        )
    assert unknown.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"messages": []}, openai.BadRequestError),
        ({"n": 2}, openai.BadRequestError),
        ({"temperature": 3.0}, openai.BadRequestError),
        ({"tools": [{"type": "web_search"}]}, openai.BadRequestError),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
         openai.BadRequestError),
        ({"messages": [{"role": "user", "content": "x" * 2000}]}, openai.APIStatusError),
    ],
)  # fmt: skip
async def test_unsupported_requests_are_refused(
    harness: Harness, given: dict[str, Any], error: type[Exception]
) -> None:
    """The package raises its own exception for it, and no model is asked."""
    if "x" * 2000 in str(given):
        given = {"messages": [{"role": "user", "content": "x" * 1_000_001}]}
    request: dict[str, Any] = {"model": "main", "messages": [{"role": "user", "content": "say:hi"}], **given}
    with pytest.raises(error):
        await harness.client.chat.completions.create(**request)
    assert harness.asked == []


async def test_a_wrong_key_is_an_authentication_error(harness: Harness) -> None:
    """The form is OpenAI's."""
    with pytest.raises(openai.AuthenticationError) as refused:
        await harness.client.with_options(api_key="sk-wrong").models.list()
    assert refused.value.code == "invalid_api_key"


async def test_limits_are_passed_on(harness: Harness) -> None:
    """Temperature and the limit of tokens reach the provider; an answer that it cuts says ``length``."""
    answer = await harness.ask("limit:4", temperature=0.5, max_completion_tokens=4)
    assert answer.choices[0].finish_reason == "length"
    sent = harness.asked[-1]
    assert sent["temperature"] == 0.5 and 4 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))


@dataclass(frozen=True)
class Chat:
    """A chat of the client in one conversation, by the header."""

    harness: Harness
    id: str

    async def stored(self) -> list[tuple[str, str]]:
        view = await self.harness.platform.gateway.conversation(self.id, include_tools=True)
        return [(message.role, message.content) for message in view.messages]

    async def ask(self, *messages: Any) -> Any:
        return await self.harness.ask(
            *messages, tools=[WEATHER], extra_headers={"X-Conversation-ID": self.id}
        )


async def begun(harness: Harness, program: str) -> tuple[Chat, Any]:
    raw = await harness.client.chat.completions.with_raw_response.create(
        model="main", messages=[{"role": "user", "content": program}], tools=[WEATHER]
    )
    return Chat(harness, raw.headers["x-conversation-id"]), raw.parse().choices[0].message


MIXED = 'parallel:list_directory {"path": "."} weather {"town": "Ulm"} ;; quote'


async def test_a_call_that_the_client_never_answers(harness: Harness) -> None:
    """The conversation continues, by the header or by the transcript: the model is told that the result is missing."""
    chat, message = await begun(harness, ASKED)
    assert (await chat.ask("say:Never mind.")).choices[0].message.content == "Never mind."
    sent = harness.asked[-1]["messages"]
    assert [one["role"] for one in sent[1:]] == ["user", "assistant", "tool", "user"]
    assert sent[3] == {"role": "tool", "tool_call_id": sent[2]["tool_calls"][0]["id"], "content": UNANSWERED}
    replayed = await harness.ask(ASKED, message.model_dump(exclude_none=True), "say:Later.", tools=[WEATHER])
    assert replayed.choices[0].message.content == "Later."
    assert harness.asked[-1]["messages"][3]["content"] == UNANSWERED


async def test_a_late_result_of_a_call_that_is_settled_is_refused(harness: Harness) -> None:
    """By the header too: the conversation continued without it, so the result has no open call."""
    chat, message = await begun(harness, ASKED)
    await chat.ask("say:Never mind.")
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
    before = len(harness.asked)
    with pytest.raises(openai.BadRequestError) as refused:
        await chat.ask(result)
    assert refused.value.param == "messages[0].tool_call_id" and len(harness.asked) == before
    with pytest.raises(openai.BadRequestError):
        await chat.ask({**result, "tool_call_id": "zz"})
    assert (await chat.ask("say:Go on.")).choices[0].message.content == "Go on."


async def test_our_results_and_the_clients_in_one_conversation(harness: Harness) -> None:
    """With the header, the client's result joins the stored ones: ours is still there, and nothing is stored twice."""
    chat, message = await begun(harness, MIXED)
    [call] = message.tool_calls
    replayed = [MIXED, message.model_dump(exclude_none=True)]
    result = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    answer = (await chat.ask(*replayed, result)).choices[0].message.content
    assert "weather said: rain" in answer and "list_directory said:" in answer
    roles = [role for role, _ in await chat.stored()]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    late = await chat.ask(*replayed, result, {"role": "assistant", "content": answer}, "roles")
    assert late.choices[0].message.content.split()[-1] == "user"
    assert len(await chat.stored()) == 7


async def test_a_result_and_words_come_together(harness: Harness) -> None:
    """A client may bring a result and say something in one request: both reach the model."""
    chat, message = await begun(harness, ASKED)
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
    await chat.ask(ASKED, message.model_dump(exclude_none=True), result, "say:Thanks.")
    assert [one["content"] for one in harness.asked[-1]["messages"][-2:]] == ["rain", "say:Thanks."]


@pytest.mark.parametrize("written", ['{"town": "Ulm', "town=Ulm", '{"town": NaN}', '{"": "x"}', '["Ulm"]'])
async def test_broken_arguments_reach_the_client_as_they_were_written(harness: Harness, written: str) -> None:
    """They are unchanged byte for byte, streamed or whole. The client may send them back, and the model receives its
    own text, as JSON."""
    program = f"badcall:weather {written} ;; say:I see."
    answer = await harness.ask(program, tools=[WEATHER])
    message = answer.choices[0].message
    assert message.tool_calls[0].function.arguments == written
    stream = await harness.ask(program, tools=[WEATHER], stream=True)
    deltas = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or ()]
    assert "".join(delta.function.arguments for delta in deltas) == written
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "That was no JSON."}
    again = await harness.ask(program, message.model_dump(exclude_none=True), result, tools=[WEATHER])
    assert again.choices[0].message.content == "I see."
    sent = harness.asked[-1]["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"": written}
