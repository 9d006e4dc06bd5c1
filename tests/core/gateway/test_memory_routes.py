"""Memory over HTTP: files and their history, search and chunks; and who is refused all of it."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.memory.chunks import MEMORY_REMEMBER, Remember
from trunkline.contracts.memory.files import MEMORY_WRITE, WriteMemory
from trunkline.workers.gateway.http.openapi.openapi_operations import OPERATIONS
from trunkline_bus import Scope

from .conftest import Environment, started_environment

pytestmark = pytest.mark.anyio

VISITORS = (
    Identity(id="mallory", scope=TokenScope.OWNER),  # a plugin gave her the scope, and she is not the owner
    Identity(id="limited", type="owner", blocks=("main",)),
    Identity(id="operator", type="owner", scope=TokenScope.OPERATE),
    Identity(id="guest", scope=TokenScope.OPERATE),
)
SECRET = "The key of the shed is under the third pot."

TRICKS = (
    "../token",
    "notes/../../token",
    "/etc/passwd",
    "~/.ssh/id_rsa",
    ".git/config",
    "notes/.GIT/hooks/post-commit",
    "notes/.env",
    "notes\\..\\token",
    "notes/a\x00b",
    "notes/\x1b[2J",
    "x" * 3_000,
    "/".join("x" * 70),
)
"""Paths that lead out of memory, into git's own files, or that no file may have."""


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    async with started_environment(Visitors(*VISITORS)) as env:
        await share(env.bus, "operate")
        yield env


async def body_of(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


async def put(env: Environment, path: str, content: str, **more: str) -> httpx.Response:
    return await env.http.put("/api/memory/file", json={"path": path, "content": content, **more})


async def get(env: Environment, what: str, **params: Any) -> Any:
    return await body_of(await env.http.get(f"/api/memory/{what}", params=params))


async def test_a_file_is_previewed_written_and_read(env: Environment) -> None:
    """The preview is the diff of the write, and its hash makes the write safe: a file that changed since is 409 with
    the reason, and stays as it is."""
    draft = {"path": "notes/beans.md", "content": "Beans\n"}
    new = await body_of(await env.http.post("/api/memory/preview", json=draft))
    assert new["hash"] == "" and "+Beans" in new["detail"]["text"]
    assert (await env.http.get("/api/memory/file", params={"path": "notes/beans.md"})).status_code == 404
    written = await body_of(await put(env, **draft, expected=new["hash"]))
    assert written["paths"] == ["notes/beans.md"] and written["version"]
    read = await get(env, "file", path="notes/beans.md")
    assert read["content"] == "Beans\n"
    changed = await body_of(
        await env.http.post("/api/memory/preview", json={**draft, "content": "Beans\nPeas\n"})
    )
    assert changed["hash"] == read["hash"] and "+Peas" in changed["detail"]["text"]
    await body_of(await put(env, "notes/beans.md", "Leeks\n"))
    conflict = await body_of(await put(env, "notes/beans.md", "Beans\nPeas\n", expected=changed["hash"]), 409)
    assert "notes/beans.md" in conflict["metadata"]["reason"]
    assert (await get(env, "file", path="notes/beans.md"))["content"] == "Leeks\n"
    names = [one["path"] for one in (await get(env, "files", path="notes"))["entries"]]
    assert "notes/beans.md" in names


async def test_history_leads_to_the_turn_and_back(env: Environment) -> None:
    """History, blame and diff name the turn that wrote a line. A revert undoes it by a commit of the owner."""
    await body_of(await put(env, "notes/plan.md", "one\ntwo\n"))
    by_turn = WriteMemory(path="notes/plan.md", content="one\nTWO\n", actor="agent")
    scope = Scope(block="main", conversation="conv_x", turn="turn_x")
    change = await env.bus.call(MEMORY_WRITE, by_turn, scope=scope)
    newest, first = (await get(env, "history", path="notes/plan.md"))["revisions"]
    assert (newest["turn"], newest["conversation"], newest["author"]) == ("turn_x", "conv_x", "agent")
    assert first["author"] == "owner" and "previous" not in newest
    spans = (await get(env, "blame", path="notes/plan.md"))["spans"]
    assert [(one["lines"], one["turn"]) for one in spans] == [(["one"], None), (["TWO"], "turn_x")]
    difference = await get(env, "diff", path="notes/plan.md")
    assert (difference["new"], difference["whole"]) == (change.version, True)
    assert "-two" in difference["text"] and "+TWO" in difference["text"]
    undone = await env.http.post("/api/memory/revert", json={"path": "notes/plan.md"})
    assert (await body_of(undone))["undone"] == change.version
    assert (await get(env, "file", path="notes/plan.md"))["content"] == "one\ntwo\n"
    old = await get(env, "file", path="notes/plan.md", version=change.version)
    assert old["content"] == "one\nTWO\n"
    assert (await get(env, "history", path="notes/plan.md", limit=1))["revisions"][0]["author"] == "owner"


async def test_a_file_is_moved_and_deleted(env: Environment) -> None:
    """Nothing is overwritten by a move, all of memory cannot be deleted, and history keeps what was deleted."""
    for name in ("a", "b"):
        await body_of(await put(env, f"moves/{name}.md", name))
    move = {"source": "moves/a.md", "target": "moves/b.md"}
    assert (await env.http.post("/api/memory/move", json=move)).status_code == 409
    await body_of(await env.http.post("/api/memory/move", json={**move, "target": "moves/c.md"}))
    for whole in (".", "./", "/"):
        refused = await env.http.delete("/api/memory/file", params={"path": whole})
        assert refused.status_code == 400
    stale = {"path": "moves/c.md", "expected": "0" * 40}
    assert (await env.http.delete("/api/memory/file", params=stale)).status_code == 409
    gone = await body_of(await env.http.delete("/api/memory/file", params={"path": "moves"}))
    assert (await env.http.get("/api/memory/file", params={"path": "moves/c.md"})).status_code == 404
    assert (await get(env, "history", path="moves/c.md"))["revisions"][0]["version"] == gone["version"]


async def test_search_explains_its_hits(env: Environment) -> None:
    """Each hit has the signals of its score."""
    await body_of(await put(env, "notes/shed.md", SECRET))
    found = await get(env, "search", query="pot of the shed", kind="file")
    assert found["searched"]
    hit = next(one for one in found["hits"] if one["path"] == "notes/shed.md")
    assert {one["signal"] for one in hit["why"]} >= {"words"} and hit["score"] > 0
    named = await get(env, "search", query="shed", names="true")
    assert [one["path"] for one in named["hits"]] == ["notes/shed.md"]
    for wrong in ({}, {"query": ""}, {"query": "x", "kind": "robot"}, {"query": "x", "limit": "0"}):
        refused = await body_of(await env.http.get("/api/memory/search", params=wrong), 400)
        assert refused["metadata"]["field"] == next(reversed(wrong or {"query": ""}))


async def test_chunks_show_their_turn_and_links(env: Environment) -> None:
    """A chunk names the conversation that it was learned in, and its neighbours. A forgotten one is gone."""
    ids = []
    for text in ("The beans need a pole.", "The pole is in the shed."):
        request = Remember(content=text, actor="agent", conversation_id="conv_beans", tags=("beans",))
        ids += (await env.bus.call(MEMORY_REMEMBER, request, scope=Scope(turn="turn_beans"))).chunk_ids
    listed = await get(env, "chunks", tag="beans")
    assert listed["total"] == 2 and {one["id"] for one in listed["chunks"]} == set(ids)
    refused = await body_of(await env.http.get("/api/memory/chunks", params={"block": "no/name"}), 400)
    assert refused["metadata"]["field"] == "block"
    chunk = await get(env, f"chunks/{ids[0]}")
    assert chunk["content"] == "The beans need a pole."
    assert (chunk["metadata"]["conversation_id"], chunk["metadata"]["turn_id"]) == (
        "conv_beans",
        "turn_beans",
    )
    links = (await get(env, f"chunks/{ids[0]}/links"))["links"]
    assert {one["chunk"]["id"] for one in links} == {ids[1]}
    await body_of(await env.http.delete(f"/api/memory/chunks/{ids[0]}"))
    for missing in (ids[0], "unknown", "..%2F..%2Ftoken"):
        assert (await env.http.get(f"/api/memory/chunks/{missing}")).status_code == 404
    assert (await get(env, "chunks", tag="beans"))["total"] == 1


@pytest.mark.parametrize("path", TRICKS, ids=lambda path: ascii(path[:30]))
async def test_a_path_out_of_memory_is_refused_everywhere(env: Environment, path: str) -> None:
    """Each route answers 400 and names the parameter, the answer has nothing of the server, and nothing changes."""
    await body_of(await put(env, "notes/start.md", "x"))
    before = (await get(env, "history", limit=1))["revisions"]
    in_query = ("file", "files", "history", "diff", "blame")
    responses = [await env.http.get(f"/api/memory/{what}", params={"path": path}) for what in in_query]
    responses.append(await env.http.delete("/api/memory/file", params={"path": path}))
    responses.append(await put(env, path, "x"))
    bodies: dict[str, dict[str, str]] = {
        "preview": {"path": path, "content": "x"},
        "revert": {"path": path},
        "move": {"source": "notes/start.md", "target": path},
    }
    responses += [await env.http.post(f"/api/memory/{what}", json=body) for what, body in bodies.items()]
    responses.append(
        await env.http.post("/api/memory/move", json={"source": path, "target": "notes/stolen.md"})
    )
    for response in responses:
        refused = await body_of(response, 400)
        assert refused["metadata"]["field"] == "path" and "is not allowed" in refused["metadata"]["reason"]
        assert str(env.platform.home.path) not in response.text
    assert (await get(env, "history", limit=1))["revisions"] == before


async def test_an_export_can_be_imported_again(env: Environment) -> None:
    """The archive has everything with its history. Importing it again changes nothing; a trial run never does."""
    await body_of(await put(env, "notes/shed.md", SECRET))
    export = await env.http.get("/api/memory/export")
    assert (export.status_code, export.headers["content-type"]) == (200, "application/x-tar")
    assert int(export.headers["content-length"]) == len(export.content)
    await body_of(await env.http.delete("/api/memory/file", params={"path": "notes/shed.md"}))
    before = (await get(env, "history", limit=1))["revisions"]

    async def bring(archive: bytes, status: int = 200, **params: str) -> Any:
        return await body_of(
            await env.http.post("/api/memory/import", content=archive, params=params), status
        )

    assert (await bring(export.content, dry_run="true"))["dry_run"]
    assert (await get(env, "history", limit=1))["revisions"] == before
    done = await bring(export.content)
    assert done["system"] == "trunkline" and done["version"]
    for wrong in (b"", b"no archive", export.content[: len(export.content) // 2]):
        refused = await bring(wrong, 400)
        assert str(env.platform.home.path) not in str(refused)
    assert (await bring(export.content, 400, kind="nothing"))["metadata"]["reason"]
    assert not [one for one in env.platform.home.cache.iterdir() if one.name.startswith(".transfer-")]


def operations() -> Iterator[tuple[str, str]]:
    """Every operation on memory, on objects that exist."""
    for method, path, *_ in OPERATIONS:
        if path.startswith("/api/memory/"):
            yield method, path.format(id="unknown")


@pytest.mark.parametrize("who", [one.id for one in VISITORS])
async def test_nobody_but_the_owner_reaches_memory(env: Environment, who: str) -> None:
    """Not with every block shared, not with the scope of the owner, and not with a token of the owner for one block:
    403 without a word of memory, and nothing changes."""
    await body_of(await put(env, "notes/shed.md", SECRET))
    before = (await get(env, "history", limit=1))["revisions"]
    body = {"path": "notes/shed.md", "content": "x", "source": "notes/shed.md", "target": "notes/x.md"}
    params = {"path": "notes/shed.md", "query": "shed"}
    seen = 0
    async with httpx.AsyncClient(base_url=env.url, headers={HEADER: who}, timeout=60) as http:
        for method, path in operations():
            sent = None if method in ("get", "delete") else body
            response = await http.request(method, path, params=params, json=sent)
            assert set(await body_of(response, 403)) == {"code", "message"}
            seen += 1
    assert seen >= 15
    assert (await get(env, "history", limit=1))["revisions"] == before
