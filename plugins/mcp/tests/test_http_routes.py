"""The servers over HTTP: for the owner alone; added, changed, tested and removed in the file that the commands write;
values as names of variables; what is wrong is refused with a sentence and changes nothing."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.testing.platform import Platform, platform

from .mcp_servers import BarePlugin, entry

pytestmark = pytest.mark.anyio

SERVERS = "/x/trunkline-mcp/servers"

VISITORS = (
    Identity(id="guest", scope=TokenScope.OPERATE),
    Identity(id="operator", type="owner", scope=TokenScope.OPERATE),
    Identity(id="limited", type="owner", blocks=("main",)),
)

SECRET = "sk-written-into-the-file"


@pytest.fixture(scope="module")
async def running(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    config = {"plugins.disabled": ("trunkline-sandbox",)}  # so that these programs run as they are
    plugins: tuple[object, ...] = (BarePlugin(), Visitors(*VISITORS))
    home = tmp_path_factory.mktemp("home")
    workers = ("gateway", "memory", "tools")
    async with platform(home, plugins=plugins, config=config, workers=workers) as started:
        await share(started.bus, "operate")
        yield started


@pytest.fixture
async def http(running: Platform) -> AsyncIterator[httpx.AsyncClient]:
    """The owner's requests, in a home without servers."""
    (running.home.path / "mcp.json").unlink(missing_ok=True)
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as client:
        yield client


def written(running: Platform, name: str = "mcp.json") -> dict[str, Any]:
    file = running.home.path / name
    return dict(json.loads(file.read_text())["mcpServers"]) if file.exists() else {}


def write(running: Platform, servers: dict[str, Any]) -> None:
    (running.home.path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def test_a_server_is_added_tested_changed_and_removed(
    http: httpx.AsyncClient, running: Platform
) -> None:
    """The file has what was sent; the test says what the server of now offers, without a restart."""
    added = await http.post(SERVERS, json={"name": "files", "entry": entry("echo")})
    assert added.status_code == 200, added.text
    assert written(running)["files"] == entry("echo")
    tested = (await http.post(f"{SERVERS}/test", json={"server": "files"})).json()
    assert tested["state"] == "ready" and tested["tools"], tested
    (shown,) = (await http.get(SERVERS)).json()["servers"]
    assert (shown["state"], shown["trust"], shown["tools"]) == ("ready", "untrusted", tested["tools"])
    patch = {"command": "/bin/false", "args": None, "trust": "trusted", "env": {"TOKEN": {"env": "MY_TOKEN"}}}
    changed = await http.patch(SERVERS, json={"server": "files", "entry": patch})
    assert changed.status_code == 200, changed.text
    assert written(running)["files"] == {
        "command": "/bin/false",
        "trust": "trusted",
        "env": {"TOKEN": {"env": "MY_TOKEN"}},
    }
    tested = (await http.post(f"{SERVERS}/test", json={"server": "files"})).json()
    assert tested["state"] == "failed" and tested["why"], "the test is of the changed server"
    off = await http.patch(SERVERS, json={"server": "files", "entry": {"disabled": True}})
    assert off.json()["servers"][0]["state"] == "disabled"
    assert (await http.post(f"{SERVERS}/test", json={"server": "files"})).status_code == 404
    gone = await http.post(f"{SERVERS}/remove", json={"server": "files"})
    assert gone.json()["servers"] == [] and written(running) == {}


async def test_a_blocks_server_is_in_its_own_file(http: httpx.AsyncClient, running: Platform) -> None:
    """It is named with its block from then on."""
    new = {"name": "docs", "block": "main", "entry": {"url": "http://127.0.0.1:9/mcp"}}
    shown = (await http.post(SERVERS, json=new)).json()["servers"]
    assert [one["server"] for one in shown] == ["main/docs"]
    assert written(running, "mcp/main.json") == {"docs": {"url": "http://127.0.0.1:9/mcp"}}
    await http.post(f"{SERVERS}/remove", json={"server": "main/docs"})
    assert written(running, "mcp/main.json") == {}


async def test_a_text_of_the_file_never_comes_out_and_stays(
    http: httpx.AsyncClient, running: Platform
) -> None:
    """A key that somebody wrote into the file is not shown; a change of something else, or of another variable, leaves
    it and all keys that a request may not set."""
    kept = {
        "url": "http://127.0.0.1:9/mcp",
        "headers": {"Authorization": SECRET, "X-Team": {"env": "TEAM"}, "X-Mixed": "Bearer ${DOCS_TOKEN}"},
        "oauth": {"client_id": "me"},
        "protocol": "2025-11-25",
    }
    write(running, {"docs": kept})
    shown = await http.get(SERVERS)
    assert SECRET not in shown.text
    headers = shown.json()["servers"][0]["headers"]
    assert headers == {"Authorization": None, "X-Team": "TEAM", "X-Mixed": None}
    patch = {"trust": "trusted", "headers": {"X-Team": None, "X-More": {"env": "MORE"}}}
    assert (await http.patch(SERVERS, json={"server": "docs", "entry": patch})).status_code == 200
    headers = {"Authorization": SECRET, "X-Mixed": "Bearer ${DOCS_TOKEN}", "X-More": {"env": "MORE"}}
    assert written(running)["docs"] == {**kept, "headers": headers, "trust": "trusted"}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a text as a secret": ({"url": "https://a.example", "headers": {"Key": SECRET}}, "name of a variable"),
    "a text as a variable": ({"command": "x", "env": {"KEY": "$OTHER"}}, "name of a variable"),
    "no name of a variable": ({"command": "x", "env": {"KEY": {"env": "a b"}}}, "env"),
    "this machine's network": ({"command": "x", "network": "host"}, "in the file alone"),
    "an unknown key": ({"command": "x", "comand": "y"}, "in the file alone"),
    "a sign-in": ({"url": "https://a.example", "oauth": {"client_id": "x"}}, "in the file alone"),
    "both": ({"command": "x", "url": "https://a.example"}, "keep one"),
    "neither": ({}, "a command or a url"),
    "another scheme": ({"url": "file:///etc/passwd"}, "https://"),
    "a NUL": ({"command": "x\0y"}, "NUL"),
    "a relative folder": ({"command": "x", "folder": "../.."}, "absolute"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_is_wrong_is_refused(http: httpx.AsyncClient, running: Platform, what: str) -> None:
    """With a sentence, and nothing is written: neither by adding nor by changing."""
    refused, said = REFUSED[what]
    added = await http.post(SERVERS, json={"name": "bad", "entry": refused})
    assert added.status_code == 400 and said in added.text, added.text
    assert written(running) == {} and SECRET not in added.text
    both = {"url": "http://127.0.0.1:9/mcp", "command": None}
    write(running, {"good": {"url": "http://127.0.0.1:9/mcp"}})
    if what != "neither":  # an empty change is none
        patch = {**both, **refused} if "command" not in refused else {**refused}
        changed = await http.patch(SERVERS, json={"server": "good", "entry": patch})
        assert changed.status_code == 400, changed.text
    assert written(running) == {"good": {"url": "http://127.0.0.1:9/mcp"}}


async def test_names_are_checked(http: httpx.AsyncClient, running: Platform) -> None:
    """A name leads to no other file, an existing server is not replaced, and a missing one is 404."""
    ok = {"url": "http://127.0.0.1:9/mcp"}
    for name, block in (("../x", ""), ("a/b", ""), ("", ""), ("x", "../.."), ("x", "No Block")):
        reply = await http.post(SERVERS, json={"name": name, "block": block, "entry": ok})
        assert reply.status_code == 400, (name, block, reply.text)
    assert (await http.post(SERVERS, json={"name": "docs", "entry": ok})).status_code == 200
    assert (await http.post(SERVERS, json={"name": "docs", "entry": ok})).status_code == 409
    for server in ("doc", "main/docs"):
        assert (await http.patch(SERVERS, json={"server": server, "entry": ok})).status_code == 404
        assert (await http.post(f"{SERVERS}/remove", json={"server": server})).status_code == 404
        assert (await http.post(f"{SERVERS}/test", json={"server": server})).status_code == 404
    for body in (b"[]", b"\xff", b"{", b'{"server": 1}', b"[" * 100_000):
        assert (await http.post(f"{SERVERS}/remove", content=body)).status_code == 400
    assert list(written(running)) == ["docs"]


async def test_a_broken_file_is_not_overwritten(http: httpx.AsyncClient, running: Platform) -> None:
    """It is listed as a problem, and a change is refused until a person corrects it."""
    file = running.home.path / "mcp.json"
    file.write_text("{ no JSON")
    assert (await http.get(SERVERS)).json()["problems"][0]["where"] == "mcp.json"
    reply = await http.post(SERVERS, json={"name": "docs", "entry": {"url": "http://127.0.0.1:9/mcp"}})
    assert reply.status_code == 400 and "Correct the file first" in reply.text
    assert file.read_text() == "{ no JSON"


@pytest.mark.parametrize("visitor", VISITORS, ids=lambda one: one.id)
async def test_only_the_owner_sees_and_changes_servers(
    http: httpx.AsyncClient, running: Platform, visitor: Identity
) -> None:
    """Everybody else is refused everywhere, and so is nobody."""
    write(running, {"docs": {"url": "http://127.0.0.1:9/mcp"}})
    for headers in ({HEADER: visitor.id}, {}):
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as other:
            replies = (
                await other.get(SERVERS),
                await other.post(SERVERS, json={"name": "x", "entry": {"command": "id"}}),
                await other.patch(SERVERS, json={"server": "docs", "entry": {"disabled": True}}),
                await other.post(f"{SERVERS}/remove", json={"server": "docs"}),
                await other.post(f"{SERVERS}/test", json={"server": "docs"}),
            )
            assert {one.status_code for one in replies} == ({403} if headers else {401})
    assert written(running) == {"docs": {"url": "http://127.0.0.1:9/mcp"}}


async def test_the_file_is_the_owners(http: httpx.AsyncClient, running: Platform) -> None:
    """Nobody else on the machine reads it."""
    await http.post(SERVERS, json={"name": "docs", "entry": {"url": "http://127.0.0.1:9/mcp"}})
    assert mode_of(running.home.path / "mcp.json") & 0o077 == 0


def mode_of(file: Path) -> int:
    return file.stat().st_mode
