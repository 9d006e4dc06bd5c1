"""The WebSocket at ``/ws``: sending, watching turns and conversations, and what is refused (CC-F4, F7, T5, T7)."""

import logging
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.socket_client import NOW, open_socket, shown, turn_of
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline.workers.gateway.socket.client_envelopes import ClientMessage
from trunkline.workers.gateway.socket.codec import decode_envelope
from trunkline.workers.gateway.socket.event_envelopes import ChatEnvelope, TurnEndedEnvelope
from trunkline.workers.gateway.socket.server_envelopes import (
    AckEnvelope,
    ErrorEnvelope,
    PongEnvelope,
    ResyncEnvelope,
    ServerMessage,
)
from trunkline.workers.gateway.socket.status_envelopes import AgentStatus, StatusEnvelope
from trunkline.workers.gateway.worker import GatewayWorker
from trunkline_bus import Refusal

from .conftest import Environment, until
from .fake_monitor import FakeTurn

pytestmark = pytest.mark.anyio


def socket(env: Environment, token: str | None = None, **headers: str) -> Any:
    return open_socket(env.url, env.token if token is None else token, **headers)


async def words(turn: FakeTurn) -> None:
    """Answer in twenty pieces."""
    text = ""
    for number in range(20):
        await turn.say(f"w{number} ", offset=len(text))
        text += f"w{number} "
    await turn.end(text)


WORDS = "".join(f"w{number} " for number in range(20))


# Sending and watching --------------------------------------------------------------------------------------------


async def test_a_chat_is_answered_over_the_socket(env: Environment) -> None:
    """MB-F25: CC-F7: the message is acknowledged when the bus has it, and a subscription shows the turn to its end."""
    async with socket(env) as client:
        sent = (await client.done("chat", content="hello", block="main")).payload
        await client.done("subscribe", turn=sent.turn)
        events = await client.until_end(sent.turn)
    assert shown(events) == "You said: hello"
    last = events[-1]
    assert isinstance(last, TurnEndedEnvelope) and last.payload.reason == "stop"
    assert last.payload.usage.prompt_tokens == 7


async def test_a_conversation_shows_each_of_its_turns(env: Environment) -> None:
    """One subscription has the turns of a conversation one after the other, also those that others begin."""
    async with socket(env) as client:
        sent = (await client.done("chat", content="one", client_id="conv-1")).payload
        await client.done("subscribe", conversation=sent.conversation)
        await client.until_end(sent.turn)
        for text in ("two", "three"):
            path = f"/conversations/{sent.conversation}/messages"
            response = await env.http.post(path, json={"content": text})
            turn = response.headers["x-turn-id"]
            assert shown(await client.until_end(turn)) == f"You said: {text}"
    assert len({turn_of(one) for one in client.received if isinstance(one, TurnEndedEnvelope)}) == 3


async def test_a_conversation_resumes_after_a_turn(env: Environment) -> None:
    """A client that was away gets the rest of its turn and all turns since, in their order."""
    env.monitor.script = words
    async with socket(env) as client:
        sent = (await client.done("chat", content="one")).payload
        await client.done("subscribe", turn=sent.turn)
        first = [one for one in await client.until_end(sent.turn) if isinstance(one, ChatEnvelope)]
    turns = [sent.turn]
    for text in ("two", "three"):
        path = f"/conversations/{sent.conversation}/messages"
        turns.append((await env.http.post(path, json={"content": text})).headers["x-turn-id"])
    position = first[4].payload.position
    async with socket(env) as client:
        await client.done("subscribe", conversation=sent.conversation, after={sent.turn: position})
        await client.until_end(turns[-1])
    ends = [turn_of(one) for one in client.received if isinstance(one, TurnEndedEnvelope)]
    assert ends == turns
    rest = [one.payload.text for one in client.of(sent.turn) if isinstance(one, ChatEnvelope)]
    assert "".join(one.payload.text for one in first[:5]) + "".join(rest) == WORDS
    assert shown(client.of(turns[1])) == WORDS


async def test_every_position_resumes_without_gap_or_repeat(env: Environment) -> None:
    """Whatever event a client saw last, the following ones are the same."""
    env.monitor.script = words
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        await client.done("subscribe", turn=sent.turn)
        events = await client.until_end(sent.turn)
        for number, event in enumerate(events[:-1]):
            async with socket(env) as other:
                await other.done("subscribe", turn=sent.turn, after={sent.turn: position_of(event)})
                assert [e.id for e in await other.until_end(sent.turn)] == [
                    e.id for e in events[number + 1 :]
                ]


def position_of(event: ServerMessage) -> str:
    return str(getattr(event.payload, "position", ""))


async def test_two_viewers_get_the_same_bytes(env: Environment) -> None:
    """Fan-out: viewers that join at the beginning, in the middle and at the end of a turn get equal envelopes."""
    half, go_on = anyio.Event(), anyio.Event()

    async def slowly(turn: FakeTurn) -> None:
        await turn.say("one ")
        half.set()
        await go_on.wait()
        await turn.say("two", offset=4)
        await turn.end("one two")

    env.monitor.script = slowly
    async with socket(env) as one, socket(env) as two, socket(env) as late:
        sent = (await one.done("chat", content="hi")).payload
        await one.done("subscribe", turn=sent.turn)
        await half.wait()
        while not shown(one.of(sent.turn)):
            await one.receive()
        await two.done("subscribe", turn=sent.turn)
        go_on.set()
        first, second = await one.until_end(sent.turn), await two.until_end(sent.turn)
        await late.done("subscribe", conversation=sent.conversation, after={sent.turn: ""})
        third = await late.until_end(sent.turn)
    assert first == second
    assert [event.id for event in third] == [event.id for event in first]


async def test_subscriptions_that_show_one_turn_send_it_once(env: Environment) -> None:
    """A turn, its conversation and everything: no event comes twice, also when the one that sends it is ended."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def slowly(turn: FakeTurn) -> None:
        await turn.say("one ")
        begun.set()
        await go_on.wait()
        await turn.say("two ", offset=4)
        await turn.say("three", offset=8)
        await turn.end("one two three")

    env.monitor.script = slowly
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        await begun.wait()
        first = (await client.done("subscribe", turn=sent.turn)).payload.reply_to
        while not shown(client.of(sent.turn)):
            await client.receive()
        await client.done("subscribe", conversation=sent.conversation)
        await client.done("subscribe", turn=sent.turn, after={sent.turn: ""})
        await client.done("subscribe", events=True)
        await client.done("unsubscribe", subscription=first)
        go_on.set()
        assert shown(await client.until_end(sent.turn)) == "one two three"
        env.monitor.script = words
        later = (await client.done("chat", content="on", conversation=sent.conversation)).payload
        assert shown(await client.until_end(later.turn)) == WORDS
        await client.done("chat", content="a turn whose end shows that nothing more came", client_id="last")
    ids = [event.id for turn in (sent.turn, later.turn) for event in client.of(turn)]
    assert len(ids) == len(set(ids))


async def test_a_turn_is_sent_again_from_an_earlier_position(env: Environment) -> None:
    """A subscription that asks for more than the socket has shown gets all of it, in order, to one end."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def slowly(turn: FakeTurn) -> None:
        for number in range(3):
            await turn.say(str(number), offset=number)
        begun.set()
        await go_on.wait()
        await turn.end("012")

    env.monitor.script = slowly
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        await begun.wait()
        async with socket(env) as other:
            await other.done("subscribe", turn=sent.turn)
            while len(other.of(sent.turn)) < 3:
                await other.receive()
        positions = [position_of(event) for event in other.of(sent.turn)]
        await client.done("subscribe", turn=sent.turn, after={sent.turn: positions[1]})
        while len(client.of(sent.turn)) < 1:
            await client.receive()
        await client.done("subscribe", conversation=sent.conversation, after={sent.turn: ""})
        go_on.set()
        events = [position_of(event) for event in await client.until_end(sent.turn)]
    assert events[:4] == [positions[2], *positions]
    assert len(events) == 5


async def test_a_takeover_reaches_the_socket(env: Environment) -> None:
    """A new owner of the turn repeats it; the client gets each word once."""

    async def taken_over(turn: FakeTurn) -> None:
        await turn.say("one two ")
        turn.take_over()
        await turn.say("one ")
        await turn.say("two three", offset=4)
        await turn.end("one two three")

    env.monitor.script = taken_over
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        await client.done("subscribe", turn=sent.turn)
        assert shown(await client.until_end(sent.turn)) == "one two three"


async def test_a_client_id_makes_repeats_harmless(env: Environment) -> None:
    """The same message twice is one turn, also over another socket."""
    replies = []
    for _ in range(2):
        async with socket(env) as client:
            replies.append((await client.done("chat", content="hi", client_id="same")).payload)
            await client.done("subscribe", turn=replies[-1].turn)
            await client.until_end(replies[-1].turn)
    assert replies[0].turn == replies[1].turn
    assert [reply.duplicate for reply in replies] == [False, True]
    assert len(env.monitor.requests) == 1


async def test_steer_and_cancel_reach_the_turn(env: Environment) -> None:
    """Both are in the inbox when they are acknowledged."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def wait(turn: FakeTurn) -> None:
        begun.set()
        await go_on.wait()
        await turn.end("ok")

    env.monitor.script = wait
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        await begun.wait()
        steered = (await client.done("steer", turn=sent.turn, content="more", client_id="s")).payload
        assert (steered.turn, bool(steered.otherwise)) == (sent.turn, True)
        await client.done("cancel", turn=sent.turn, mode="after_step")

        async def seen() -> bool:
            return len(env.monitor.seen) == 3

        await until(seen)
        go_on.set()


async def test_an_unsubscribed_client_gets_nothing_more(env: Environment) -> None:
    """After the acknowledgement no event of the subscription follows."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def slowly(turn: FakeTurn) -> None:
        await turn.say("one")
        begun.set()
        await go_on.wait()
        await turn.end("one")

    env.monitor.script = slowly
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        subscription = (await client.done("subscribe", turn=sent.turn)).payload.reply_to
        while not shown(client.of(sent.turn)):
            await client.receive()
        await client.done("unsubscribe", subscription=subscription)
        count = len(client.received)
        go_on.set()
        ping = await client.send("ping", {})
        pong = await client.receive()
        assert isinstance(pong, PongEnvelope) and pong.payload.reply_to == ping
        assert len(client.received) == count + 1
        refused = await client.ask("unsubscribe", subscription=subscription)
        assert isinstance(refused, ErrorEnvelope) and refused.payload.code == "not_found"


# Refusals --------------------------------------------------------------------------------------------------------


def envelope(**changes: Any) -> str:
    whole = {"type": "chat", "id": "1", "timestamp": NOW, "payload": {"content": "hi"}, **changes}
    return msgspec.json.encode({name: value for name, value in whole.items() if value is not ...}).decode()


HOSTILE: tuple[tuple[str | bytes, str, str | None, str | None], ...] = (
    ("", "invalid_request", None, ""),
    ("{", "invalid_request", None, ""),
    ("[]", "invalid_request", None, ""),
    ("[" * 100_000, "invalid_request", None, ""),
    (b"\xff\xfe", "invalid_request", None, ""),
    (b'{"type": "\xff"}', "invalid_request", None, ""),
    ('"\\ud800"', "invalid_request", None, ""),
    (envelope(id=...), "invalid_request", None, "/id"),
    (envelope(id=""), "invalid_request", None, "/id"),
    (envelope(id=7), "invalid_request", None, "/id"),
    (envelope(id="x" * 201), "invalid_request", "x" * 200, "/id"),
    (envelope(timestamp=...), "invalid_request", "1", "/timestamp"),
    (envelope(timestamp="yesterday"), "invalid_request", "1", "/timestamp"),
    (envelope(timestamp=12), "invalid_request", "1", "/timestamp"),
    (envelope(type=...), "invalid_request", "1", "/type"),
    (envelope(type="dance"), "invalid_request", "1", "/type"),
    (envelope(type=["chat"]), "invalid_request", "1", "/type"),
    (envelope(payload=...), "invalid_request", "1", "/payload"),
    (envelope(payload={"content": 7}), "invalid_request", "1", "/payload/content"),
    (envelope(payload={"content": " "}), "invalid_request", "1", "/content"),
    (envelope(type="bankrupt"), "forbidden", "1", None),
    (envelope(type="panic", payload={"on": True}), "forbidden", "1", None),
    (envelope(type="approval_request"), "forbidden", "1", None),
    (envelope(type="ack"), "forbidden", "1", None),
    (envelope(payload={"content": "hi", "block": "nobody"}), "not_found", "1", None),
    (envelope(payload={"content": "hi", "conversation": "conv_nothing"}), "not_found", "1", None),
    (envelope(type="cancel", payload={"turn": "turn_none"}), "not_found", "1", None),
    (envelope(type="steer", payload={"turn": "t", "content": "x"}), "not_found", "1", None),
    (envelope(type="subscribe", payload={"turn": "turn_none"}), "not_found", "1", None),
    (envelope(type="subscribe", payload={"conversation": "x"}), "not_found", "1", None),
    (
        envelope(type="subscribe", payload={"turn": "t", "block": "main"}),
        "invalid_request", "1", "/payload/block",
    ),
    (
        envelope(type="subscribe", payload={"turn": "t", "after": {"t": "x"}}),
        "invalid_request", "1", "/payload/after/t",
    ),
    (
        envelope(type="approval_response", payload={"turn": "t", "call": "c", "hash": "h"}),
        "invalid_request", "1", "/payload/allow",
    ),
    (
        envelope(type="approval_response", payload={"turn": "t", "call": "c", "hash": "h", "allow": True}),
        "not_found", "1", None,
    ),
)  # fmt: skip


async def test_CC_T7_hostile_envelopes_are_refused_one_by_one(env: Environment) -> None:
    """CC-T7: each gets an error with its id, a code and the fixed sentence; the socket stays, and nothing changed."""
    async with socket(env) as client:
        for message, code, reply_to, field in HOSTILE:
            await client.connection.send(message)
            error = await client.receive()
            assert isinstance(error, ErrorEnvelope), message
            payload = error.payload
            assert (payload.code, payload.reply_to) == (code, reply_to), message[:80]
            assert payload.message == FIXED_SENTENCES[ErrorCode(code)]
            assert payload.correlation_id.startswith("err_")
            assert payload.metadata.get("field") == field, message[:80]
        assert env.monitor.seen == []
        await client.done("chat", content="still here")


@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "id", "timestamp", "payload", "x"]), inner, max_size=5
                )
            ),
            max_leaves=12,
        ).map(lambda value: msgspec.json.encode(value, enc_hook=str)),
    )
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_an_envelope_or_refused(message: str | bytes) -> None:
    """Whatever a client sends is decoded or refused with a fixed code; nothing else is raised."""
    try:
        decoded = decode_envelope(message)
    except Refusal as error:
        assert error.code in (ErrorCode.INVALID_REQUEST, ErrorCode.FORBIDDEN)
    else:
        assert isinstance(decoded, ClientMessage)


async def test_an_oversized_frame_closes_with_1009(env: Environment) -> None:
    """CC-T7: a message above the limit of a body ends the socket; the message is not accepted."""
    async with socket(env) as client:
        with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(60):
            await client.send("chat", {"content": "x" * 8_000_000})
            while True:
                await client.connection.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009
    assert env.monitor.seen == []


async def test_invalid_utf8_in_a_text_frame_closes_the_socket(
    env: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    """RFC 6455 demands 1007 for it; in a binary frame it is refused like other bad JSON. No error is logged: else a
    client could fill the log."""
    async with socket(env) as client:
        with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(60):
            await client.connection.send(b"\xff\xff", text=True)
            await client.connection.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1007
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        (None, {}, 401),
        ("", {}, 401),
        ("garbage", {}, 401),
        ("x" * 43, {}, 401),
        ("{token}", {"Origin": "http://evil.com"}, 403),
        ("{token}", {"Origin": "null"}, 403),
        ("{token}", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("{token}", {"X-API-Key": "{token}"}, 401),
    ],
)
async def test_CC_T5_a_handshake_is_refused(
    env: Environment,
    caplog: pytest.LogCaptureFixture,
    token: str | None,
    headers: dict[str, str],
    status: int,
) -> None:
    """CC-T5: without a valid token, or from a page of another origin, there is no socket. No error is logged: else a
    stranger could fill the log."""
    given_token = token.replace("{token}", env.token) if token is not None else None
    headers = {name: value.replace("{token}", env.token) for name, value in headers.items()}
    with pytest.raises(InvalidStatus) as refused:
        async with open_socket(env.url, given_token, **headers):
            pass
    response = refused.value.response
    assert response.status_code == status
    error = msgspec.json.decode(response.body or b"", type=Error)
    assert error.message == FIXED_SENTENCES[error.code]
    await anyio.sleep(0.01)  # uvicorn logs after it has responded
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


async def test_a_slow_reader_is_resynchronised(own_env: Environment) -> None:
    """A client that does not read falls behind and is told, another client is not delayed, and nothing is missing."""
    begun, go_on = anyio.Event(), anyio.Event()
    count = 1_500

    async def flood(turn: FakeTurn) -> None:
        await turn.say("start")
        begun.set()
        await go_on.wait()
        for number in range(count):
            await turn.show(StatusShown(name=f"s{number}", text="x" * 8_000))
            if number % 10 == 0:
                await anyio.sleep(0.01)  # faster than any model, slower than a client that reads
        await turn.end("start")

    own_env.monitor.script = flood
    async with socket(own_env) as slow, socket(own_env) as fast:
        sent = (await slow.done("chat", content="hi")).payload
        await begun.wait()
        for client in (slow, fast):
            await client.done("subscribe", turn=sent.turn)
            while not shown(client.of(sent.turn)):
                await client.receive()
        slow.connection.transport.pause_reading()
        go_on.set()
        whole = await fast.until_end(sent.turn)
        assert statuses(whole) == [f"s{number}" for number in range(count)]
        slow.connection.transport.resume_reading()
        assert [one.id for one in await slow.until_end(sent.turn)] == [one.id for one in whole]
    resyncs = [one.payload for one in slow.received if isinstance(one, ResyncEnvelope)]
    assert resyncs and all(one.turn == sent.turn for one in resyncs)
    assert not any(isinstance(one, ResyncEnvelope) for one in fast.received)


def statuses(events: list[ServerMessage]) -> list[str]:
    payloads = [event.payload for event in events if isinstance(event, StatusEnvelope)]
    return [payload.name for payload in payloads if isinstance(payload, AgentStatus)]


async def test_a_subscription_has_a_name_and_there_are_not_too_many(env: Environment) -> None:
    """Two of one id, and the sixty-fifth, are refused."""
    async with socket(env) as client:
        sent = (await client.done("chat", content="hi")).payload
        payload = {"conversation": sent.conversation}
        for number in range(64):
            assert isinstance(
                await client.reply(await client.send("subscribe", payload, id=f"s{number}")), AckEnvelope
            )
        for id, code in (("s3", "conflict"), ("s64", "rate_limited")):
            refused = await client.reply(await client.send("subscribe", payload, id=id))
            assert isinstance(refused, ErrorEnvelope) and refused.payload.code == code


async def test_closed_sockets_are_forgotten(env: Environment) -> None:
    """CC-T5: two clients are counted, and none after both closed."""
    gateway = env.platform.instance.workers["gateway"]
    assert isinstance(gateway, GatewayWorker)

    async def counted(number: int) -> bool:
        return gateway.sockets.count("owner") == number

    await until(lambda: counted(0))
    async with socket(env), socket(env):
        await until(lambda: counted(2))
    await until(lambda: counted(0))


def test_clients_are_told_apart() -> None:
    """The types of the client's envelopes are those of CrevnClaw that a client sends, and Trunkline's own."""
    tags = {str(kind.__struct_config__.tag) for kind in ClientMessage.__args__}
    assert tags == {
        "chat", "approval_response", "steer", "cancel", "subscribe", "unsubscribe", "ping",
    }  # fmt: skip
