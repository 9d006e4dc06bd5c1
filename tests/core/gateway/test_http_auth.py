"""Access to the gateway, and its accepted host names (PA-T8, T20, DEPLOY-5, design section 7)."""

import logging
import random
import socket
import string
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import msgspec
import pytest
from starlette.requests import Request

import trunkline
from tests.other_users import HEADER, Visitors, share
from trunkline.api.bus import Refusal
from trunkline.api.gateway import HttpRoute
from trunkline.config import InvalidConfig, load_config
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.errors import StorageError, TrunklineError
from trunkline.home.secret_file import load_secret
from trunkline.plugins.ownership import OwnedItem
from trunkline.runtime.http.auth import HttpAuth
from trunkline.testing.platform import platform
from trunkline.workers.gateway.http.schemas.schema_base import Error

from .conftest import Environment, started_environment
from .sse_client import converse

pytestmark = pytest.mark.anyio

NEW = "/conversations/messages"


def bare(env: Environment) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=env.url, timeout=60)


WRONG = (
    {},
    {"authorization": "Bearer"},
    {"authorization": "Bearer wrong"},
    {"authorization": "Basic {token}"},
    {"authorization": "{token}"},
    {"authorization": "Bearer {token}x"},
    {"x-api-key": ""},
    {"x-api-key": "wrong"},
    {"cookie": "token={token}"},
    {"authorization": "Bearer wrong", "x-api-key": "{token}"},
)
PATHS = ("/conversations", "/api/blocks", "/v1/models", "/openapi.json", "/nowhere")


async def test_requests_without_the_token_are_refused(env: Environment) -> None:
    """PA-T8: no credential or a wrong one is 401 everywhere, before anything happens."""
    async with bare(env) as client:
        for headers in WRONG:
            given = {name: value.replace("{token}", env.token) for name, value in headers.items()}
            for path in PATHS:
                response = await client.get(path, headers=given)
                assert (response.status_code, path) == (401, path)
                assert response.headers["www-authenticate"] == "Bearer"
                if path == "/conversations":
                    assert response.json()["metadata"]["reason"].endswith("as Bearer TOKEN, or in X-API-Key.")


async def test_the_token_works_in_both_headers(env: Environment) -> None:
    """PA-T8: the bearer token and the API key are the same credential; a token in the address is none."""
    async with bare(env) as client:
        for headers in ({"authorization": f"bearer {env.token}"}, {"x-api-key": env.token}):
            assert (await client.get("/conversations", headers=headers)).status_code == 200
        assert (await client.get("/conversations", params={"token": env.token})).status_code == 401
        twice = [("authorization", f"Bearer {env.token}"), ("authorization", "Bearer other")]
        assert (await client.get("/conversations", headers=twice)).status_code == 401


async def test_a_thousand_guesses_are_refused() -> None:
    """PA-T8: random credentials do not open the door."""
    door = HttpAuth("the-real-token-of-this-home", ())
    dice = random.Random(7)
    for _ in range(1000):
        guess = "".join(dice.choices(string.printable + "äß€", k=dice.randint(0, 60)))
        assert await door.identify([("authorization", f"Bearer {guess}")]) is None
        assert await door.identify([("x-api-key", guess)]) is None


@pytest.mark.parametrize("id", ["owner", "channel:terminal", "block:main", "type:service", "*", ""])
async def test_a_plugin_cannot_name_somebody_like_a_part_of_trunkline(id: str) -> None:
    """An authenticator may pass on any user name. One that stands for the owner, a channel or a group is refused."""
    door = HttpAuth("the-real-token-of-this-home", [OwnedItem("proxy", Visitors(Identity(id=id)))])
    assert await door.identify([(HEADER, id)]) is None
    ann = HttpAuth("the-real-token-of-this-home", [OwnedItem("proxy", Visitors(Identity(id="ann")))])
    assert (await ann.identify([(HEADER, "ann")])) == Identity(id="ann")


@pytest.mark.parametrize("type", ["collaborator", "service"])
async def test_a_plugin_gives_nobody_else_the_scope_of_the_owner(type: str) -> None:
    """A route that asks for the scope ``owner`` alone, such as one of a plugin, would let that person in."""
    guest = Visitors(Identity(id="ann", type=type, scope=TokenScope.OWNER))
    door = HttpAuth("the-real-token-of-this-home", [OwnedItem("proxy", guest)])
    admitted = await door.identify([(HEADER, "ann")])
    assert admitted == Identity(id="ann", type=type, scope=TokenScope.OPERATE)


async def test_the_gateway_has_no_agent_loop_route(env: Environment) -> None:
    """PA-T8: ``/engine/chat`` does not exist at the gateway, with a credential or without."""
    async with bare(env) as client:
        assert (await client.post("/engine/chat", json={})).status_code == 404
    assert (await env.http.post("/engine/chat", json={})).status_code == 404


async def test_the_token_is_kept_and_never_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """PA-T20: made once, for the owner's eyes only, and in no log line."""
    with caplog.at_level(logging.DEBUG):
        async with platform(tmp_path, workers=("gateway", "memory")) as running:
            token = running.token
            file = running.home.token_file
            assert file.stat().st_mode & 0o777 == 0o600
            async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
                await client.get("/conversations", headers={"authorization": f"Bearer {token}x"})
        file.chmod(0o644)
        async with platform(tmp_path, workers=("gateway", "memory")) as running:
            assert running.token == token
            assert file.stat().st_mode & 0o777 == 0o600
    assert token not in caplog.text
    kept = [path for path in (tmp_path / "memory").rglob("*") if path.is_file()]
    assert all(token.encode() not in path.read_bytes() for path in kept)


def test_a_token_that_is_too_short_is_refused(tmp_path: Path) -> None:
    """An emptied token file must not admit every client."""
    file = tmp_path / "token"
    file.write_text("")
    with pytest.raises(StorageError, match="shorter than"):
        load_secret(file)


def test_processes_that_start_together_have_one_token(tmp_path: Path) -> None:
    """Gateway and monitor may be the first of a home at the same time; neither finds a token that is half written."""
    for number in range(20):
        file, start = tmp_path / f"token-{number}", threading.Barrier(4)

        def load(file: Path = file, start: threading.Barrier = start) -> str:
            start.wait()
            return load_secret(file)

        with ThreadPoolExecutor(4) as threads:
            found = [threads.submit(load) for _ in range(4)]
        assert {one.result() for one in found} == {file.read_text().strip()}
        assert file.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", "", "[", "10.0.0.1"]
)
async def test_requests_for_another_host_name_are_refused(env: Environment, host: str) -> None:
    """DNS rebinding: a page that reaches us under its own name is refused, with the token too."""
    response = await env.http.get("/conversations", headers={"host": host})
    assert response.status_code in (400, 403)
    if response.status_code == 403:
        assert msgspec.json.decode(response.content, type=Error).code == "forbidden"


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8420"])
async def test_own_host_names_are_accepted(env: Environment, host: str) -> None:
    """The loopback names are accepted, with any port."""
    assert (await env.http.get("/conversations", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_pages_of_another_origin_cannot_send(env: Environment, headers: dict[str, str]) -> None:
    """An unsafe request from another origin's page is refused and changes nothing."""
    response = await env.http.post(NEW, json={"content": "hi"}, headers=headers)
    assert response.status_code == 403
    assert "another origin" in response.json()["metadata"]["reason"]
    assert env.monitor.seen == []


@pytest.mark.parametrize("name", ["origin", "sec-fetch-site"])
async def test_conflicting_origin_headers_are_refused(env: Environment, name: str) -> None:
    """A request that says twice where it comes from is refused: which one counts would be a guess."""
    ours = env.url if name == "origin" else "same-origin"
    headers = [(name, "https://evil.example"), (name, ours)]
    response = await env.http.post(NEW, json={"content": "hi"}, headers=headers)
    assert response.status_code == 403
    assert env.monitor.seen == []


async def test_our_own_page_can_send(env: Environment) -> None:
    """A page of our own origin may send."""
    await converse(env.http, NEW, {"content": "hi"}, origin=env.url, **{"sec-fetch-site": "same-origin"})


async def test_only_loopback_listens(env: Environment) -> None:
    """DEPLOY-5: without configuration the gateway listens on 127.0.0.1 and nowhere else."""
    assert env.url.startswith("http://127.0.0.1:")
    port = int(env.url.rsplit(":", 1)[1])
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(0.5)
        other.connect(("127.0.0.2", port))


async def test_a_port_in_use_is_reported_in_one_sentence(tmp_path: Path) -> None:
    """The start is refused with the cause and a hint."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TrunklineError, match=f"127.0.0.1:{port}: the port is in use") as refused:
            async with platform(tmp_path, workers=("gateway", "memory"), config={"gateway.port": port}):
                pass
    assert "gateway.port" in refused.value.hint


class Guests:
    """A plugin with its own guests, rules, routes and routing."""

    @trunkline.hookimpl
    def trunkline_authenticators(self) -> list[object]:
        return [self]

    @trunkline.hookimpl
    def trunkline_admission_rules(self) -> list[object]:
        return [Rule()]

    @trunkline.hookimpl
    def trunkline_route(self, message: SendMessage) -> str | None:
        return "garden" if "tomato" in message.content else None

    @trunkline.hookimpl
    def trunkline_http_routes(self) -> list[object]:
        return [
            HttpRoute("/open", ("GET",), said("open"), public=True),
            HttpRoute("/closed", ("GET",), said("closed")),
            HttpRoute("/broken", ("GET",), broken),
            HttpRoute("/read", ("POST",), read, public=True),
        ]

    name = "guests"

    async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
        if headers.get("x-guest") == "boom":
            raise RuntimeError("secret detail /etc/passwd")
        return Identity(id="guest", type="collaborator") if headers.get("x-guest") == "ann" else None


class Rule:
    name = "rule"

    async def __call__(self, message: SendMessage, identity: Identity) -> None:
        match message.content:
            case "too often":
                raise Refusal("rate_limited", "slow down")
            case "odd":
                raise Refusal("house_rule", "not here")
            case "boom":
                raise RuntimeError("secret detail /etc/passwd")


def said(text: str) -> Callable[[object], Awaitable[object]]:
    async def endpoint(request: object) -> object:
        from starlette.responses import PlainTextResponse

        return PlainTextResponse(text)

    return endpoint


async def read(request: Request) -> object:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(str(len(await request.body())))


async def broken(request: object) -> object:
    raise RuntimeError("secret detail /etc/passwd")


def owner_of_routes(env: Environment) -> str:
    """Return the name of the plugin, which is in the paths of its routes."""
    routes = env.platform.instance.workers["gateway"].context.plugins.http_routes()
    return next(one.owner for one in routes if one.item.path.endswith("open"))


class TestPlugins:
    """The routes, rules and authenticators that plugins add to the gateway."""

    @pytest.fixture(scope="class")
    async def shared(self, anyio_backend: str) -> AsyncIterator[Environment]:
        async with started_environment(Guests()) as env:
            yield env

    async def test_a_body_for_a_plugin_has_a_limit(self, env: Environment) -> None:
        """A stranger cannot fill the gateway's memory through a public route, whether the size is declared or not."""

        read = f"/x/{owner_of_routes(env)}/read"

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 1_000_000

        async with bare(env) as client:
            assert (await client.post(read, content=b"small")).text == "5"
            for content in (b"x" * 100_000_000, pieces()):
                refused = await client.post(read, content=content)
                assert (refused.status_code, refused.json()["code"]) == (413, "too_large")

    async def test_an_authenticator_plugin_admits_its_users(self, env: Environment) -> None:
        """A plugin's identity is the turn's actor; one that fails refuses, though others might admit."""
        async with bare(env) as client:
            await share(env.bus)
            await converse(client, NEW, {"content": "hi"}, **{"x-guest": "ann"})
            assert env.monitor.requests[0].actor == "guest"
            for name in ("boom", "bob"):
                response = await client.get("/conversations", headers={"x-guest": name})
                assert response.status_code == 401
                assert "passwd" not in response.text

    @pytest.mark.parametrize(
        ("content", "status", "code"),
        [("too often", 429, "rate_limited"), ("odd", 403, "forbidden"), ("boom", 403, "forbidden")],
    )
    async def test_rules_refuse(self, env: Environment, content: str, status: int, code: str) -> None:
        """A rule's refusal keeps its code if that is one of ours; a rule that fails refuses (fail closed)."""
        response = await env.http.post(NEW, json={"content": content})
        assert response.status_code == status
        assert msgspec.json.decode(response.content, type=Error).code == code
        assert "passwd" not in response.text
        assert env.monitor.seen == []

    async def test_a_route_chooses_the_block(self, env: Environment) -> None:
        """A message that names no block goes where the plugin says."""
        await env.terminal.create_block("garden")
        await converse(env.http, NEW, {"content": "a tomato"})
        await converse(env.http, NEW, {"content": "a stone"})
        assert [request.block for request in env.monitor.requests] == ["garden", "main"]

    async def test_routes_of_plugins(self, env: Environment) -> None:
        """They are under ``/x/<plugin>/``, and need the credential unless public; a failing one reveals no detail."""
        owner = owner_of_routes(env)
        async with bare(env) as client:
            assert (await client.get(f"/x/{owner}/open")).text == "open"
            assert (await client.get(f"/x/{owner}/closed")).status_code == 401
        assert (await env.http.get(f"/x/{owner}/closed")).text == "closed"
        response = await env.http.get(f"/x/{owner}/broken")
        assert response.status_code == 500
        assert msgspec.json.decode(response.content, type=Error).code == "internal"


async def test_a_configured_proxy_host_is_accepted(tmp_path: Path) -> None:
    """``gateway.allowed_hosts``: exactly those names, in any case and with any port; all others are refused as
    before."""
    settings = {"gateway.allowed_hosts": ["agents.example.org"]}
    async with (
        platform(tmp_path, workers=("gateway", "memory"), config=settings) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60) as client,
    ):
        for host, status in (
            ("agents.example.org", 200),
            ("Agents.Example.ORG:443", 200),
            ("evil.agents.example.org", 403),
            ("agents.example.org.evil.com", 403),
            ("example.org", 403),
            ("", 403),
        ):
            answer = await client.get("/healthz", headers={"host": host})
            assert answer.status_code == status, host
            assert status == 200 or "allowed_hosts" in answer.json()["metadata"]["reason"], host


@pytest.mark.parametrize("name", ["*", "https://agents.example.org", "a b", "", "agents.example.org/x"])
def test_an_invalid_host_header_is_refused(name: str, tmp_path: Path) -> None:
    """A wildcard or an address with a path would open more than is meant."""
    with pytest.raises(InvalidConfig, match=r"gateway\.allowed_hosts"):
        load_config(tmp_path, flags={"gateway.allowed_hosts": [name]}, environ={})
