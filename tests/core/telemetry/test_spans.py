"""The names and attributes of spans, as a running platform sends them to the bus."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.contracts.workers.subjects import SPANS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline_bus import Endpoint, Payload, RemoteFault, Subject, service

pytestmark = pytest.mark.anyio

ID = re.compile(r"(conv|turn|msg|call|sub|ask|err|req)_\w+|\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{16,}\b")
"""An id as the platform, a model or a trace writes one."""


class Note(Payload, frozen=True, kw_only=True, tag="test.telemetry.note.v1"):
    """A request and its reply."""

    fails: bool = False


LOOK = Endpoint("look", Subject("test.telemetry.look"), Note, Note, root=False)

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@asynccontextmanager
async def traced(**config: Any) -> AsyncIterator[tuple[Platform, list[SpanRecord]]]:
    """A platform and the spans that it has sent so far."""
    spans: list[SpanRecord] = []

    async def collect(message: Any) -> None:
        spans.extend(message.data.spans)

    with ScriptedProvider() as provider:
        settings = {**provider.settings, **config}
        async with platform(config=settings) as running:
            await running.bus.subscribe(SPANS, collect)
            yield running, spans


async def until(due: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while True:
            if due():
                return
            await anyio.sleep(0.02)


def named(spans: list[SpanRecord], begin: str) -> list[SpanRecord]:
    return [span for span in spans if span.name.startswith(begin)]


def ended(spans: list[SpanRecord], begin: str) -> list[SpanRecord]:
    return [span for span in named(spans, begin) if not span.unfinished]


async def decided(running: Platform, turn: str) -> None:
    """Say yes by HTTP, once the question is there: this request's path has the turn's and the call's id."""
    waiting: list[Any] = []
    with anyio.fail_after(60):
        while not waiting:
            await anyio.sleep(0.02)
            waiting = [one for one in await running.gateway.waiting() if one.turn == turn]
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        path = f"/api/turns/{turn}/calls/{waiting[0].call}/decision"
        answer = await http.post(path, json={"hash": waiting[0].call_hash, "allow": True})
        assert answer.is_success, answer.text


def answered(spans: list[SpanRecord]) -> list[SpanRecord]:
    """The model calls that came to their end; one that was cut and asked again has a span too."""
    return [span for span in named(spans, "chat") if "gen_ai.response.finish_reasons" in span.attributes]


async def test_a_model_call_span_names_the_model() -> None:
    """Without a configured model, the span has the model that the adapter chose."""
    async with traced() as (running, spans):
        await running.say("say:hi")
        await until(lambda: bool(answered(spans)))
        await until(lambda: bool(ended(spans, "invoke_agent")))
    for span in (*answered(spans), *ended(spans, "invoke_agent")):
        assert span.attributes["gen_ai.provider.name"] == "openai"
        assert span.attributes["gen_ai.request.model"] == "scripted"
        assert span.attributes["gen_ai.response.model"] == "scripted"
        assert span.attributes["trunkline.model.label"] == "openai/scripted"


async def test_no_attribute_is_empty() -> None:
    """An unknown value is omitted: a consumer would read "" as a model without a name."""
    async with traced(**{"runtime.provider_adapter": "offline"}) as (running, spans):
        await running.say("hello")
        await until(lambda: bool(ended(spans, "invoke_agent")))
    assert [(s.name, k) for s in spans for k, value in s.attributes.items() if value == ""] == []
    [turn] = ended(spans, "invoke_agent")
    assert turn.attributes["trunkline.model.label"].startswith("offline")


async def test_an_approved_call_is_one_tool_span() -> None:
    """It is asked about in a span of another name, without what makes a collector take a span for a call."""
    program = 'call:write_file {"path": "a.md", "content": "x"} ;; say:written'
    async with traced(**{"permissions.approvals": "some"}) as (running, spans):
        accepted = await running.send(program)
        await decided(running, accepted.turn)
        await running.answer(accepted)
        await until(lambda: bool(ended(spans, "execute_tool")))
        await until(lambda: len(ended(spans, "invoke_agent")) == 2)
    [asked], [run] = ended(spans, "request_approval"), ended(spans, "execute_tool")
    assert (asked.name, run.name) == ("request_approval write_file", "execute_tool write_file")
    assert asked.attributes["trunkline.tool.call.id"] == run.attributes["gen_ai.tool.call.id"]
    assert "gen_ai.operation.name" not in asked.attributes
    assert [key for key in asked.attributes if key.startswith("gen_ai.tool")] == []
    assert asked.trace_id == run.trace_id
    assert [span.name for span in spans if ID.search(span.name)] == []


async def test_content_is_captured_when_configured() -> None:
    """The requests and outputs of models and tools are captured, by the conventions; keys are removed."""
    program = f'call:list_directory {{"path": "."}} ;; say:The key is {KEY}'
    async with traced(**{"telemetry.capture_content": True}) as (running, spans):
        await running.say(program)
        await until(lambda: len(answered(spans)) == 2 and bool(named(spans, "execute_tool")))
    first, second = sorted(answered(spans), key=lambda span: span.start)
    [asked] = json.loads(first.attributes["gen_ai.output.messages"])
    assert (asked["role"], asked["finish_reason"]) == ("assistant", "tool_calls")
    [call] = [part for part in asked["parts"] if part["type"] == "tool_call"]
    assert (call["name"], json.loads(call["arguments"])) == ("list_directory", {"path": "."})
    reported = json.loads(second.attributes["gen_ai.input.messages"])
    assert [one["role"] for one in reported][-3:] == ["user", "assistant", "tool"]
    assert reported[-1]["parts"][0]["type"] == "tool_call_response"
    assert json.loads(first.attributes["gen_ai.system_instructions"])[0]["content"]
    [said] = json.loads(second.attributes["gen_ai.output.messages"])
    assert said["parts"][0]["content"].startswith("The key is ")
    assert KEY not in json.dumps([span.attributes for span in spans])


async def test_content_is_not_captured_by_default() -> None:
    """No span has a word of it."""
    async with traced() as (running, spans):
        await running.say('call:list_directory {"path": "."} ;; say:heliotrope')
        await until(lambda: len(answered(spans)) == 2)
    assert "heliotrope" not in json.dumps([span.attributes for span in spans])


async def test_root_spans_are_named_by_their_route() -> None:
    """Span names contain no id of a turn, call, block or conversation, and no unknown path."""
    async with traced() as (running, spans):
        headers = {"authorization": f"Bearer {running.token}"}
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
            first = await http.post("/conversations/messages", json={"content": "say:hi"})
            conversation, turn = first.headers["x-conversation-id"], first.headers["x-turn-id"]
            await http.post(f"/conversations/{conversation}/messages", json={"content": "say:hi"})
            decision = {"hash": "x", "allow": True}
            await http.post(f"/api/turns/{turn}/calls/call_3_0/decision", json=decision)
            await http.post("/api/blocks/garden/archive")
            await http.post(f"/nowhere/{turn}")
        await until(lambda: len(ended(spans, "POST")) == 5)
    assert [span.name for span in spans if ID.search(span.name)] == []
    assert {span.name for span in ended(spans, "POST")} == {
        "POST /conversations/messages",
        "POST /conversations/{id}/messages",
        "POST /api/turns/{id}/calls/{call}/decision",
        "POST /api/blocks/{name}/archive",
        "POST",
    }


async def test_a_made_up_tool_gives_no_span_its_name() -> None:
    """A model may put anything there, ids included; the attribute has it."""
    async with traced() as (running, spans):
        await running.say("call:open_turn_0123456789abcdef {} ;; say:no")
        await until(lambda: bool(ended(spans, "execute_tool")))
    [span] = ended(spans, "execute_tool")
    assert (span.name, span.attributes["gen_ai.tool.name"]) == ("execute_tool", "open_turn_0123456789abcdef")
    assert span.attributes["error.type"] == "not_found"


async def test_housekeeping_makes_no_spans() -> None:
    """Lists, views and the workers' own reads make no trace; each trace belongs to a person's or a model's action."""
    async with traced() as (running, spans):
        await running.gateway.conversations(ListConversations())
        await running.gateway.blocks()
        await running.gateway.waiting()
        answer = await running.say("say:hi")
        await running.gateway.conversation(answer.accepted.conversation)
        await until(lambda: bool(ended(spans, "store conversation")))
        await running.say("say:end", conversation=answer.accepted.conversation)
        await until(lambda: len(ended(spans, "store conversation")) == 2)
    roots = {span.name for span in spans if span.parent_id is None}
    assert roots == {"process trunkline.cmd.gateway.{channel}.send"}


async def test_housekeeping_that_fails_is_a_trace() -> None:
    """A failed job makes one span, with the type of the failure; the successful request before it makes none."""

    async def look(request: Any) -> Note:
        if request.data.fails:
            raise LookupError("the secret that somebody said")
        return Note()

    async with traced() as (running, spans):
        async with service(running.bus, name="looking", version="1.0.0") as looking:
            await looking.add(LOOK, look)
            await running.bus.call(LOOK, Note())
            with pytest.raises(RemoteFault):
                await running.bus.call(LOOK, Note(fails=True))
        await until(lambda: bool(ended(spans, "process test.telemetry")))
    [failed] = ended(spans, "process test.telemetry")
    assert (failed.status, failed.parent_id, failed.message) == ("error", None, "LookupError")
    assert failed.attributes["error.type"] == "LookupError"
