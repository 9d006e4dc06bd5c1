"""An invalid request: the answer names the field and its fault, on every route."""

from typing import Any

import anyio
import httpx
import openai
import pytest

from trunkline.contracts.turns.messages import TurnRequested
from trunkline.workers.gateway.http.openapi.openapi_operations import OPERATIONS

from .conftest import Environment

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"
HI: Any = [{"role": "user", "content": "hi"}]
CALLED: Any = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "x"}}]}

BODIES: tuple[tuple[str, str, Any, str], ...] = (
    ("post", NEW, {}, "/content"),
    ("post", NEW, {"content": 7}, "/content"),
    ("post", NEW, {"content": " "}, "/content"),
    ("post", NEW, {"content": "x", "metadata": 7}, "/metadata"),
    ("post", NEW, {"content": "x", "metadata": {"block": 7}}, "/metadata/block"),
    ("post", NEW, {"content": "x", "metadata": {"files": "file_1"}}, "/metadata/files"),
    ("post", NEW, {"content": "x", "metadata": {"files": ["file_1"]}}, "/metadata/files/0"),
    ("post", NEW, {"content": "x", "metadata": {"client_message_id": ""}}, "/metadata/client_message_id"),
    ("post", NEW, [], ""),
    ("post", "/conversations/{id}/messages", {"content": None}, "/content"),
    ("post", "/api/turns/{id}/cancel", {"mode": "soon"}, "/mode"),
    ("post", "/api/turns/{id}/steer", {"text": "x"}, "/content"),
    ("post", "/api/turns/{id}/fork", {"step": -1}, "/step"),
    ("post", "/api/turns/{id}/fork", {"step": 99}, "/step"),
    ("post", "/api/turns/{id}/calls/{call}/decision", {"allow": True}, "/hash"),
    ("post", "/api/turns/{id}/calls/{call}/decision", {"hash": "x"}, "/allow"),
    ("post", "/api/turns/{id}/calls/{call}/decision", {"hash": "x", "scope": "never"}, "/scope"),
    ("post", "/api/blocks", {}, "/name"),
    ("post", "/api/blocks", {"name": "No Block"}, "/name"),
    ("post", "/api/blocks", {"name": "b", "config": {"enabled": "yes"}}, "/config/enabled"),
    ("post", "/api/blocks", {"name": "b", "config": {"descripton": "x"}}, "/config/descripton"),
    ("patch", "/conversations/{id}", {"title": 7}, "/title"),
    ("put", "/api/conversations/{id}/model", {"model": 7}, "/model"),
    ("post", "/api/conversations/{id}/compact", {"focus": 7}, "/focus"),
    ("patch", "/api/blocks/{name}", {"config": {"permissions": {"plan": "yes"}}}, "/config/permissions/plan"),
    ("post", "/api/blocks/{name}/stop", {"finish": 1}, "/finish"),
    ("post", "/api/blocks/{name}/reset", {"hard": "yes"}, "/hard"),
    ("put", "/api/blocks/{name}/shares/{identity}", {"action": "own"}, "/action"),
    ("post", "/api/pair", {"code": ""}, "/code"),
    ("post", "/api/pair", {"code": "x", "as": "header"}, "/as"),
    ("put", "/api/memory/file", {"path": "a.md"}, "/content"),
    ("post", "/api/memory/preview", {"content": "x"}, "/path"),
    ("post", "/api/memory/move", {"source": "a.md"}, "/target"),
    ("post", "/api/memory/import", {}, ""),
    ("post", "/api/memory/documents", {}, "Content-Type"),
    ("post", "/api/memory/revert", {}, "/path"),
    ("post", "/api/memory/revert", {"path": "a.md", "version": "1", "to": "1"}, "/to"),
    ("post", "/api/passkeys", {"challenge": "x", "credential": {}}, ""),
    ("post", "/api/passkeys/sign-in", {"challenge": "x"}, "/credential"),
    ("post", "/api/push", {"endpoint": "https://push.example"}, ""),
    ("post", "/api/identities", {}, "/id"),
    ("post", "/api/identities", {"id": "anna", "type": "robot"}, "/type"),
    ("patch", "/api/identities/{identity}", {"status": "gone"}, "/status"),
    ("patch", "/api/settings/{section}", {"values": {"timeout": 0}}, "/values/timeout"),
    ("post", "/api/tokens", {"identity": "owner", "scope": "all"}, "/scope"),
    ("post", "/api/tokens", {"identity": "owner", "expires": "2030-01-01T00:00:00"}, "/expires"),
)

TOOLS = [{"type": "function", "function": {"name": "a"}}]


def schema_format(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a response format with this schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


CHATS: tuple[tuple[Any, str | None], ...] = (
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "messages[0].role"),
    ({"messages": [*HI, {"role": "robot", "content": "x"}]}, "messages[1].role"),
    ({"messages": [{"role": "user", "content": "  "}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
    ({"messages": [*HI, CALLED, {"role": "tool", "content": "x"}]}, "messages[2].tool_call_id"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}]},
     "messages[0].content[1].image_url"),
    ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file_x"}}]}]},
     "messages[0].content[0].file_id"),
    ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}, *HI]}, "messages[0].tool_calls[0].function"),
    ({"messages": HI, "n": 2}, "n"),
    ({"messages": HI, "response_format": {"type": "yaml"}}, "response_format.type"),
    ({"messages": HI, "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"messages": HI, "response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
     "response_format.json_schema.name"),
    ({"messages": HI, "response_format": schema_format({"type": "robot"})}, "response_format.json_schema.schema"),
    ({"messages": HI, "response_format": schema_format({"$ref": "http://127.0.0.1:1/x"})},
     "response_format.json_schema.schema"),
    ({"messages": HI, "response_format": schema_format({"pattern": "(?=a)b"})}, "response_format.json_schema.schema"),
    ({"messages": HI, "tools": [{"type": "function"}]}, "tools[0].function.name"),
    ({"messages": HI, "tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"messages": HI, "tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"messages": HI, "tools": [{"type": "function", "function": {"name": "a"}}] * 2}, "tools[1].function.name"),
    ({"messages": HI, "tool_choice": "required"}, "tool_choice"),
    ({"messages": HI, "tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice"),
    ({"messages": HI, "tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "b"}}},
     "tool_choice.function.name"),
    ({"messages": HI, "tools": TOOLS, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto",
      "tools": [{"type": "function", "function": {"name": "b"}}]}}}, "tool_choice.allowed_tools.tools"),
    ({"messages": HI, "temperature": 3}, "temperature"),
    ({"messages": HI, "max_tokens": 0}, "max_tokens"),
    ({"messages": HI, "max_completion_tokens": 0}, "max_completion_tokens"),
    ({"messages": HI, "stream": "yes"}, "stream"),
    ({"messages": HI * 10_001}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}] * 1_001}]}, "messages[0].content"),
    ({"messages": HI, "tools": [{"type": "function", "function": {"name": f"t{n}"}} for n in range(1_001)]}, "tools"),
    ({"messages": HI, "metadata": {"client_message_id": 7}}, "metadata.client_message_id"),
)  # fmt: skip


async def test_an_unknown_block_is_reported_with_the_existing_ones(env: Environment) -> None:
    """The code and its sentence stay; the suggestion stands beside them."""
    response = await env.http.post(NEW, json={"content": "x", "metadata": {"block": "mian"}})
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    reported = response.json()["metadata"]
    assert (
        reported["field"] == "/metadata/block"
        and "Did you mean main? Existing blocks: " in reported["reason"]
    )


async def begun(env: Environment) -> tuple[str, str]:
    response = await env.http.post(NEW, json={"content": "hi"})
    return response.headers["x-conversation-id"], response.headers["x-turn-id"]


def refused(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 400, response.text
    error = response.json()
    assert (error["code"], error["message"]) == ("invalid_request", "The request is not valid.")
    return dict(error["metadata"])


async def test_every_route_names_the_field(env: Environment) -> None:
    """The field is a JSON pointer into the body, with a reason. Each route with a body is tested here, and OpenAI's
    below and in tests/integration/test_openai_abilities.py."""
    conversation, turn = await begun(env)
    for method, path, body, field in BODIES:
        id = turn if path.startswith("/api/turns") else conversation
        response = await env.http.request(
            method,
            path.format(id=id, call="c", name="main", identity="anna", section="plugins.git"),
            json=body,
        )
        reported = refused(response)
        assert reported["field"] == field, (path, body)
        assert reported["reason"], (path, body)
    known = {path for method, path, *_ in BODIES} | {
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/v1/files",
        "/v1/embeddings",
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
    }
    documented = {operation[1] for operation in OPERATIONS if operation[3] is not None}
    assert {
        path.replace("/api/identities/{id}", "/api/identities/{identity}") for path in documented
    } == known


async def test_an_integer_may_have_a_fraction_of_zero(env: Environment) -> None:
    """To JSON Schema, and so to the published document, 16.0 is an integer. 16.5 is none."""
    _, turn = await begun(env)
    chat = {"model": "main", "messages": HI, "max_tokens": 16.0, "seed": 1e3}
    response = await env.http.post("/v1/chat/completions", json=chat)
    assert response.status_code == 200, response.text
    asked = env.monitor.seen[-1]
    assert isinstance(asked, TurnRequested) and asked.max_tokens == 16
    fork = f"/api/turns/{turn}/fork"
    assert "no step 99" in refused(await env.http.post(fork, json={"step": 99.0}))["reason"]
    assert "whole number" in refused(await env.http.post(fork, json={"step": 99.5}))["reason"]
    deep = b'{"step": 1.0, "model": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert refused(await env.http.post(fork, content=deep))["field"] == ""


@pytest.mark.parametrize("body", [b"{", b"", b'{"content": "\xff"}', b'{"content": "x"} and more'])
async def test_invalid_json_is_reported(env: Environment, body: bytes) -> None:
    """The pointer to all of the body is empty."""
    reported = refused(await env.http.post(NEW, content=body))
    assert reported["field"] == "" and reported["reason"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/conversations?limit=0", "limit"),
        ("/conversations?limit=x", "limit"),
        ("/conversations?offset=-1", "offset"),
        ("/conversations?from=yesterday", "from"),
        ("/conversations?to=yesterday", "to"),
        ("/conversations?include=all", "include"),
        ("/conversations?archived=yes", "archived"),
        ("/conversations?pinned=maybe", "pinned"),
        ("/api/conversations/{conversation}/export?format=pdf", "format"),
        ("/conversations/{conversation}?include=all", "include"),
        ("/api/turns/{turn}/events?from=zzz", "from"),
        ("/api/approvals?settled=maybe", "settled"),
        ("/api/blocks?archived=maybe", "archived"),
    ],
)
async def test_every_parameter_is_named(env: Environment, path: str, field: str) -> None:
    conversation, turn = await begun(env)
    reported = refused(await env.http.get(path.format(conversation=conversation, turn=turn)))
    assert reported["field"] == field


@pytest.mark.parametrize(("name", "value"), [("Idempotency-Key", "x" * 201), ("Last-Event-ID", "zzz")])
async def test_headers_are_named(env: Environment, name: str, value: str) -> None:
    _, turn = await begun(env)
    if name == "Last-Event-ID":
        response = await env.http.get(f"/api/turns/{turn}/events", headers={name: value})
    else:
        response = await env.http.post(NEW, json={"content": "x"}, headers={name: value})
    assert refused(response)["field"] == name


async def test_openais_client_reads_the_param(env: Environment) -> None:
    """The names are OpenAI's, also for a value of a wrong type; the reason is in the message."""
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as client:
        for given, param in CHATS:
            with pytest.raises(openai.BadRequestError) as failed:
                await client.chat.completions.create(model="main", **given)
            assert failed.value.param == param, given
            assert str(failed.value.body["message"]).startswith("The request is not valid. ")  # type: ignore[index]
    assert env.monitor.seen == []


USER: Any = {"role": "user", "content": "hi"}
RESPONSES: tuple[tuple[Any, str | None], ...] = (
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": 7}, "input"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ({"input": [{"type": "web_search_call"}]}, "input[0].type"),
    ({"input": [{"type": "item_reference"}]}, "input[0].id"),
    ({"input": [{"type": "item_reference", "id": "msg_a_0"}]}, "input[0].id"),
    ({"input": [{"type": "item_reference", "id": "msg_../x_0"}]}, "input[0].id"),
    ({"input": [USER, {"type": "item_reference", "id": "msg_a_0"}, {"type": "item_reference"}]}, "input[1].id"),
    ({"input": [USER, {"role": "assistant", "content": "x"}]}, "input[1]"),
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0].type"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.org/a.png"}]}]},
     "input[0].content[0].image_url"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,%"}]}]},
     "input[0].content[0].image_url"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png,x"}]}]},
     "input[0].content[0].image_url"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "https://x.org/a"}]}]},
     "input[0].content[0].file_url"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "AAECAwQF"}]}]},
     "input[0].content[0].file_data"),
    ({"input": [{"role": "system", "content": [{"type": "input_image", "image_url": "data:,x"}]}, USER]},
     "input[0].content[0].image_url"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input"),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
    ({"input": "x", "tool_choice": "required"}, "tool_choice"),
    ({"input": "x", "tools": [{"type": "function", "name": "a"}], "tool_choice": {"type": "function", "name": "b"}},
     "tool_choice.name"),
    ({"input": "x", "tools": [{"type": "function", "name": "a"}],
      "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]}},
     "tool_choice.tools"),
    ({"input": "x", "text": {"format": {"type": "yaml"}}}, "text.format.type"),
    ({"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "robot"}}}},
     "text.format.schema"),
    ({"input": [USER] * 10_001}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}] * 1_001}]}, "input[0].content"),
    ({"input": "x", "tools": [{"type": "function", "name": f"t{n}"} for n in range(1_001)]}, "tools"),
    ({"input": "x", "temperature": 3}, "temperature"),
    ({"input": "x", "top_p": 2}, "top_p"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "metadata": {"k": 7}}, "metadata.k"),
    ({"input": "x", "metadata": {"k": "v" * 513}}, "metadata.k"),
    ({"input": "x", "include": ["everything"]}, "include[0]"),
    ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
    ({"input": "x", "truncation": "some"}, "truncation"),
    ({"input": "x", "reasoning": {"summary": "long"}}, "reasoning.summary"),
    ({"input": "x", "background": True, "store": False}, "background"),
    ({"input": "x", "previous_response_id": "resp_a", "conversation": "conv_a"}, "previous_response_id"),
    ({"input": "x", "previous_response_id": "resp_a"}, "previous_response_id"),
)  # fmt: skip


async def test_the_param_of_a_response(env: Environment) -> None:
    """Each field of the Responses API that may be wrong is named as OpenAI names it."""
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as client:
        for given, param in RESPONSES:
            with pytest.raises(openai.BadRequestError) as failed:
                await client.responses.create(model="main", **given)
            assert failed.value.param == param, given
    assert env.monitor.seen == []


async def test_hostile_bodies_are_refused_quickly(env: Environment) -> None:
    """Deep and long bodies are refused, or answered, and stop nobody."""
    deep: Any = "x"
    for _ in range(400):
        deep = {"a": [deep]}
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "a"} for n in range(5_000)]
    nested = b'{"model":"main","input":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    for body in (
        {"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": deep}}},
        {"input": [{"role": "assistant", "content": "x"}] * 50_000},
        {"input": [{"role": "user", "content": [{"type": "input_text"}] * 50_000}]},
    ):
        with anyio.fail_after(30):
            response = await env.http.post("/v1/responses", json={"model": "main", **body})
        assert response.status_code == 400, response.text[:200]
    with anyio.fail_after(30):
        response = await env.http.post("/v1/responses", json={"model": "main", "input": [*calls, USER]})
    assert response.status_code == 200
    assert (await env.http.post("/v1/responses", content=nested)).status_code == 400
    assert (await env.http.post("/v1/responses", content=b"x" * 60_000_000)).status_code == 413


async def test_errors_do_not_repeat_the_request(env: Environment) -> None:
    """A key in the wrong field is not in the answer."""
    response = await env.http.post(
        "/v1/chat/completions", json={"model": "main", "messages": [{"role": "sk-secret", "content": "x"}]}
    )
    assert response.status_code == 400 and "sk-secret" not in response.text


@pytest.mark.parametrize("turn", ["turn_unknown", "turn x", "*", "turn.x", "..%2f", "a" * 200, "%00"])
async def test_an_unknown_turn_is_not_found(env: Environment, turn: str) -> None:
    """This holds for any form of the id, and for every route."""
    decision = {"hash": "x", "allow": True}
    for response in (
        await env.http.get(f"/api/turns/{turn}"),
        await env.http.get(f"/api/turns/{turn}/events"),
        await env.http.post(f"/api/turns/{turn}/cancel"),
        await env.http.post(f"/api/turns/{turn}/steer", json={"content": "x"}),
        await env.http.post(f"/api/turns/{turn}/fork", json={"step": 0}),
        await env.http.post(f"/api/turns/{turn}/calls/c/decision", json=decision),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), response.url
    for path in (f"/api/approvals/{turn}", f"/api/blocks/{turn}", f"/v1/models/{turn}"):
        assert (await env.http.get(path)).status_code == 404, path
    assert (await env.http.delete(f"/api/approvals/granted/{turn}")).status_code in (404, 400)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"temperature": "warm"}, "temperature: It must be a number or null, not text."),
        ({"max_tokens": 0}, "max_tokens: It is 1 or more."),
        ({"messages": {}}, "messages: It must be a list, not an object."),
        ({"stream": "yes"}, "stream: It must be true or false or null, not text."),
        ({"messages": [{"role": "alien"}]}, "messages[0].role: It is not one of the known values."),
    ],
)
async def test_a_message_names_the_field_and_what_it_takes(
    env: Environment, body: dict[str, Any], said: str
) -> None:
    """OpenAI's clients show nothing but the message."""
    response = await env.http.post("/v1/chat/completions", json={"model": "main", "messages": HI, **body})
    assert response.status_code == 400
    assert response.json()["error"]["message"].endswith(said), response.text
