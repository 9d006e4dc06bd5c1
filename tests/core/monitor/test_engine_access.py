"""Access to the bare agent loop, and the permissions of its calls: no port is open unless configured, and headers
only remove permissions (PA-F22, F33, T8)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.other_users import HEADER, Visitors, share
from trunkline.contracts.gateway.access import Identity
from trunkline.errors import TrunklineError
from trunkline.home.listeners import read_listeners
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_provider import ScriptedProvider

pytestmark = pytest.mark.anyio

WORKERS = ("gateway", "monitor", "tools", "memory")
ALL = {"x-actor-id": "owner", "x-actor-permissions": "memory:*,tools:*"}
WRITE = 'call:write_file {"path": "x.txt", "content": "x"} ;; quote'
REMEMBER = 'call:memory_read {"path": "/secret.md"} ;; quote'


@asynccontextmanager
async def serving(
    home: Path, provider: ScriptedProvider, *plugins: object
) -> AsyncIterator[tuple[Platform, httpx.AsyncClient]]:
    """Run a platform whose calls need no approval, with its agent loop served, and a client without a credential."""
    config = {
        "monitor.engine": True,
        **provider.settings,
        "permissions.approvals": "none",
    }
    async with (
        platform(home, config=config, workers=WORKERS, plugins=plugins) as running,
        httpx.AsyncClient(base_url=running.engine_url, timeout=60) as http,
    ):
        yield running, http


class Engine:
    """An agent loop that tests share, a client of it without a credential, and the vendor behind it."""

    def __init__(self, running: Platform, http: httpx.AsyncClient, provider: ScriptedProvider) -> None:
        self.running, self.http, self.provider = running, http, provider
        self.written = running.home.workspace("main") / "x.txt"
        """The file of ``WRITE``."""

    @property
    def owner(self) -> dict[str, str]:
        """The headers of the owner."""
        return owner(self.running)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    """One platform for the tests that change nothing but ``x.txt``. ``PEOPLE`` may chat there."""
    home = tmp_path_factory.mktemp("engine")
    (home / "memory").mkdir()
    (home / "memory" / "secret.md").write_text("the combination is 4711")
    with ScriptedProvider() as provider:
        async with serving(home, provider, Visitors(*PEOPLE)) as (running, http):
            await share(running.bus)
            yield Engine(running, http, provider)


@pytest.fixture
def engine(shared: Engine) -> Iterator[Engine]:
    """The shared one: its vendor was asked nothing, and nothing is written."""
    shared.provider.forget()
    assert not shared.written.exists()
    yield shared
    shared.written.unlink(missing_ok=True)


def request(program: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": program}], "metadata": {"correlation_id": "c"}}


def owner(running: Platform) -> dict[str, str]:
    return {"authorization": f"Bearer {running.token}"}


async def test_no_port_is_open_unless_configured(tmp_path: Path) -> None:
    """Without the setting a monitor opens nothing; the bus is all that listens."""
    async with platform(tmp_path, workers=("monitor",)) as running:
        assert running.engine_url == ""
        assert all("bus" in one.purpose for one in read_listeners(tmp_path / "run"))


async def test_pa_t8_requests_without_token_or_from_other_hosts_are_refused(engine: Engine) -> None:
    """No token, a wrong one, two credentials, a foreign Host, a foreign Origin: refused, and no model is asked."""
    token = engine.owner
    attempts: list[tuple[int, list[tuple[str, str]]]] = [
        (401, []),
        (401, [("authorization", "Bearer wrong-wrong-wrong-wrong")]),
        (401, [*token.items(), ("x-api-key", engine.running.token)]),
        (401, [*token.items(), *token.items()]),
        (403, [*token.items(), ("host", "evil.example")]),
        (403, [*token.items(), ("origin", "http://evil.example")]),
        (403, [*token.items(), ("sec-fetch-site", "cross-site")]),
    ]
    for status, headers in attempts:
        answer = await engine.http.post("/engine/chat", json=request(WRITE), headers=[*headers, *ALL.items()])
        assert answer.status_code == status, headers
    for headers in (
        token,
        {**token, "x-actor-id": "owner"},
        {**token, "x-actor-permissions": "tools:*"},
    ):
        answer = await engine.http.post("/engine/chat", json=request(WRITE), headers=headers)
        assert answer.status_code == 401
    assert engine.provider.answer_requests == []
    answer = await engine.http.post("/engine/chat", json=request("say:hello"), headers={**token, **ALL})
    assert answer.status_code == 200 and "hello" in answer.text


@pytest.mark.parametrize(
    ("permissions", "program", "done"),
    [
        ("memory:*,tools:*", WRITE, True),
        ("tools:read_file", WRITE, False),
        ("memory:*", WRITE, False),
        ("", WRITE, False),
        ("tools", WRITE, False),
        ("memory:*,tools:*", REMEMBER, True),
        ("tools:*", REMEMBER, False),
        ("tools:*,memory:/garden/*", REMEMBER, False),
        ("tools:*,memory:/secret.md", REMEMBER, True),
    ],
)
async def test_pa_f33_the_permissions_of_the_request_hold(
    engine: Engine, permissions: str, program: str, done: bool
) -> None:
    """A call outside of a request's permissions is refused where every other call is permitted without approval."""
    headers = {**engine.owner, "x-actor-id": "owner", "x-actor-permissions": permissions}
    answer = await engine.http.post("/engine/chat", json=request(program), headers=headers)
    assert answer.status_code == 200, answer.text
    assert (engine.written.exists() if program == WRITE else "4711" in answer.text) is done, answer.text


async def test_actor_permissions_do_not_widen_a_blocks_permissions(engine: Engine) -> None:
    """``tools:*`` runs no program in a block that may not run any."""
    program = 'call:execute_command {"command": "touch x"} ;; quote'
    answer = await engine.http.post("/engine/chat", json=request(program), headers={**engine.owner, **ALL})
    assert "execute_command (exec) was refused to the block main" in answer.text


async def test_a_port_in_use_is_reported_and_no_other_is_used(tmp_path: Path) -> None:
    """Programs configured with the port would send the token to the process that listens on it."""
    with ScriptedProvider() as provider:
        taken = int(provider.url.rsplit(":", 1)[1].split("/")[0])
        config = {"monitor.engine": True, "monitor.engine_port": taken}
        with pytest.raises(TrunklineError, match=f"127.0.0.1:{taken}: the port is in use"):
            async with platform(tmp_path, config=config, workers=("monitor",)):
                pass


PEOPLE = (
    Identity(id="bob", type="collaborator", permissions=("tools:read_file",)),
    Identity(id="eve", type="owner", permissions=("tools:read_file",)),
    Identity(id="ann", type="service", permissions=("tools:*",)),
    Identity(id="nil", type="service", permissions=()),
)
"""People besides the owner, each with permissions of their own; one calls herself an owner."""


@pytest.mark.parametrize(
    ("who", "actor", "permissions", "status", "writes"),
    [
        ("bob", "bob", "memory:*,tools:*", 200, False),
        ("eve", "eve", "*", 200, False),
        ("eve", "owner", "*", 403, False),
        ("bob", "owner", "*", 403, False),
        ("ann", "ann", "*", 200, True),
        ("ann", "ann", "tools:read_file", 200, False),
        ("ann", "bob", "tools:*", 403, False),
        ("nil", "nil", "*", 200, False),
    ],
)
async def test_a_credential_that_permits_less_is_not_widened_by_a_header(
    engine: Engine, who: str, actor: str, permissions: str, status: int, writes: bool
) -> None:
    """A person admitted by an authenticator acts under their own id and within their permissions, whatever type they
    have."""
    headers = {HEADER: who, "x-actor-id": actor, "x-actor-permissions": permissions}
    answer = await engine.http.post("/engine/chat", json=request(WRITE), headers=headers)
    assert answer.status_code == status, answer.text
    assert engine.written.exists() is writes, answer.text


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"messages": ' + b"[" * 200_000, b'{"messages": "\xff"}'])
async def test_a_body_that_no_reader_follows_is_refused(engine: Engine, body: bytes) -> None:
    """Endless nesting and bytes that are not text are the sender's fault; the loop continues."""
    headers = {**engine.owner, **ALL, "content-type": "application/json"}
    answer = await engine.http.post("/engine/chat", content=body, headers=headers)
    assert answer.status_code == 400


def of_block(name: object) -> dict[str, Any]:
    return {**request(WRITE), "metadata": {"correlation_id": "c", "client_context": {"block": name}}}


async def test_a_disabled_block_is_refused_here_too(tmp_path: Path) -> None:
    """Stopped, archived, mistyped in its file, never made: refused with the gateway's code and reason, no model is
    asked, and no workspace is made."""
    garden = tmp_path / "memory" / "blocks" / "garden" / "block.toml"
    garden.parent.mkdir(parents=True)
    with ScriptedProvider() as provider:
        async with serving(tmp_path, provider) as (running, http):
            http.headers.update({**owner(running), **ALL})

            async def refused(block: object) -> tuple[int, str, str]:
                await anyio.sleep(0.5)  # an edit by hand counts after a moment
                answer = await http.post("/engine/chat", json=of_block(block))
                said = answer.json()
                return answer.status_code, said["code"], said["metadata"]["reason"]

            for text, reason in (
                ("enabled = false\n", "The block 'garden' is switched off."),
                ("\nenabled = flase\n", "blocks/garden/block.toml: Invalid value (at line 2"),
                ('model = "m"\nenbled = false\n', "blocks/garden/block.toml, line 2: "),
            ):
                garden.write_text(text)
                status, code, said = await refused("garden")
                assert (status, code) == (409, "conflict") and reason in said
            garden.rename(tmp_path / "block.toml")
            for name in ("garden", "nonexistent", "../garden", "Main", ""):
                status, code, said = await refused(name)
                assert (status, code) == (404, "not_found") and repr(name) in said
            assert (await refused(7))[:2] == (400, "invalid_request")
            assert provider.answer_requests == []
            assert not (tmp_path / "workspaces" / "garden").exists()
            garden.write_text("enabled = true\n")
            await anyio.sleep(0.5)
            assert (await http.post("/engine/chat", json=of_block("garden"))).status_code == 200
            assert (tmp_path / "workspaces" / "garden" / "x.txt").exists()


async def test_the_default_block_is_there_before_its_first_message(tmp_path: Path) -> None:
    """Without a gateway no process has created its file yet."""
    with ScriptedProvider() as provider:
        config = {"monitor.engine": True, "gateway.default_block": "desk", **provider.settings}
        async with (
            platform(tmp_path, config=config, workers=("monitor", "tools", "memory")) as running,
            httpx.AsyncClient(base_url=running.engine_url, timeout=60) as http,
        ):
            http.headers.update({**owner(running), **ALL})
            answer = await http.post("/engine/chat", json=request("say:hello"))
            assert answer.status_code == 200 and "hello" in answer.text
            assert (await http.post("/engine/chat", json=of_block("garden"))).status_code == 404


async def test_the_name_of_a_wrong_file_is_shown_to_the_owner_only(tmp_path: Path) -> None:
    """A person admitted by another authenticator receives the code and its sentence only."""
    block = tmp_path / "memory" / "blocks" / "main" / "block.toml"
    block.parent.mkdir(parents=True)
    block.write_text("enabled = flase\n")
    with ScriptedProvider() as provider:
        async with serving(tmp_path, provider, Visitors(*PEOPLE)) as (running, http):
            await share(running.bus)
            headers = {HEADER: "ann", "x-actor-id": "ann", "x-actor-permissions": "*"}
            answer = await http.post("/engine/chat", json=request("say:hi"), headers=headers)
            assert answer.status_code == 409 and "block.toml" not in answer.text


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"messages": []}, "/messages"),
        ({"messages": [{"role": "wizard", "content": ""}]}, "/messages/0/role"),
        ({"messages": [{"role": "user"}]}, "/messages/0/content"),
        (
            {
                "messages": [
                    {"role": "tool", "content": "x", "tool_call_id": "zz"},
                    {"role": "user", "content": "hi"},
                ]
            },
            "/messages/0/tool_call_id",
        ),
        ({"metadata": {}}, "/metadata/correlation_id"),
        ({"metadata": {"correlation_id": ""}}, "/metadata/correlation_id"),
    ],
)
async def test_an_invalid_request_is_refused_with_the_field(
    engine: Engine, change: dict[str, Any], field: str
) -> None:
    """The error is that of the gateway, and does not repeat the request's content."""
    headers = {**engine.owner, **ALL}
    answer = await engine.http.post("/engine/chat", json={**request("say:hi"), **change}, headers=headers)
    assert answer.status_code == 400 and answer.json()["metadata"]["field"] == field
    assert "wizard" not in answer.text
