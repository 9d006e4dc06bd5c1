"""Costs, budgets, traces, dead letters and the state of the platform over HTTP: whole for the owner; of the shared
blocks alone for anybody else."""

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import pytest

from tests.other_users import GUEST, HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.costs.messages import BudgetEvent, CostEntry
from trunkline.contracts.costs.subjects import BUDGET_EVENT, COST
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.turns.messages import TurnCancelRequested
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.contracts.workers.messages import SpanBatch, SpanRecord
from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC, SPANS
from trunkline.telemetry import semconv
from trunkline_bus import DeadLetter, Envelope, new_id

from .conftest import Environment, started_environment, until

pytestmark = pytest.mark.anyio

LIMITED = Identity(id="limited", type="owner", blocks=("garden",))
"""A token of the owner for one block."""

MALLORY = Identity(id="mallory", scope=TokenScope.OWNER)
READER = Identity(id="reader", scope=TokenScope.READ)
SECRET = "the text of a prompt"


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """``garden`` is shared with three people, ``main`` with nobody."""
    async with started_environment(Visitors(GUEST, LIMITED, MALLORY, READER)) as env:
        await env.terminal.create_block("garden")
        for who in (GUEST, MALLORY, READER):
            await share(env.bus, "operate", subject=who.id, block="garden")
        yield env


async def body_of(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json() if response.content else None


async def get(env: Environment, path: str, who: str = "", status: int = 200, **params: str) -> Any:
    """Ask as somebody, by default as the owner."""
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as http:
        headers = {HEADER: who} if who else {"authorization": f"Bearer {env.token}"}
        return await body_of(await http.get(path, params=params, headers=headers), status)


async def test_a_block_says_what_the_caller_may_do_in_it(env: Environment) -> None:
    """A client can hide what would be refused. The scope of a token limits it, and so do the policies."""
    expected = {"": "owner", "guest": "chat", "limited": "owner", "mallory": "operate", "reader": "read"}
    for who, access in expected.items():
        listed = {one["name"]: one["access"] for one in (await get(env, "/api/blocks", who))["blocks"]}
        assert listed["garden"] == access and (await get(env, "/api/blocks/garden", who))["access"] == access
        assert set(listed) == ({"garden"} if who else {"garden", "main"})


async def spend(env: Environment, block: str, cost: int, *, days: int = 0, model: str = "m") -> None:
    entry = CostEntry(
        id=new_id("req"), at=datetime.now(UTC) - timedelta(days=days), block=block, adapter="fake", model=model,
        status="finished", usage=Usage(input_tokens=10), cost=cost,
    )  # fmt: skip
    await env.bus.append(COST, entry, day=entry.day, id=entry.id)


async def test_costs_are_those_of_the_blocks_one_may_read(env: Environment) -> None:
    """The owner sees all, anybody else and a token for one block only that, in every sum; an unshared block is 404."""
    for block, cost in (("main", 1_000), ("garden", 20), ("", 300)):
        await spend(env, block, cost)
    await spend(env, "garden", 4, days=40)
    whole = await get(env, "/api/costs", by="block")
    assert whole["total"]["cost"] == 1_320 and [row["key"] for row in whole["rows"]] == [
        "main",
        "(none)",
        "garden",
    ]
    assert (await get(env, "/api/costs", block="main"))["total"]["cost"] == 1_000
    for who in ("guest", "limited", "mallory"):
        for by in ("block", "day", "model", "purpose", "conversation"):
            own = await get(env, "/api/costs", who, by=by)
            assert (own["total"]["cost"], own["total"]["requests"]) == (20, 1), (who, by)
        assert [row["key"] for row in (await get(env, "/api/costs", who, by="block"))["rows"]] == ["garden"]
        assert (await get(env, "/api/costs", who, 404, block="main"))["code"] == "not_found"
        assert await get(env, "/api/costs", who, 404, block="unknown") == await get(
            env, "/api/costs", who, 404, block="main"
        )
    since = (datetime.now(UTC) - timedelta(days=60)).isoformat()
    assert (await get(env, "/api/costs", "guest", since=since))["total"]["cost"] == 24
    for wrong in ({"by": "person"}, {"since": "yesterday"}, {"since": "1970-01-01"}):
        assert (await get(env, "/api/costs", "", 400, **wrong))["metadata"]["field"] in wrong


async def test_budget_history_is_that_of_readable_blocks(env: Environment) -> None:
    """The budget of all blocks together is not for somebody who may not read all of them."""
    for block in ("", "main", "garden"):
        event = BudgetEvent(
            id=new_id("bud"), at=datetime.now(UTC), event="bankrupt", measure="spend", window="2026-11-27",
            block=block, used=7, limit=5,
        )  # fmt: skip
        await env.bus.append(BUDGET_EVENT, event, event=event.id)
    whole = (await get(env, "/api/budgets/history"))["events"]
    assert [one.get("block", "") for one in whole] == ["garden", "main", ""]
    assert (whole[0]["used"], whole[0]["limit"], whole[0]["event"]) == (7, 5, "bankrupt")
    for who in ("guest", "limited", "mallory"):
        assert [one["block"] for one in (await get(env, "/api/budgets/history", who))["events"]] == ["garden"]


async def begin(env: Environment, block: str, trace: str, who: str = "") -> str:
    """Send a message as part of a trace, wait for its turn, and record spans as its workers would."""
    headers = {HEADER: who} if who else {"authorization": f"Bearer {env.token}"}
    headers["traceparent"] = f"00-{trace}-00f067aa0ba902b7-01"
    body = {"content": "hi", "metadata": {"block": block}}
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as http:
        turn: str = (await http.post("/conversations/messages", json=body, headers=headers)).headers[
            "x-turn-id"
        ]

    async def is_recorded() -> bool:
        return await env.bus.last(JOURNAL, turn=turn) is not None

    await until(is_recorded)
    root = span(trace, f"{turn}-root", None, f"invoke_agent {block}", {semconv.TURN: turn})
    call = span(trace, f"{turn}-call", root.span_id, "chat m", {"gen_ai.input.messages": SECRET})
    failed = span(trace, f"{turn}-tool", root.span_id, "execute_tool x", {semconv.ERROR_TYPE: "timeout"})
    failed = msgspec.structs.replace(failed, status="error", message=SECRET)
    await env.bus.append(SPANS, SpanBatch(spans=(root, call, failed)), trace=trace)
    return turn


def span(trace: str, id: str, parent: str | None, name: str, attributes: dict[str, str]) -> SpanRecord:
    return SpanRecord(
        trace_id=trace, span_id=id, parent_id=parent, name=name, kind="internal", service="trunkline.monitor",
        start=1_000_000_000, end=3_000_000_000, attributes=attributes,
    )  # fmt: skip


async def test_a_trace_is_the_tree_of_one_turn(env: Environment) -> None:
    """The owner gets every span with its attributes; a reader of the block the tree, without a text of a model, of
    memory or of an error. An unshared turn is as unknown as none."""
    turn = await begin(env, "garden", "a" * 32)
    whole = await get(env, f"/api/turns/{turn}/trace")
    assert (whole["turn"], whole["trace"]) == (turn, "a" * 32)
    own = [
        one for one in whole["spans"] if one["id"].startswith(turn)
    ]  # the gateway's own spans are there, too
    root, call, failed = own
    assert (root["title"], root["depth"], call["parent"], call["depth"]) == (
        "invoke_agent garden",
        0,
        root["id"],
        1,
    )
    assert root["seconds"] == 2.0 and call["attributes"]["gen_ai.input.messages"] == SECRET
    assert failed["status"] == "error" and SECRET in failed["notes"]
    for who in ("guest", "limited", "mallory"):
        seen = await get(env, f"/api/turns/{turn}/trace", who)
        assert [one["title"] for one in seen["spans"]] == [one["title"] for one in own]
        assert SECRET not in str(seen) and not any(one.get("attributes") for one in seen["spans"])
        assert seen["spans"][2]["notes"] == "error: timeout"
    hidden = await begin(env, "main", "b" * 32)
    for who in ("guest", "limited", "mallory"):
        refused = await get(env, f"/api/turns/{hidden}/trace", who, 404)
        assert refused == await get(env, "/api/turns/turn_unknown/trace", who, 404)


async def test_a_forged_trace_id_shows_no_other_turn(env: Environment) -> None:
    """A client names the trace of its message. Whoever names the trace of another block's turn, or gets it from a turn
    that called theirs, sees their own spans only."""
    await begin(env, "main", "c" * 32)
    turn = await begin(env, "garden", "c" * 32, "guest")
    seen = await get(env, f"/api/turns/{turn}/trace", "guest")
    assert {one["id"] for one in seen["spans"]} == {f"{turn}-root", f"{turn}-call", f"{turn}-tool"}
    assert len((await get(env, f"/api/turns/{turn}/trace"))["spans"]) >= 6


async def bury(env: Environment, subject: str, body: bytes) -> int:
    letter = DeadLetter(
        subject=subject, reason="unknown_type", data=base64.b64encode(body).decode(), size=len(body)
    )
    return (await env.bus.append(DEAD_LETTER_TOPIC, letter)).seq


async def test_dead_letters_are_listed_retried_and_deleted(env: Environment) -> None:
    """A message of the inbox is sent again once; anything else is refused with the reason, and stays."""
    request = TurnCancelRequested(turn="turn_1", by="ann")
    body = msgspec.json.encode(Envelope(id="01ABC", time=datetime.now(UTC), source="gateway", data=request))
    again = await bury(env, "trunkline.turn.part.3.conv_1", body)
    never = await bury(env, "trunkline.cmd.x\x1b[2J", b"\xff\x1b[2J")
    listed = (await get(env, "/api/dead-letters"))["dead_letters"]
    assert [one["id"] for one in listed][-2:] == [again, never]
    shown = await get(env, f"/api/dead-letters/{again}")
    assert (shown["format"], shown.get("refused", ""), shown["complete"]) == ("json", "", True)
    assert "turn_1" in shown["text"]
    odd = await get(env, f"/api/dead-letters/{never}")
    assert odd["format"] == "bytes" and odd["refused"] and "\x1b" not in str(odd)
    sent = await env.http.post(f"/api/dead-letters/{again}/retry")
    assert sent.status_code == 204
    refused = await body_of(await env.http.post(f"/api/dead-letters/{never}/retry"), 409)
    assert "it is a request" in refused["metadata"]["reason"]
    assert (await env.http.delete(f"/api/dead-letters/{never}")).status_code == 204
    for id in (again, never, "0", "-1", "9" * 40, "x", "%2e%2e"):
        assert (await env.http.post(f"/api/dead-letters/{id}/retry")).status_code == 404
        assert (await env.http.delete(f"/api/dead-letters/{id}")).status_code == 404


async def test_the_overview_shows_workers_and_queues(env: Environment) -> None:
    """Every worker, partition and stream, and no salt or key of a vendor."""
    seen = await get(env, "/api/overview")
    assert {one["kind"] for one in seen["workers"]} == {"gateway", "memory"}
    assert [one["partition"] for one in seen["partitions"]] == list(range(len(seen["partitions"])))
    assert {"INBOX", "JOURNAL"} <= {one["name"] for one in seen["streams"]}
    assert seen["lately"]["minutes"] == 5.0 and seen.get("panic", "") == ""


async def test_plugins_are_listed_without_their_places(env: Environment) -> None:
    """Each with its status and hooks; no path of the server."""
    listed = await get(env, "/api/plugins")
    budget = next(one for one in listed["plugins"] if one["owner"] == "trunkline-budget")
    assert budget["status"] == "loaded" and "trunkline_http_routes" in budget["hooks"]
    assert "site-packages" not in str(listed) and "/src/" not in str(listed)


async def test_the_checks_of_the_installation_are_those_of_doctor(env: Environment) -> None:
    """Each has a status; the gateway's own port is among the open ones."""
    seen = await get(env, "/api/doctor")
    assert {"config.valid", "python.version"} <= {one["id"] for one in seen["checks"]}
    assert all(one["status"] in ("ok", "warning", "error", "skipped") for one in seen["checks"])
    assert env.url in [one["address"] for one in seen["listeners"]]


@pytest.mark.parametrize("who", ["guest", "limited", "mallory"])
async def test_what_counts_for_all_blocks_is_for_the_owner_alone(env: Environment, who: str) -> None:
    """Neither operating a block, nor the scope of the owner, nor a token of the owner for one block is enough."""
    id = await bury(env, "trunkline.turn.part.3.conv_1", SECRET.encode())
    async with httpx.AsyncClient(base_url=env.url, headers={HEADER: who}, timeout=60) as http:
        for method, path in (
            ("get", "/api/overview"),
            ("get", "/api/plugins"),
            ("get", "/api/settings"),
            ("patch", "/api/settings/plugins.git"),
            ("get", "/api/setup"),
            ("get", "/api/doctor"),
            ("post", "/api/setup/servers"),
            ("get", "/api/dead-letters"),
            ("get", f"/api/dead-letters/{id}"),
            ("post", f"/api/dead-letters/{id}/retry"),
            ("delete", f"/api/dead-letters/{id}"),
        ):
            refused = await body_of(await http.request(method, path), 403)
            assert set(refused) == {"code", "message"}
    assert id in [one["id"] for one in (await get(env, "/api/dead-letters"))["dead_letters"]]


async def test_only_the_owner_deletes_a_workspace(env: Environment) -> None:
    """Whoever operates a shared block resets it. A hard reset, which nothing takes back, is refused and deletes
    nothing."""
    file = env.platform.home.path / "workspaces/garden/plan.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("beans")
    async with httpx.AsyncClient(base_url=env.url, timeout=60, headers={HEADER: MALLORY.id}) as http:
        refused = await http.post("/api/blocks/garden/reset", json={"hard": True})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert (await http.post("/api/blocks/garden/reset", json={})).status_code == 200
        assert file.read_text() == "beans"
    async with httpx.AsyncClient(base_url=env.url, timeout=60, headers={HEADER: LIMITED.id}) as http:
        assert (await http.post("/api/blocks/garden/reset", json={"hard": True})).status_code == 200
    assert not file.exists()
