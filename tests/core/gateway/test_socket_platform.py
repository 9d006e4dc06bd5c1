"""States and changes over ``/ws``: turns, conversations, approvals, blocks, workers, budgets and panic (CC-F22, T8)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import anyio
import pytest

from tests.other_users import share
from tests.support.socket_client import SocketClient, open_socket, shown
from trunkline.contracts.approvals.messages import Approval, Settlement
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.subjects import BUDGET_EVENT
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.policies.messages import Policy
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.block_access import BlockRights
from trunkline.workers.gateway.socket.bounded_log import MAX_ENTRIES, ReaderBehind
from trunkline.workers.gateway.socket.event_envelopes import ApprovalRequestEnvelope, ApprovalSettledEnvelope
from trunkline.workers.gateway.socket.platform_feed import (
    EVERY_BLOCK,
    EVERYBODY,
    PlatformEntry,
    PlatformFeed,
)
from trunkline.workers.gateway.socket.server_envelopes import ErrorEnvelope, ServerMessage
from trunkline.workers.gateway.socket.status_envelopes import (
    BankruptEnvelope,
    BankruptPayload,
    BlockActivity,
    BudgetReset,
    ConversationStatus,
    PanicEnvelope,
    PanicPayload,
    StatusEnvelope,
    TurnStatus,
    WorkerStatus,
)
from trunkline_bus import new_id

from .conftest import Environment
from .fake_monitor import FakeTurn

pytestmark = pytest.mark.anyio


async def until_received(client: SocketClient, wanted: Callable[[ServerMessage], bool]) -> Any:
    """Read up to an envelope, and return it."""
    for one in client.received:
        if wanted(one):
            return one
    while True:
        one = await client.receive()
        if wanted(one):
            return one


def turn_is(turn: str, status: str) -> Callable[[ServerMessage], bool]:
    def fits(one: ServerMessage) -> bool:
        return isinstance(one.payload, TurnStatus) and (one.payload.turn, one.payload.status) == (
            turn,
            status,
        )

    return fits


async def test_turns_and_conversations_appear_as_they_change(env: Environment) -> None:
    """A subscription to everything shows a turn's begin and end, its new conversation, and a new title."""
    async with open_socket(env.url, env.token) as client:
        await client.done("subscribe")
        sent = (await client.done("chat", content="Beans and peas.")).payload
        await until_received(client, turn_is(sent.turn, "running"))
        await until_received(client, turn_is(sent.turn, "finished"))

        def titled(title: str) -> Callable[[ServerMessage], bool]:
            return lambda one: (
                isinstance(one.payload, ConversationStatus)
                and one.payload.conversation == sent.conversation
                and one.payload.title == title
            )

        await until_received(client, titled("Beans and peas"))
        changed = await env.http.patch(f"/conversations/{sent.conversation}", json={"title": "Garden"})
        assert changed.status_code == 200
        await until_received(client, titled("Garden"))


async def test_the_present_states_come_first(env: Environment) -> None:
    """A client that subscribes while a turn runs is told so, and gets the turn's events if it wants them."""
    begun, go_on = anyio.Event(), anyio.Event()

    async def wait(turn: FakeTurn) -> None:
        await turn.say("one ")
        begun.set()
        await go_on.wait()
        await turn.say("two", offset=4)
        await turn.end("one two")

    env.monitor.script = wait
    async with open_socket(env.url, env.token) as client, open_socket(env.url, env.token) as viewer:
        sent = (await client.done("chat", content="hi")).payload
        await begun.wait()
        await viewer.done("subscribe", events=True)
        await until_received(viewer, turn_is(sent.turn, "running"))
        await until_received(viewer, lambda one: isinstance(one.payload, WorkerStatus))
        go_on.set()
        assert shown(await viewer.until_end(sent.turn)) == "one two"
        await until_received(viewer, turn_is(sent.turn, "finished"))
        later = (await client.done("chat", content="again")).payload
        assert shown(await viewer.until_end(later.turn)) == "one two"


async def test_a_block_subscription_shows_that_block_only(env: Environment) -> None:
    """MB-F25: What happens in another block is not sent, and a block that does not exist cannot be watched."""
    assert (await env.http.post("/api/blocks", json={"name": "other"})).status_code == 201
    async with open_socket(env.url, env.token) as client:
        refused = await client.ask("subscribe", block="nobody")
        assert isinstance(refused, ErrorEnvelope) and refused.payload.code == "not_found"
        await client.done("subscribe", block="other")
        await client.done("chat", content="hi", block="main")
        sent = (await client.done("chat", content="hi", block="other")).payload
        await until_received(client, turn_is(sent.turn, "finished"))
        changed = await env.http.patch("/api/blocks/other", json={"config": {"description": "Beans."}})
        assert changed.status_code == 200, changed.text
        await until_received(
            client, lambda one: isinstance(one.payload, BlockActivity) and one.payload.changed
        )
    blocks = {
        getattr(one.payload, "block", "other") for one in client.received if isinstance(one, StatusEnvelope)
    }
    assert blocks == {"other"}


def approval(settled: Settlement | None = None) -> Approval:
    asked = datetime(2026, 11, 27, tzinfo=UTC)
    return Approval(
        id="aaaaa-bbbbb", turn="turn_a", call="call_a", call_hash="h", tool="write_file", block="main",
        conversation="conv_a", channel="http", actor="owner", question="May it?", asked_at=asked,
        expires_at=asked + timedelta(days=3_650), settled=settled,
    )  # fmt: skip


async def test_approvals_are_shown_and_settled_to_every_client(own_env: Environment) -> None:
    """C33: a question is broadcast, a client that comes later gets it too, and both see the decision."""
    async with open_socket(own_env.url, own_env.token) as one, open_socket(own_env.url, own_env.token) as two:
        await one.done("subscribe")
        await own_env.bus.append(APPROVAL, approval(), approval="aaaaa-bbbbb")
        request = await until_received(one, lambda got: isinstance(got, ApprovalRequestEnvelope))
        assert (request.payload.hash, request.payload.name) == ("h", "write_file")
        await two.done("subscribe", block="main")
        await until_received(two, lambda got: isinstance(got, ApprovalRequestEnvelope))
        decided = Settlement(allow=True, by="owner", at=datetime.now(UTC))
        await own_env.bus.append(APPROVAL, approval(decided), approval="aaaaa-bbbbb")
        for client in (one, two):
            settled = await until_received(client, lambda got: isinstance(got, ApprovalSettledEnvelope))
            assert settled.payload.allow and settled.payload.by == "owner"


def budget_event(
    event: Literal["bankrupt", "reset"], block: str = "", *, used: int = 0, limit: int = 0
) -> BudgetEvent:
    return BudgetEvent(
        id=new_id("bud"), at=datetime.now(UTC), event=event, measure="spend", window="2026-11-27", block=block,
        used=used, limit=limit, by="owner" if event == "reset" else "",
    )  # fmt: skip


async def until_alerted(env: Environment, client: SocketClient, block: str = "main") -> None:
    """Reset a budget of a block until the client is told, so that the gateway watches budgets from then on."""
    while not any(isinstance(got.payload, BudgetReset) for got in client.received):
        await env.bus.append(BUDGET_EVENT, budget_event("reset", block), event=new_id("bud"))
        with anyio.move_on_after(0.2):
            await client.receive()


async def test_alerts_reach_a_socket_that_watches_a_conversation(own_env: Environment) -> None:
    """CC-T8: ``bankrupt`` of its block and of all blocks, and ``panic``, once each and beside nothing but its turns;
    ``bankrupt`` of another block does not."""
    assert (await own_env.http.post("/api/blocks", json={"name": "other"})).status_code == 201
    switch = KillSwitch(own_env.platform.home.path)
    async with open_socket(own_env.url, own_env.token) as client:
        sent = (await client.done("chat", content="hi", block="main")).payload
        await client.done("subscribe", conversation=sent.conversation, after={sent.turn: ""})
        await client.done("subscribe", turn=sent.turn)
        await until_alerted(own_env, client)
        for block in ("other", "main", ""):
            breach = budget_event("bankrupt", block, used=2, limit=1)
            await own_env.bus.append(BUDGET_EVENT, breach, event=breach.id)
        await until_received(client, lambda got: isinstance(got, BankruptEnvelope) and not got.payload.block)
        switch.engage("the owner")
        await until_received(client, lambda got: isinstance(got, PanicEnvelope))
        switch.release()
        await until_received(client, lambda got: isinstance(got, PanicEnvelope) and not got.payload.on)
        await client.until_end(sent.turn)
    alerts = [one.payload for one in client.received if isinstance(one, BankruptEnvelope | PanicEnvelope)]
    assert [one.block for one in alerts if isinstance(one, BankruptPayload)] == ["main", ""]
    assert [one.on for one in alerts if isinstance(one, PanicPayload)] == [True, False]
    assert not any(isinstance(one.payload, TurnStatus | WorkerStatus) for one in client.received)


async def test_alerts_follow_what_a_socket_watches_and_may_know(own_env: Environment) -> None:
    """A collaborator gets ``bankrupt`` of the shared block only, and none of a block that is not watched any more."""
    auth = AuthClient(own_env.bus)
    await auth.create_identity("guest")
    token = (await auth.issue_token("guest", TokenScope.READ)).text
    assert (await own_env.http.post("/api/blocks", json={"name": "other"})).status_code == 201
    await share(own_env.bus, "read", subject="guest", block="other")
    async with open_socket(own_env.url, own_env.token) as owner, open_socket(own_env.url, token) as guest:
        sent = (await owner.done("chat", content="hi", block="other")).payload
        watched = (await owner.done("subscribe", conversation=sent.conversation)).payload.reply_to
        await owner.done("subscribe", block="main")
        await guest.done("subscribe")
        for client in (owner, guest):
            await until_alerted(own_env, client, "other")
        await owner.done("unsubscribe", subscription=watched)
        for block in ("main", "", "other"):
            breach = budget_event("bankrupt", block, used=2, limit=1)
            await own_env.bus.append(BUDGET_EVENT, breach, event=breach.id)
        last = budget_event("bankrupt", "main", used=3, limit=1)
        await until_received(guest, lambda got: isinstance(got, BankruptEnvelope))
        await own_env.bus.append(BUDGET_EVENT, last, event=last.id)
        await until_received(owner, lambda got: isinstance(got, BankruptEnvelope) and got.payload.used == 3)
    assert breaches(owner) == ["main", "", "main"]
    assert breaches(guest) == ["other"]


def breaches(client: SocketClient) -> list[str]:
    """The blocks of the received ``bankrupt``, in their order."""
    return [one.payload.block for one in client.received if isinstance(one, BankruptEnvelope)]


async def test_a_breach_reaches_every_client_once(own_env: Environment) -> None:
    """CC-T8: one ``bankrupt`` with both numbers to every client, however many subscriptions it has."""
    breach = budget_event("bankrupt", used=10_000_000, limit=10_000_000)
    async with open_socket(own_env.url, own_env.token) as one, open_socket(own_env.url, own_env.token) as two:
        await one.done("subscribe")
        await one.done("subscribe", block="main")
        await two.done("subscribe", block="main")
        await until_alerted(own_env, two)
        await own_env.bus.append(BUDGET_EVENT, breach, event=breach.id)
        await own_env.bus.publish(BUDGET_EVENT, breach, event=breach.id)
        for client in (one, two):
            got = await until_received(client, lambda got: isinstance(got, BankruptEnvelope))
            assert (got.payload.used, got.payload.limit) == (10_000_000, 10_000_000)
            await client.done("chat", content="x", client_id="after")
        assert breaches(one) == breaches(two) == [""]


async def test_panic_and_its_release_reach_every_client(own_env: Environment) -> None:
    """CC-F22: the state is shown within a second, also to a client that comes later."""
    switch = KillSwitch(own_env.platform.home.path)
    async with open_socket(own_env.url, own_env.token) as one, open_socket(own_env.url, own_env.token) as two:
        await one.done("subscribe")
        switch.engage("the owner")
        on = await until_received(one, lambda got: isinstance(got, PanicEnvelope))
        assert on.payload == PanicPayload(on=True, by="the owner")
        await two.done("subscribe", block="main")
        await until_received(two, lambda got: isinstance(got, PanicEnvelope))
        switch.release()
        for client in (one, two):
            await until_received(client, lambda got: isinstance(got, PanicEnvelope) and not got.payload.on)


def test_a_total_is_not_for_somebody_to_whom_a_block_is_closed() -> None:
    """``block:*`` is shared, and a denial closes one block: a total would tell what happens in that one."""
    policies = [
        Policy(subject="ann", resource="block:*", action="operate", effect="allow"),
        Policy(subject="ann", resource="block:diary", action="read", effect="deny"),
    ]
    rights = BlockRights(Identity(id="ann", scope=TokenScope.OPERATE), policies)
    known = {block: PlatformEntry(block, "").is_for(rights) for block in ("main", "diary", EVERY_BLOCK, "")}
    assert known == {"main": True, "diary": False, EVERY_BLOCK: False, "": False}


async def test_a_reader_that_fell_behind_gets_the_present_states() -> None:
    """The feed keeps the states, not the changes that a slow reader missed."""
    feed = PlatformFeed()
    for number in range(MAX_ENTRIES + 5):
        payload = PanicPayload(on=True, by=str(number))
        feed.tell(PanicEnvelope, payload, block=EVERYBODY, key=("panic", ""))
    feed.tell(PanicEnvelope, payload, block=EVERYBODY, key=("panic", ""))
    with pytest.raises(ReaderBehind):
        await feed.read(0)
    assert (feed.begin, feed.end) == (5, MAX_ENTRIES + 5)
    assert [f'"by":"{MAX_ENTRIES + 4}"' in entry.text for entry in feed.states()] == [True]
    feed.tell(PanicEnvelope, PanicPayload(on=False), block=EVERYBODY, key=("panic", ""), ended=True)
    assert feed.states() == []


async def test_a_collaborator_sees_the_shared_block_only(own_env: Environment) -> None:
    """An identity without a shared block gets no state; with one, the states of that block and nothing of another."""
    auth = AuthClient(own_env.bus)
    await auth.create_identity("guest")
    token = (await auth.issue_token("guest", TokenScope.READ)).text
    assert (await own_env.http.post("/api/blocks", json={"name": "other"})).status_code == 201
    async with open_socket(own_env.url, own_env.token) as owner, open_socket(own_env.url, token) as guest:
        await guest.done("subscribe", events=True)
        await owner.done("subscribe")
        hidden = (await owner.done("chat", content="secret", block="main")).payload
        await until_received(owner, turn_is(hidden.turn, "finished"))
        refused = await guest.ask("subscribe", turn=hidden.turn)
        assert isinstance(refused, ErrorEnvelope) and refused.payload.code == "not_found"
        forbidden = await guest.ask("chat", content="hi", block="main")
        assert isinstance(forbidden, ErrorEnvelope)
        breach = BudgetEvent(
            id=new_id("bud"), at=datetime.now(UTC), event="bankrupt", measure="spend", window="2026-11-27",
            used=1, limit=1,
        )  # fmt: skip
        await own_env.bus.append(BUDGET_EVENT, breach, event=breach.id)
        await until_received(owner, lambda got: isinstance(got, BankruptEnvelope))
        await share(own_env.bus, "read", subject="guest", block="other")
        shared = (await owner.done("chat", content="open", block="other")).payload
        assert shown(await guest.until_end(shared.turn)) == "You said: open"
        seen = {str(getattr(one.payload, "block", "")) for one in guest.received} - {""}
    assert seen == {"other"}, "nothing of the block that is not shared"
    assert not any(isinstance(one.payload, WorkerStatus) for one in guest.received)
    assert not any(isinstance(one, BankruptEnvelope) for one in guest.received), "a total of all blocks"
