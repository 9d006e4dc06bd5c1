"""Turns by id, over HTTP and the bus: state, cancel, steer, decide; and the form of a failure."""

import anyio
import httpx
import msgspec
import pytest

from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.feed_messages import ApprovalRequested, ToolStarted
from trunkline.contracts.turns.journal_messages import ApprovalAsked, ApprovalRecorded, TurnParked
from trunkline.contracts.turns.messages import ApprovalDecided, TurnCancelRequested, TurnSteered
from trunkline.errors import FIXED_SENTENCES, ErrorCode
from trunkline.workers.gateway.http.schemas.conversation_schemas import Accepted
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline.workers.gateway.http.schemas.turn_schemas import TurnDetail
from trunkline_bus import RemoteFault

from .conftest import Environment, until
from .fake_monitor import FakeTurn
from .sse_client import converse, events_in

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"
HASH = "h" * 64


def turn(response: httpx.Response) -> TurnDetail:
    return msgspec.json.decode(response.content, type=TurnDetail)


async def seen(env: Environment, kind: type, count: int = 1) -> list[object]:
    """The items of a kind that reached the monitor."""

    def found() -> list[object]:
        return [item for item in env.monitor.seen if isinstance(item, kind)]

    async def enough() -> bool:
        return len(found()) >= count

    await until(enough)
    return found()


async def status(env: Environment, turn: str, wanted: str) -> None:
    """Wait until the turn stands as wanted."""

    async def has_status() -> bool:
        return (await env.terminal.turn(turn)).status == wanted

    await until(has_status)


@pytest.fixture
def held(env: Environment) -> anyio.Event:
    """The monitor answers nothing until this is set."""
    event = anyio.Event()

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.say("well ")
        await event.wait()
        await fake_turn.end("well done")

    env.monitor.script = script
    return event


async def begin(env: Environment) -> str:
    """Begin a turn and wait until it runs."""
    accepted = await env.terminal.send(SendMessage(content="go"))
    await status(env, accepted.turn, "running")
    return accepted.turn


async def test_the_state_of_a_turn_is_shown(env: Environment, held: anyio.Event) -> None:
    """The state is queued, running or finished, with its details."""
    env.monitor.paused = True
    accepted = await env.terminal.send(SendMessage(content="go"))
    path = f"/api/turns/{accepted.turn}"
    found = turn(await env.http.get(path))
    assert (found.status, found.block, found.conversation_id) == ("queued", "main", accepted.conversation)
    env.monitor.paused = False
    await seen(env, object)
    held.set()
    await status(env, accepted.turn, "finished")
    found = turn(await env.http.get(path))
    assert (found.finish_reason, found.usage.prompt_tokens) == ("stop", 7)
    assert found.message_id is not None
    assert (await env.http.get("/api/turns/turn_none")).status_code == 404


async def test_cancel(env: Environment, held: anyio.Event) -> None:
    """A cancel reaches the monitor through the inbox; a turn that has ended stays as it is."""
    id = await begin(env)
    response = await env.http.post(f"/api/turns/{id}/cancel")
    assert response.status_code == 202
    await env.terminal.cancel(id, mode="after_step")
    cancels = await seen(env, TurnCancelRequested, 2)
    assert cancels == [
        TurnCancelRequested(turn=id, by="owner", mode="now"),
        TurnCancelRequested(turn=id, by="channel:terminal", mode="after_step"),
    ]
    held.set()
    await status(env, id, "finished")
    assert turn(await env.http.post(f"/api/turns/{id}/cancel")).finish_reason == "stop"
    assert (await env.http.post("/api/turns/turn_none/cancel")).status_code == 404
    assert (await env.http.post(f"/api/turns/{id}/cancel", json={"mode": "never"})).status_code == 400


async def test_steer(env: Environment, held: anyio.Event) -> None:
    """A message sent into a running turn reaches it; into one that has ended, it becomes a separate turn."""
    id = await begin(env)
    response = await env.http.post(f"/api/turns/{id}/steer", json={"content": "left!"})
    assert response.status_code == 202
    taken = msgspec.json.decode(response.content, type=Accepted)
    steered = (await seen(env, TurnSteered))[0]
    assert isinstance(steered, TurnSteered)
    assert (steered.turn, steered.request.message.content) == (id, "left!")
    assert (taken.turn, taken.message_id) == (id, steered.request.message.id)
    assert taken.otherwise == steered.request.turn != id, "the turn to look for if it came too late"
    held.set()
    await status(env, id, "finished")
    accepted = await env.terminal.send(SendMessage(content="and now?", steer=id))
    assert accepted.turn != id
    assert accepted.conversation == taken.conversation_id


async def test_the_first_decision_counts(env: Environment) -> None:
    """A parked call is shown with its hash; one decision is accepted, for exactly this call, and the next gets the
    first one's result."""
    call = ToolCall(id="c1", name="write", arguments={"path": "x"})
    asked = ApprovalAsked(call_id="c1", call_hash=HASH, question="Write x?")

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.journal(asked)
        await fake_turn.journal(TurnParked())
        await fake_turn.show(
            ToolStarted(step=0, call=call), ApprovalRequested(call=call, call_hash=HASH, question="Write x?")
        )
        decided.append(fake_turn)

    decided: list[FakeTurn] = []
    env.monitor.script = script
    async with env.http.stream("POST", NEW, json={"content": "write"}) as response:
        id = response.headers["x-turn-id"]
        async for event in events_in(response):
            if event.name == "approval-request":
                assert msgspec.to_builtins(event.data) == {
                    "id": "c1",
                    "name": "write",
                    "arguments": {"path": "x"},
                    "hash": HASH,
                    "question": "Write x?",
                }
                break
    assert (await env.terminal.turn(id)).status == "parked"
    path = f"/api/turns/{id}/calls/c1/decision"
    wrong = await env.http.post(path, json={"allow": True, "hash": "other"})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "conflict")
    assert (await env.http.post(path, json={"allow": "yes", "hash": HASH})).status_code == 400
    nothing = f"/api/turns/{id}/calls/c2/decision"
    assert (await env.http.post(nothing, json={"allow": True, "hash": HASH})).status_code == 404
    assert (await env.http.post(path, json={"allow": True, "hash": HASH})).status_code == 202
    found = (await seen(env, ApprovalDecided))[0]
    assert found == ApprovalDecided(
        turn=id, call="c1", call_hash=HASH, allow=True, by="owner", lane="interactive"
    )
    await decided[0].journal(ApprovalRecorded(call_id="c1", allow=True, by="owner"))
    for allow in (True, False):
        assert (await env.http.post(path, json={"allow": allow, "hash": HASH})).status_code == 409
    assert len(await seen(env, ApprovalDecided)) == 1, "a second decision is not handed on"
    with pytest.raises(RemoteFault, match="allowed by the owner already") as late:
        await env.terminal.decide(id, "c1", HASH, allow=False)
    assert late.value.code == ErrorCode.CONFLICT


@pytest.mark.parametrize("code", [ErrorCode.PROVIDER_ERROR, ErrorCode.TOOL_ERROR, ErrorCode.CONTEXT_OVERFLOW])
async def test_a_failed_turn_ends_with_its_sentence(env: Environment, code: ErrorCode) -> None:
    """ARCH-5, ARCH-6: one error event with the code and its fixed sentence, and the stream closes."""

    async def script(fake_turn: FakeTurn) -> None:
        await fake_turn.say("part")
        await fake_turn.end(
            reason="error", code=code, between=(Message(id="p", role="assistant", content="part"),)
        )

    env.monitor.script = script
    response, events = await converse(env.http, NEW, {"content": "hi"})
    assert [event.name for event in events] == ["text-delta", "error"]
    assert events[-1].data == Error(code=code, message=FIXED_SENTENCES[code])
    assert turn(await env.http.get(f"/api/turns/{response.headers['x-turn-id']}")).error == events[-1].data


async def test_the_trace_begins_at_the_gateway(env: Environment) -> None:
    """A caller's trace continues in the turn, and the correlation id of the response is that trace."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    response, _ = await converse(
        env.http, NEW, {"content": "hi"}, traceparent=f"00-{trace}-00f067aa0ba902b7-01"
    )
    assert response.headers["x-correlation-id"] == trace
    carried = env.monitor.requests[0].traceparent
    assert carried is not None
    assert carried.split("-")[1] == trace
