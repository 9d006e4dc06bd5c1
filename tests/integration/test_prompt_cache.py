"""Prompt caches: each request of a conversation begins with the bytes of the request before it, for every vendor.

The requests are those at the wire, without the marks of the vendors' caches, which move to the end by design. ADR 62
explains the one exception: reasoning of turns that have ended.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.api.gateway import SendMessage
from trunkline.api.model import Finish, ModelAdapter
from trunkline.config.settings import MonitorSettings
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.turns.feed_messages import ApprovalRequested, TextDelta
from trunkline.contracts.workers.subjects import SPANS
from trunkline.telemetry import semconv
from trunkline.telemetry.trace_tree import span_notes
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.vendor_apis.bedrock_authorization import ACCESS_KEY, SECRET_KEY

pytestmark = pytest.mark.anyio

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
AS_SHIPPED = {"monitor.discovery_threshold": MonitorSettings().discovery_threshold}


def _openai(api: str, provider: ScriptedProvider) -> dict[str, Any]:
    return {**provider.settings, "adapters.openai.api": api}


def _of(adapter: str, address: str, **more: str) -> Callable[[ScriptedProvider], dict[str, Any]]:
    return lambda provider: {
        "runtime.provider_adapter": adapter,
        f"adapters.{adapter}": {address: provider.address, **more},
    }


VENDORS: dict[str, Callable[[ScriptedProvider], dict[str, Any]]] = {
    "chat": lambda provider: _openai("chat", provider),
    "responses": lambda provider: _openai("responses", provider),
    "anthropic": _of("anthropic", "base_url", model="claude-sonnet-4-5"),
    "gemini": _of("gemini", "base_url", model="gemini-3.8-flash"),
    "ollama": _of("ollama", "base_url", model="scripted"),
    "bedrock": _of("bedrock", "endpoint_url", model=CLAUDE, region="us-east-1"),
}

RESTARTED = ("chat", "anthropic")
"""The vendors with a restart in the conversation. What a restart could change is made before the adapters, for all."""

MARKS = {"cache_control", "cachePoint"}
REASONING = {"thoughtSignature", "thinking", "reasoning", "reasoningContent"}


class WireRequest:
    """A request as the vendor's cache sees it: tools, then the system, then the messages."""

    def __init__(self, body: dict[str, Any], *, ended: bool) -> None:
        """With ``ended``, the reasoning is left out, as that of a turn that has ended."""
        plain = _without(body, MARKS | (REASONING if ended else set()))
        tools = plain.get("tools") or plain.get("toolConfig", {}).get("tools") or []
        nested = [one for tool in tools for one in tool.get("functionDeclarations", ())]
        self.tools = [json.dumps(tool) for tool in nested or tools]
        systems = ("system", "systemInstruction", "instructions")
        self.system = [json.dumps(plain[name]) for name in systems if name in plain]
        said = plain.get("messages") or plain.get("input") or plain.get("contents")
        self.messages = [json.dumps(message) for message in said]

    def begins_with(self, before: "WireRequest") -> bool:
        """Report whether everything of the request before is where it was. Tools may be added at the end."""
        return (
            self.tools[: len(before.tools)] == before.tools
            and self.system == before.system
            and self.messages[: len(before.messages)] == before.messages
        )


def _without(value: Any, keys: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, keys) for key, one in value.items() if key not in keys}
    if isinstance(value, list):
        cleaned = [_without(one, keys) for one in value if not (isinstance(one, dict) and _is(one, keys))]
        return cleaned
    return value


def _is(item: dict[str, Any], keys: set[str]) -> bool:
    """Report whether an item of a list is nothing but a mark or reasoning."""
    return set(item) <= keys or item.get("type") in keys


class Talk:
    """One conversation, and the turn of each request."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider
        self.conversation: str | None = None
        self.turns: list[str] = []

    async def say(self, running: Platform, text: str, *, steer: str = "") -> None:
        """Say something, approve what is asked for, and steer the turn once it writes."""
        send = running.gateway.send
        accepted = await send(SendMessage(content=text, conversation=self.conversation))
        self.conversation = accepted.conversation
        async for event in running.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, ApprovalRequested):
                await running.gateway.decide(accepted.turn, event.call.id, event.call_hash, allow=True)
            elif steer and isinstance(event, TextDelta):
                await send(SendMessage(content=steer, conversation=self.conversation, steer=accepted.turn))
                steer = ""
        self.turns += [accepted.turn] * (len(self.provider.answer_requests) - len(self.turns))

    def check(self) -> None:
        """Compare each request with the one before it. Ended reasoning never breaks more than the last turn: the first
        request of that turn is the beginning of the next turn's, reasoning included."""
        bodies = [request.body for request in self.provider.answer_requests]
        for number in range(1, len(bodies)):
            ended = self.turns[number] != self.turns[number - 1]
            before, now = (WireRequest(bodies[n], ended=ended) for n in (number - 1, number))
            assert now.begins_with(before), f"request {number} of {len(bodies)}"
            if ended:
                first = WireRequest(bodies[self.turns.index(self.turns[number - 1])], ended=False)
                assert WireRequest(bodies[number], ended=False).begins_with(first), f"turn of {number}"


@asynccontextmanager
async def talking(vendor: str, home: Path, provider: ScriptedProvider) -> AsyncIterator[Platform]:
    async with platform(home, config={**VENDORS[vendor](provider), **AS_SHIPPED}) as running:
        yield running


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_every_request_begins_with_the_one_before_it(vendor: str, tmp_path: Path) -> None:
    """Through tool steps with reasoning, loading of tools, an approval, steering, and a restart with another monitor.
    The first conversation of an installation is not looked at: only its first message asks who the owner is."""
    with ScriptedProvider() as provider:
        async with talking(vendor, tmp_path, provider) as running:
            await running.say("say:Who are you?")
            talk = Talk(provider)
            provider.forget()
            await talk.say(running, "say:Hello.")
            await talk.say(running, "think:Look. ;; call:current_time {} ;; think:So. ;; say:Now.")
            await talk.say(running, 'call:load_tools {"names": ["web_search"]} ;; say:Loaded.')
            await talk.say(running, 'call:write_file {"path": "a.txt", "content": "x"} ;; say:Written.')
            await talk.say(running, "slow:30:30 ;; call:current_time {} ;; say:Never.", steer="say:Steered.")
        if vendor in RESTARTED:
            async with talking(vendor, tmp_path, provider) as running:
                await talk.say(running, "say:Here again.")
                await talk.say(running, "say:And again.")
        assert len(talk.turns) == len(set(talk.turns)) + 4
        assert len(WireRequest(provider.answer_requests[-1].body, ended=True).tools) > 10
        talk.check()


@pytest.mark.parametrize("vendor", RESTARTED)
async def test_old_results_change_the_beginning_rarely(vendor: str, tmp_path: Path) -> None:
    """MB-F10: in a conversation whose turns each read a file, a request begins with the one before it, except in at
    most a third of the turns, where old results become shorter. Within a turn and after a restart nothing changes, and
    the model reads a shortened result whole by the id in its note."""
    turns = 12
    with ScriptedProvider() as provider:
        talk = Talk(provider)
        async with talking(vendor, tmp_path, provider) as running:
            folder = tmp_path / "workspaces" / "main"
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(turns):
                (folder / f"{number}.txt").write_text(f"The secret of file {number}.\n" * 700)
            await running.say("say:Who are you?")
            provider.forget()
            for number in range(turns):
                await talk.say(running, f'call:read_file {{"path": "{number}.txt"}} ;; say:Read.')
        async with talking(vendor, tmp_path, provider) as running:
            await talk.say(running, "say:Here again.")
            bodies = [request.body for request in provider.answer_requests]
            id = re.findall(r"read_result with id=[^m]*(msg_\w+)", json.dumps(bodies[-1]))[0]
            await talk.say(running, f'call:read_result {{"id": "{id}"}} ;; say:Read again.')
        bodies = [request.body for request in provider.answer_requests]
        requests = [WireRequest(body, ended=True) for body in bodies]
        changed = [n for n in range(1, len(requests)) if not requests[n].begins_with(requests[n - 1])]
        assert 1 <= len(changed) <= turns // 3
        assert all(talk.turns[number] != talk.turns[number - 1] for number in changed)
        assert len(json.dumps(bodies[-1])) < len(json.dumps(bodies[0])) + 4 * 20_000
        assert json.dumps(bodies[-1]).count("The secret of file 0.") > 500


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_summary_changes_the_beginning_once(vendor: str, tmp_path: Path) -> None:
    """At the turn that first uses the summary; tools and system stay. Afterwards, through a tool step and a restart,
    each request begins with the one before it again."""
    with ScriptedProvider() as provider:
        talk = Talk(provider)
        async with talking(vendor, tmp_path, provider) as running:
            await running.say("say:Who are you?")
            provider.forget()
            for text in ("say:One.", "say:Two.", "say:Three.", "/compact", "say:Four."):
                await talk.say(running, text)
            await talk.say(running, "call:current_time {} ;; say:Now.")
        async with talking(vendor, tmp_path, provider) as running:
            await talk.say(running, "say:Here again.")
        answered = [request.body for request in provider.answer_requests]
        assert "Summarise the conversation below" in json.dumps(answered.pop(3))
        requests = [WireRequest(body, ended=True) for body in answered]
        assert len(answered) == 7
        changed = [n for n in range(1, len(requests)) if not requests[n].begins_with(requests[n - 1])]
        assert changed == [3]
        assert (requests[3].tools, requests[3].system) == (requests[2].tools, requests[2].system)
        assert "summary of the first" in json.dumps(answered[3])


async def test_what_the_cache_saved_is_in_the_usage_and_on_the_span() -> None:
    """By the names of OpenTelemetry's conventions; `trunkline trace` and the line of a turn show it."""
    usage = Usage(input_tokens=100, output_tokens=2, cached_tokens=90, cache_write_tokens=7)
    model = ScriptedModel(lambda request: ["yes", Finish(usage=usage, model="scripted-1")])

    class Models:
        @trunkline.hookimpl
        def trunkline_models(self) -> list[ModelAdapter]:
            return [model]

    spans: list[Any] = []

    async def collect(message: Any) -> None:
        spans.extend(span for span in message.data.spans if span.name.startswith("chat"))

    async with platform(plugins=[Models()], config={"runtime.provider_adapter": "scripted"}) as running:
        await running.bus.subscribe(SPANS, collect)
        answer = await running.say("hello")
        with anyio.fail_after(60):
            while not any(semconv.GEN_AI_CACHE_READ_TOKENS in span.attributes for span in spans):  # noqa: ASYNC110
                await anyio.sleep(0.02)
    assert answer.ended.usage.cached_tokens == 90
    (found,) = [span for span in spans if semconv.GEN_AI_CACHE_READ_TOKENS in span.attributes]
    assert found.attributes["gen_ai.usage.cache_read.input_tokens"] == 90
    assert found.attributes["gen_ai.usage.cache_creation.input_tokens"] == 7
    assert "100 in (90 cached) / 2 out" in span_notes(found)
