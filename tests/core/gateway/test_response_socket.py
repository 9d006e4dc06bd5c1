"""The Responses API over a WebSocket: who may connect, what is refused, and what survives a lost connection."""

import json
from typing import Any

import anyio
import msgspec
import openai
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from trunkline.testing.platform import platform
from trunkline.workers.gateway.http.openai.responses.response_socket import SOCKET_EVENTS, SocketError
from trunkline.workers.gateway.http.openai.schemas import ErrorObject

from .conftest import Environment
from .fake_monitor import FakeTurn

pytestmark = pytest.mark.anyio

TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")


def socket(env: Environment, token: str | None = None, **headers: str) -> connect:
    url = env.url.replace("http://", "ws://") + "/v1/responses"
    bearer = {"Authorization": f"Bearer {env.token if token is None else token}"}
    return connect(url, additional_headers={**bearer, **headers}, open_timeout=30)


async def ask(connection: ClientConnection, **body: Any) -> list[dict[str, Any]]:
    """Send ``response.create`` and return its events; each has exactly the documented fields."""
    await connection.send(json.dumps({"type": "response.create", "model": "main", **body}))
    return await events_of(connection)


async def events_of(connection: ClientConnection) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    with anyio.fail_after(30):
        while not events or events[-1]["type"] not in TERMINAL:
            data = await connection.recv()
            events.append(msgspec.json.decode(data))
            assert any(_fits(data, kind) for kind in SOCKET_EVENTS), data
    return events


def _fits(data: str | bytes, kind: type) -> bool:
    try:
        msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        return False
    return True


async def test_the_socket_has_the_events_of_the_stream(env: Environment) -> None:
    """The same events with the same numbers as over HTTP, for one response after the other."""
    async with socket(env) as connection:
        for text in ("one", "two"):
            events = await ask(connection, input=text)
            assert [event["sequence_number"] for event in events] == list(range(len(events)))
            assert events[-1]["response"]["output"][0]["content"][0]["text"] == f"You said: {text}"
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as client:
        kept = await client.responses.retrieve(events[0]["response"]["id"])
    assert kept.output_text == "You said: two"


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("wrong", {}, 401),
        ("", {}, 401),
        (None, {"Origin": "https://evil.example"}, 403),
        (None, {"Origin": "null"}, 403),
        (None, {"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_a_handshake_is_refused(
    env: Environment, token: str | None, headers: dict[str, str], status: int
) -> None:
    """Without the token, or from a page of another origin, there is no socket; the error is OpenAI's."""
    with pytest.raises(InvalidStatus) as refused:
        async with socket(env, token, **headers):
            pass
    response = refused.value.response
    assert response.status_code == status
    msgspec.json.decode(response.body or b"", type=ErrorObject)
    assert env.monitor.seen == []


async def test_there_is_no_other_socket(env: Environment) -> None:
    """Below ``/v1`` the refusal is OpenAI's error."""
    for path, status in (("/v1/chat/completions", 404), ("/v1/responses/x", 404), ("/conversations", 403)):
        url = env.url.replace("http://", "ws://") + path
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, additional_headers={"Authorization": f"Bearer {env.token}"}):
                pass
        response = refused.value.response
        assert response.status_code == status
        if status == 404:
            error = msgspec.json.decode(response.body or b"", type=ErrorObject).error
            assert error.code == "not_found"


async def test_messages_are_not_compressed(env: Environment) -> None:
    """A compressed message could be a thousand times larger than what the client sent, many times over."""
    async with socket(env) as connection:
        assert connection.protocol.extensions == []


HOSTILE: tuple[tuple[str, str | None], ...] = (
    ("", None),
    ("{", None),
    ("[]", None),
    ("[" * 100_000, None),
    ('{"type": 7}', "type"),
    ('{"type": "response.steer"}', "type"),
    ('{"type": "response.create", "input": "x"}', "model"),
    ('{"type": "response.create", "model": "main", "input": 7}', "input"),
    ('{"type": "response.create", "model": "main", "input": "x", "background": true}', "background"),
    ('{"type": "response.create", "model": "main", "input": "x", "generate": false}', "generate"),
    ('{"type": "response.create", "model": "main", "input": "x", "stream_id": "a"}', "stream_id"),
    ('{"type": "response.create", "model": "nobody", "input": "x"}', "model"),
)


async def test_hostile_messages_are_refused_one_by_one(env: Environment) -> None:
    """Each is answered by an ``error`` with OpenAI's fields, and the socket goes on."""
    async with socket(env) as connection:
        for text, param in HOSTILE:
            await connection.send(text)
            data = await connection.recv()
            error = msgspec.json.decode(data, type=SocketError)
            assert error.status in (400, 404) and error.error.param == param, text[:80]
        assert env.monitor.seen == []
        assert (await ask(connection, input="hi"))[-1]["type"] == "response.completed"


async def test_too_large_and_binary_messages_close_the_socket(env: Environment) -> None:
    for message, code in ((b"x", 1003), ("x" * 50_000_000, 1009)):
        async with socket(env) as connection:
            with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(60):
                await connection.send(message)
                await connection.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == code


async def test_an_unstored_response_continues_on_its_socket_only(env: Environment) -> None:
    """Its id leads nowhere on another connection, and nowhere after a continuation of it failed."""
    async with socket(env) as one, socket(env) as other:
        first = (await ask(one, input="hi", store=False))[-1]["response"]["id"]
        missed = await ask(other, input="x", store=False, previous_response_id=first)
        assert missed[-1]["error"]["code"] == "previous_response_not_found"
        assert missed[-1]["error"]["param"] == "previous_response_id" and missed[-1]["status"] == 400
        second = (await ask(one, input="more", store=False, previous_response_id=first))[-1]["response"]["id"]
        one_request, two_request = env.monitor.requests
        assert one_request.conversation == two_request.conversation
        orphan = {"type": "function_call_output", "call_id": "none", "output": "x"}
        failed = await ask(one, input=[orphan], store=False, previous_response_id=second)
        assert failed[-1]["type"] == "error"
        gone = await ask(one, input="x", store=False, previous_response_id=second)
        assert gone[-1]["error"]["code"] == "previous_response_not_found"


async def test_a_lost_connection_ends_no_turn(env: Environment) -> None:
    """A turn is answered although its client left, and the response is there."""
    seen, let_go = anyio.Event(), anyio.Event()

    async def script(turn: FakeTurn) -> None:
        await turn.say("It is")
        seen.set()
        await let_go.wait()
        await turn.say(" blue.", offset=5)
        await turn.end("It is blue.")

    env.monitor.script = script
    async with socket(env) as connection:
        await connection.send('{"type": "response.create", "model": "main", "input": "hi"}')
        id = msgspec.json.decode(await connection.recv())["response"]["id"]
        await seen.wait()
    let_go.set()
    async with openai.AsyncOpenAI(base_url=f"{env.url}/v1", api_key=env.token) as client:
        stream = await client.responses.retrieve(id, stream=True)
        events = [event async for event in stream]
    assert events[-1].type == "response.completed" and events[-1].response.output_text == "It is blue."


async def test_the_end_of_the_server_closes_the_socket() -> None:
    """The client learns that the server restarts (1012), and the server does not wait for it."""
    async with platform(workers=("gateway", "memory")) as running:
        url = running.url.replace("http://", "ws://") + "/v1/responses"
        bearer = {"Authorization": f"Bearer {running.token}"}
        connection = await connect(url, additional_headers=bearer).__aenter__()
    with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(30):
        await connection.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
