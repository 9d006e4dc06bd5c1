"""Administration over HTTP: identities, tokens, shares, the audit log and the stop, and who is refused all of it."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest

from tests.other_users import HEADER, Visitors
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.share_policy import share_policy
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.policies.messages import Policy
from trunkline.home.kill_switch import KillSwitch
from trunkline.workers.gateway.http.openapi.openapi_document import operation_scopes
from trunkline.workers.gateway.http.openapi.openapi_operations import OPERATIONS

from .conftest import Environment, started_environment, until

pytestmark = pytest.mark.anyio

MALLORY = Identity(id="mallory", scope=TokenScope.OWNER)
"""Somebody whom a plugin gave the scope of the owner, and who is not the owner."""

LIMITED = Identity(id="limited", type="owner", blocks=("main",))
"""A token of the owner for one block."""

OPERATOR = Identity(id="operator", type="owner", scope=TokenScope.OPERATE)
READER = Identity(id="reader", scope=TokenScope.READ)

ADMINISTRATION = (
    "/api/identities", "/api/tokens", "/api/audit", "/api/panic", "/shares", "/metrics", "/api/approvals/granted/{id}",
)  # fmt: skip


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    async with started_environment(Visitors(MALLORY, LIMITED, OPERATOR, READER)) as env:
        await env.terminal.create_block("garden")
        yield env


def attempts() -> Iterator[tuple[str, str]]:
    """Every operation of administration, on objects that exist."""
    for method, path, *_ in OPERATIONS:
        if (
            any(part in path for part in ADMINISTRATION)
            and operation_scopes()[method, path] != TokenScope.READ
        ):
            yield method, path.format(name="main", identity="owner", id="owner")


async def body_of(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json() if response.content else None


def as_(who: str) -> dict[str, str]:
    return {HEADER: who}


@pytest.mark.parametrize("who", ["mallory", "limited", "reader"])
async def test_only_the_owner_administers(env: Environment, who: str) -> None:
    """Neither the scope of the owner nor a token of the owner for one block is enough: with them one could give oneself
    everything. Nothing is changed and nothing is told."""
    before = (
        await body_of(await env.http.get("/api/tokens")),
        await body_of(await env.http.get("/api/identities")),
    )
    body = {
        "id": "eve", "identity": "owner", "scope": "owner", "action": "operate", "status": "revoked",
    }  # fmt: skip
    seen = 0
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as http:
        for method, path in attempts():
            response = await http.request(
                method, path, json=None if method == "get" else body, headers=as_(who)
            )
            assert response.status_code == 403, (method, path, response.text)
            assert set(response.json()) == {"code", "message"}
            seen += 1
    assert seen >= 12
    assert not KillSwitch(env.platform.home.path).is_engaged
    after = (
        await body_of(await env.http.get("/api/tokens")),
        await body_of(await env.http.get("/api/identities")),
    )
    assert after == before


async def test_an_identity_is_created_renamed_and_revoked(env: Environment) -> None:
    """What is not named stays. Revoking is final, and the built-in owner cannot be changed."""
    new = {"id": "anna", "display_name": "Anna"}
    made = await body_of(await env.http.post("/api/identities", json=new), 201)
    assert (made["type"], made["status"], made["display_name"]) == ("collaborator", "active", "Anna")
    assert (await env.http.post("/api/identities", json=new)).status_code == 409

    async def change(id: str = "anna", **fields: Any) -> httpx.Response:
        return await env.http.patch(f"/api/identities/{id}", json=fields)

    renamed = await body_of(await change(display_name="Anna Berg"))
    assert (renamed["display_name"], renamed["status"]) == ("Anna Berg", "active")
    suspended = await body_of(await change(status="suspended"))
    assert (suspended["display_name"], suspended["status"]) == ("Anna Berg", "suspended")
    assert (await body_of(await change(status="revoked")))["status"] == "revoked"
    for fields in ({"status": "active"}, {"display_name": "Eve"}):
        assert (await change(**fields)).status_code == 409
    listed = (await body_of(await env.http.get("/api/identities")))["identities"]
    assert listed[0]["id"] == "owner" and "anna" in {one["id"] for one in listed}
    assert (await change("owner", status="suspended")).status_code == 409
    assert (await change("nobody", status="suspended")).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"id": "owner"},
        {"id": "block:main"},
        {"id": "../policies/x"},
        {"id": "x", "type": "owner"},
        {"id": "x", "type": "admin"},
        {"id": "x", "display_name": "x" * 201},
    ],
)
async def test_a_misleading_id_or_type_is_refused(env: Environment, body: dict[str, str]) -> None:
    """An id or a type that would make somebody the owner or a group is 400 with the field."""
    refused = await body_of(await env.http.post("/api/identities", json=body), 400)
    assert refused["metadata"]["reason"]


async def test_a_token_is_shown_once_and_ends_at_once(env: Environment) -> None:
    """Its text is in the answer to its creation alone, which nothing may store; revoked, it is refused."""
    await env.http.post("/api/identities", json={"id": "bert"})
    new = {"identity": "bert", "scope": "chat", "label": "laptop", "blocks": ["garden"]}
    response = await env.http.post("/api/tokens", json=new)
    issued = await body_of(response, 201)
    assert response.headers["cache-control"] == "no-store"
    text, id = issued["text"], issued["token"]["id"]
    assert text.startswith("tl_") and text not in str(issued["token"])
    async with httpx.AsyncClient(
        base_url=env.url, headers={"authorization": f"Bearer {text}"}, timeout=60
    ) as http:
        me = await body_of(await http.get("/api/me"))
        assert (me["id"], me["scope"], me["blocks"]) == ("bert", "chat", ["garden"])
        listed = await env.http.get("/api/tokens", params={"identity": "bert"})
        assert [one["id"] for one in listed.json()["tokens"]] == [id]
        assert text not in listed.text and "mac" not in listed.text
        assert (await env.http.delete(f"/api/tokens/{id[:8]}")).status_code == 404
        assert (await http.get("/api/me")).status_code == 200
        assert await body_of(await env.http.delete(f"/api/tokens/{id}")) == {"id": id, "turns": 0}
        assert (await http.get("/api/me")).status_code == 401


async def test_a_token_may_expire_in_a_distant_year(env: Environment) -> None:
    """NATS cannot count the nanoseconds until then; the token is issued nevertheless."""
    far = {"identity": "owner", "scope": "read", "expires": "9999-12-31T00:00:00Z"}
    issued = await body_of(await env.http.post("/api/tokens", json=far), 201)
    headers = {"authorization": f"Bearer {issued['text']}"}
    async with httpx.AsyncClient(base_url=env.url, headers=headers, timeout=60) as http:
        assert (await body_of(await http.get("/api/me")))["expires"] == far["expires"]
    await env.http.delete(f"/api/tokens/{issued['token']['id']}")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"identity": "nobody"}, 404),
        ({"identity": "mallory", "scope": "owner"}, 404),
        ({"identity": "owner", "scope": "root"}, 400),
        ({"identity": "owner", "expires": "2020-01-01T00:00:00Z"}, 400),
        ({"identity": "owner", "expires": "2099-01-01T00:00:00"}, 400),
        ({"identity": "owner", "label": "x" * 101}, 400),
        ({"identity": "../tokens x"}, 404),
        ({"identity": "nobody\0"}, 404),
        ({"scope": "chat"}, 400),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(
    env: Environment, fields: dict[str, Any], status: int
) -> None:
    """Nothing is issued: for a stranger, with an unknown scope, in the past, or at a time without its zone. A request
    that is not valid says why."""
    before = (await env.http.get("/api/tokens")).json()
    refused = await body_of(await env.http.post("/api/tokens", json=fields), status)
    assert bool(refused.get("metadata", {}).get("reason")) is (status == 400)
    assert (await env.http.get("/api/tokens")).json() == before


async def test_a_token_of_the_owner_can_revoke_itself(env: Environment) -> None:
    """The request is answered, although the end of a token ends its requests; the turn that it started is cancelled."""
    issued = (await env.http.post("/api/tokens", json={"identity": "owner", "scope": "owner"})).json()
    headers = {"authorization": f"Bearer {issued['text']}"}
    async with httpx.AsyncClient(base_url=env.url, headers=headers, timeout=60) as http:
        revoked = await body_of(await http.delete(f"/api/tokens/{issued['token']['id']}"))
        assert revoked["id"] == issued["token"]["id"]
        assert (await http.get("/api/me")).status_code == 401


async def test_a_block_is_shared_for_one_action(env: Environment) -> None:
    """A later share replaces the earlier one; the list has the shares of several blocks too, and unsharing ends only
    the share of this block."""
    await env.http.post("/api/identities", json={"id": "cleo"})
    path = "/api/blocks/garden/shares/cleo"
    assert (await env.http.get(path)).status_code == 404
    for action in ("operate", "read", "read"):
        shared = await body_of(await env.http.put(path, json={"action": action}))
        assert (shared["identity"], shared["action"], shared["resource"]) == ("cleo", action, "block:garden")
        assert await body_of(await env.http.get(path)) == shared
    everywhere = Policy(subject="type:service", resource="block:*", action="chat", effect="allow")
    await AuthClient(env.bus).grant(everywhere)
    listed = (await body_of(await env.http.get("/api/blocks/garden/shares")))["shared_with"]
    assert {(one["identity"], one["action"], one["resource"]) for one in listed} == {
        ("cleo", "read", "block:garden"), ("type:service", "chat", "block:*"),
    }  # fmt: skip
    assert (await env.http.delete(path)).status_code == 204
    assert (await env.http.delete(path)).status_code == 404
    assert len((await env.http.get("/api/blocks/garden/shares")).json()["shared_with"]) == 1
    assert (await env.http.delete("/api/blocks/garden/shares/type:service")).status_code == 404


async def test_a_share_that_makes_no_sense_changes_nothing(env: Environment) -> None:
    """For a stranger, in a block that does not exist, or for an unknown action; an earlier share stays."""
    stranger = share_policy("garden", "stranger", "chat")
    file = env.platform.home.memory / "policies" / f"{stranger.id}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        '{"subject": "stranger", "resource": "block:garden", "action": "chat", "effect": "allow"}'
    )
    path = "/api/blocks/garden/shares/stranger"

    async def is_read() -> bool:
        return (await env.http.get(path)).status_code == 200

    await until(is_read)
    assert (await env.http.put(path, json={"action": "read"})).status_code == 404
    assert (await env.http.get(path)).json()["action"] == "chat"
    assert (await env.http.put(path, json={"action": "owner"})).status_code == 400
    for place in ("shed/shares/owner", "garden/shares/Not%20an%20id", "garden/shares/%00"):
        assert (await env.http.put(f"/api/blocks/{place}", json={"action": "read"})).status_code == 404, place
    assert (await env.http.delete(path)).status_code == 204


async def test_the_audit_log_is_listed_in_pages(env: Environment) -> None:
    """The newest entry first, by the filters of ``trunkline audit``; what was changed over HTTP is in it."""
    for id in ("dora", "emil"):
        await env.http.post("/api/identities", json={"id": id})

    async def listed(**query: Any) -> dict[str, Any]:
        page: dict[str, Any] = await body_of(
            await env.http.get("/api/audit", params={"event": "auth", **query})
        )
        return page

    async def is_recorded() -> bool:
        return any("emil" in one["why"] for one in (await listed())["entries"])

    await until(is_recorded)
    whole = await listed()
    assert [one["at"] for one in whole["entries"]] == sorted(
        (one["at"] for one in whole["entries"]), reverse=True
    )
    assert whole["entries"][0]["actor"] == "owner"
    page = await listed(limit=1, offset=1)
    assert page == {"entries": whole["entries"][1:2], "total": whole["total"]}
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert await listed(since=later) == await listed(block="garden") == {"entries": [], "total": 0}
    assert (await listed(until=whole["entries"][0]["at"]))["total"] == whole["total"] - 1
    assert (await listed(offset=999_999_999)) == {"entries": [], "total": whole["total"]}


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "offset=-1", "event=all", "decision=maybe", "effect=none", "since=soon",
     "since=2020-01-01", "until=2026-01-01&since=2025-01-01", "until=0001-01-01T00:00:00%2B14:00"],
)  # fmt: skip
async def test_a_query_of_the_audit_log_has_limits(env: Environment, query: str) -> None:
    """A page, a range of days and each word is bounded; the answer names the parameter."""
    refused = await body_of(await env.http.get(f"/api/audit?{query}"), 400)
    assert refused["metadata"]["field"] in query


async def test_the_stop_is_engaged_over_http_and_released_at_the_terminal(env: Environment) -> None:
    """C31: a token with the scope ``operate`` stops everything, everybody who reads sees it, a second stop keeps the
    first record, and no request releases it."""
    switch = KillSwitch(env.platform.home.path)
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as http:
        assert await body_of(await http.get("/api/panic", headers=as_("reader"))) == {"engaged": False}
        report = await body_of(await http.post("/api/panic", headers=as_("operator")))
        assert report["engaged"] is True
        assert switch.is_engaged
        state = await body_of(await http.get("/api/panic", headers=as_("reader")))
        assert (state["engaged"], state["by"]) == (True, "operator") and state["at"]
        await body_of(await env.http.post("/api/panic", json={"on": False, "release": True}))
        assert await body_of(await http.get("/api/panic", headers=as_("reader"))) == state
        for method in ("DELETE", "PUT", "PATCH"):
            assert (await env.http.request(method, "/api/panic", json={})).status_code == 405
        assert switch.is_engaged
    assert switch.release()

    async def is_recorded() -> bool:
        entries = (await env.http.get("/api/audit", params={"event": "panic"})).json()["entries"]
        return [one["actor"] for one in entries] == ["owner", "operator"]

    with anyio.fail_after(30):
        await until(is_recorded)
