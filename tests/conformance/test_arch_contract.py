"""ARCH-4: every message through the Gateway API or ``/engine/chat`` is the contract's, without additional fields.

Every other test here uses the same client, which checks all that it receives against ``contract.py``.
"""

from typing import Any

import httpx
import msgspec
import pytest

from trunkline.testing.scripted_provider import ScriptedProvider

from . import contract
from .conftest import OpenPlatform, client_of

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"
OWNER = {"x-actor-id": "owner", "x-actor-permissions": "memory:*,tools:*"}


async def test_ARCH_4_the_gateway_api(open_platform: OpenPlatform) -> None:
    """PA-T9: a conversation's requests, events, list and history; each failure's status and body."""
    async with open_platform({"gateway.max_content": 1000}) as running:
        client = running.client
        first = await client.say(
            'say:Let me see. ;; call:list_directory {"path": "."} ;; call:nothing {} ;; say:Nothing there.',
            note="kept",
        )
        assert first.names == [
            "text-delta", "tool-call", "tool-result", "tool-call", "tool-result", "text-delta", "done",
        ]  # fmt: skip
        assert all(event.id for event in first.events)
        stored = await client.conversation(first.conversation)
        assert stored.messages[-1].id == first.message_id
        assert stored.messages[0].metadata and stored.messages[0].metadata["note"] == "kept"
        roles = [message.role for message in (await client.whole(first.conversation)).messages]
        assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
        page = await client.page(limit=1, offset=0, search="see")
        assert (page.total, page.limit, page.offset) == (1, 1, 0)
        assert page.conversations[0].id == first.conversation and page.conversations[0].title

        for body, code in {
            b"": "invalid_request",
            b"{": "invalid_request",
            b"[]": "invalid_request",
            b"{}": "invalid_request",
            b'{"message": "PA-D3"}': "invalid_request",
            b'{"content": 7}': "invalid_request",
            b'{"content": "x", "metadata": 7}': "invalid_request",
            b'{"content": "\xff"}': "invalid_request",
            b'{"content": "' + b"x" * 1001 + b'"}': "too_large",
        }.items():
            refused = (await client.post(NEW, body)).refused
            assert refused and refused.code == code, body
        gone = "/conversations/conv_01JUNKNOWN0000000000000000"
        assert (await client.refused("GET", gone)).code == "not_found"
        assert (await client.refused("POST", f"{gone}/messages", json={"content": "x"})).code == "not_found"
        assert (await client.refused("GET", "/conversations?limit=0")).code == "invalid_request"
        assert (await client.refused("GET", "/conversations?limit=101")).code == "invalid_request"
        assert (await client.refused("POST", "/engine/chat", json={})).code == "not_found"
        assert (await client.page()).total == 1


async def test_ARCH_4_requests_with_unknown_fields_are_accepted(open_platform: OpenPlatform) -> None:
    """PA-F41: unknown fields of a request are ignored, and none of them is returned."""
    async with open_platform() as running:
        reply = await running.client.post(
            NEW, b'{"content": "say:hi", "colour": "light blue", "metadata": {"a": [1, null]}}'
        )
        assert reply.text == "hi"
        assert b"light blue" not in running.client.received


async def test_ARCH_4_the_correlation_id_is_ours(open_platform: OpenPlatform) -> None:
    """PA-D4: nothing in a request's metadata replaces an id of the platform."""
    request = {"correlation_id": "forged", "conversation_id": "conv_forged", "trigger": "schedule"}
    async with open_platform() as running:
        reply = await running.client.say("say:hi", **request)
        assert reply.conversation != "conv_forged"
        assert b"x-correlation-id: forged" not in running.client.received
        assert (await running.client.page()).conversations[0].id == reply.conversation


def body(*said: str, **metadata: Any) -> dict[str, Any]:
    messages = [
        {"role": role, "content": content} for role, _, content in (one.partition(":") for one in said)
    ]
    return {"messages": messages, "metadata": {"correlation_id": "req_1", **metadata}}


async def ask(http: httpx.AsyncClient, request: Any) -> list[contract.Event]:
    response = await http.post("/engine/chat", json=request, headers=OWNER)
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
    events = list(contract.events_in(response.content, contract.LOOP_EVENTS))
    assert [event.name in ("done", "error") for event in events] == [*[False] * (len(events) - 1), True]
    return events


async def test_ARCH_4_the_agent_loop(open_platform: OpenPlatform, provider: ScriptedProvider) -> None:
    """``POST /engine/chat``: the events of a loop with tools, and each error before a stream."""
    async with (
        open_platform({"monitor.engine": True}) as running,
        httpx.AsyncClient(base_url=running.platform.engine_url, timeout=100) as http,
    ):
        http.headers["authorization"] = f"Bearer {running.platform.token}"
        events = await ask(
            http, body('user:say:Looking. ;; call:list_directory {"path": "."} ;; call:no {} ;; say:So.')
        )
        assert [event.name for event in events if event.name != "text-delta"] == [
            "tool-call", "tool-result", "tool-call", "tool-result", "done",
        ]  # fmt: skip
        whole = body("system:Be kind.", "user:say:a", "assistant:a", "user:roles", trigger="message",
                     conversation_id="conv_1", client_context={"path": "/finances"})  # fmt: skip
        events = await ask(http, whole)
        said = "".join(event.data.content for event in events if event.name == "text-delta")
        assert said.endswith("system user assistant user")
        assert events[-1].data.finish_reason == "stop" and events[-1].data.usage.prompt_tokens > 0
        assert provider.answer_requests[-1].body["messages"][-4]["content"] == "Be kind."
        events = await ask(http, body("user:overflow"))
        assert events[-1].data.code == "context_overflow"

        async def refused(content: bytes, headers: dict[str, str] = OWNER) -> contract.Error:
            response = await http.post("/engine/chat", content=content, headers=headers)
            return contract.error_of(response.status_code, response.content)

        good = msgspec.json.encode(body("user:say:hi"))
        for content in (b"", b"{", b"{}", msgspec.json.encode(body()), good.replace(b"req_1", b""),
                        good.replace(b'"user"', b'"wizard"'), good.replace(b'"correlation_id"', b'"id"')):  # fmt: skip
            assert (await refused(content)).code == "invalid_request", content
        for headers in ({}, {"x-actor-id": "owner"}, {"x-actor-permissions": "memory:*"}):
            assert (await refused(good, headers)).code == "unauthorized"
        assert (await running.client.page()).total == 0, "the loop stores nothing"


async def test_PA_T11_a_message_that_cannot_be_stored_is_refused(open_platform: OpenPlatform) -> None:
    """Without a worker that stores conversations the message is not accepted: 503 with its code and sentence."""
    async with (
        open_platform(workers=("gateway",)) as running,
        client_of(running.platform.url, running.platform.token) as client,
    ):
        reply = await client.say("say:hi")
        assert reply.status == 503 and reply.refused
        assert reply.refused.message == contract.SENTENCES[reply.refused.code]
