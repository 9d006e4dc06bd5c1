"""The scope of every route: nothing is reached without a credential, or with a token of a smaller scope."""

from collections.abc import AsyncIterator, Iterator
from re import sub

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

import trunkline
from tests.other_users import HEADER, Visitors
from trunkline.api.gateway import HttpRoute
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.subjects import GATEWAY_OPERATIONS
from trunkline.contracts.models.listing import ModelListings
from trunkline.contracts.models.subjects import LIST_MODELS
from trunkline.contracts.turns.subjects import INBOX
from trunkline.home.kill_switch import KillSwitch
from trunkline.workers.gateway.http.app import own_routes
from trunkline.workers.gateway.http.openapi.openapi_document import openapi_document
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute
from trunkline_bus import service

from .conftest import Environment, started_environment

pytestmark = pytest.mark.anyio

OPEN = {
    "/healthz", "/readyz", "/api/pair", "/pair", "/api/passkeys/sign-in", "/api/passkeys/sign-in/options",
    "/api/locales", "/api/locales/unknown",
}  # fmt: skip
"""The paths of the gateway's own routes that need no credential."""

MEMORYBLOCK = {
    "GET /api/health": "GET /healthz",
    "GET /api/auth/status": "GET /api/me",
    "GET /api/version": "GET /api/overview",
    "GET /api/blocks": "GET /api/blocks",
    "POST /api/blocks": "POST /api/blocks",
    "GET /api/blocks/:n": "GET /api/blocks/{name}",
    "DELETE /api/blocks/:n": "DELETE /api/blocks/{name}",
    "POST /api/blocks/:n/start": "POST /api/blocks/{name}/start",
    "POST /api/blocks/:n/stop": "POST /api/blocks/{name}/stop",
    "POST /api/blocks/:n/reset": "POST /api/blocks/{name}/reset",
    "POST /api/blocks/:n/chat": "POST /conversations/messages",
    "POST /api/blocks/:n/stream": "GET /api/turns/{id}/events",
    "POST /api/blocks/:n/approve": "POST /api/turns/{id}/calls/{call}/decision",
    "POST /api/blocks/:n/deny": "POST /api/turns/{id}/calls/{call}/decision",
    "GET /api/blocks/:n/chat": "GET /conversations/{id}",
    "GET /api/blocks/:n/logs": "GET /conversations",
    "GET /api/blocks/:n/config": "GET /api/blocks/{name}",
    "PUT /api/blocks/:n/config": "PATCH /api/blocks/{name}",
    "GET /api/channels": "GET /api/overview",
    "GET /api/archive": "GET /api/blocks",
    "POST /api/archive/:n/restore": "POST /api/blocks/{name}/restore",
    "DELETE /api/archive/:n": "DELETE /api/blocks/{name}",
    "GET /api/plugins": "GET /api/plugins",
    "WebSocket /api/ws": "WebSocket /ws",
}
"""Each route of memoryblock, and the one that does the same here. Not there are POST /api/update, and the installation
and removal of plugins: a plugin is code, so only a command at the owner's terminal changes it (C14). trunkline.toml
has limits that no request may change (C37)."""

HOLDERS = tuple(Identity(id=f"{scope}-token", type="owner", scope=scope) for scope in TokenScope)
"""The owner with a token of each scope, so that nothing but the scope decides."""

LIMITED = Identity(id="limited-token", type="owner", blocks=("main",))

GUEST = Identity(id="guest")
"""Somebody with whom nothing is shared."""


class Routes:
    """A plugin with routes of three kinds."""

    @trunkline.hookimpl
    def trunkline_http_routes(self) -> list[object]:
        return [
            HttpRoute("/default", ("GET",), said),
            HttpRoute("/chat", ("GET",), said, scope=TokenScope.CHAT),
            HttpRoute("/open", ("GET",), said, public=True),
            HttpRoute("/in/{block}", ("GET",), said, scope=TokenScope.READ, by_block=True),
            HttpRoute("/in/{block}", ("POST",), said, by_block=True),
        ]


async def said(request: object) -> object:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse("said")


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Environment]:
    """A platform where a monitor lists models. Without one the gateway would wait half a minute for the list."""
    async with (
        started_environment(Visitors(*HOLDERS, LIMITED, GUEST), Routes()) as env,
        service(env.bus, name="monitor", version="1.0.0") as monitor,
    ):
        await monitor.add(LIST_MODELS, no_models)
        yield env


async def no_models(request: object) -> ModelListings:
    return ModelListings()


def test_MB_F24_each_route_of_memoryblock_has_one_here() -> None:
    """A program that was written for memoryblock finds all that it could do. None of the routes takes a credential in
    its address."""
    own: set[str] = set()
    for route in own_routes():
        kinds = sorted(route.methods or ()) if isinstance(route, ScopedRoute) else ["WebSocket"]
        own.update(f"{kind} {route.path}" for kind in kinds)
    assert sorted(set(MEMORYBLOCK.values()) - own) == []


@pytest.fixture
async def client(env: Environment) -> AsyncIterator[httpx.AsyncClient]:
    """A client without a credential."""
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as http:
        yield http


def calls() -> Iterator[tuple[str, str, TokenScope | None]]:
    """Every method and path of the gateway's route table, with the declared scope."""
    for route in own_routes():
        if isinstance(route, ScopedRoute):
            for method in sorted(route.methods or ()):
                yield method, sub(r"\{[^}]+\}", "unknown", route.path), route.scope


def described() -> Iterator[tuple[ScopedRoute, str, TokenScope | None]]:
    """Every route with its methods, as the document has them: without those that Starlette adds."""
    for route in own_routes():
        if isinstance(route, ScopedRoute):
            yield from ((route, method, route.scope) for method in (route.methods or set()) - {"HEAD"})


def below(scope: TokenScope) -> dict[str, str]:
    """The header of the largest scope that is smaller."""
    order = tuple(TokenScope)
    return {HEADER: f"{order[order.index(scope) - 1]}-token"}


async def state_of(env: Environment) -> object:
    """What a request might have changed."""
    last = await env.bus.last(INBOX)
    return last and last.seq, [block.name for block in await env.terminal.blocks()]


async def test_no_route_is_reached_without_a_credential(env: Environment, client: httpx.AsyncClient) -> None:
    """PA-T8: every method of every route is 401 with a code and a correlation id, but for the health checks,
    the texts of the web app, and pairing and passkeys, where a code or a signature is the credential."""
    before = await state_of(env)
    assert {path for _, path, scope in calls() if scope is None} == OPEN
    for method, path, scope in calls():
        response = await client.request(method, path, json={} if method in ("POST", "PATCH", "PUT") else None)
        assert (response.status_code == 401) is (scope is not None), (method, path)
        assert response.headers["x-correlation-id"]
        if scope is not None and method != "HEAD":
            body = response.json()
            code = body["error"]["code"] if path.startswith("/v1/") else body["code"]
            assert code == ("invalid_api_key" if path.startswith("/v1/") else "unauthorized"), (method, path)
    assert await state_of(env) == before


async def test_no_route_is_reached_with_a_smaller_scope(env: Environment, client: httpx.AsyncClient) -> None:
    """Each is 403 with a token of the scope below, whose holder is the owner; and nothing is changed."""
    before = await state_of(env)
    seen = set()
    for method, path, scope in calls():
        if scope in (None, TokenScope.READ):
            continue
        seen.add(scope)
        response = await client.request(method, path, json={}, headers=below(scope))
        assert response.status_code == 403, (method, path, response.text)
        if method != "HEAD":
            body = response.json()
            code = body["error"]["code"] if path.startswith("/v1/") else body["code"]
            assert code == "forbidden", (method, path)
    assert seen == set(TokenScope) - {TokenScope.READ}
    assert await state_of(env) == before


async def test_every_route_is_reached_with_its_scope(env: Environment, client: httpx.AsyncClient) -> None:
    """With a token of the declared scope the handler answers, so no route asks for more than it declares."""
    for method, path, scope in calls():
        if scope is not None:
            response = await client.request(method, path, headers={HEADER: f"{scope}-token"})
            assert response.status_code not in (401, 403), (method, path, response.text)
    assert KillSwitch(env.platform.home.path).release()  # one of the routes stopped everything


async def test_routes_of_plugins_are_for_the_owner_unless_they_say_less(
    env: Environment, client: httpx.AsyncClient
) -> None:
    """A plugin's route may show anything, so its default is the largest scope, and no token for some blocks reaches
    it.
    """
    plugins = env.platform.instance.workers["gateway"].context.plugins
    owner = next(one.owner for one in plugins.http_routes() if one.item.path == "/default")

    async def status(path: str, scope: str) -> int:
        return (await client.get(f"/x/{owner}{path}", headers={HEADER: f"{scope}-token"})).status_code

    assert [await status("/default", scope) for scope in ("read", "operate", "owner")] == [403, 403, 200]
    assert [await status("/chat", scope) for scope in ("read", "chat", "owner")] == [403, 200, 200]
    limited = {HEADER: LIMITED.id}
    assert (await client.get("/api/me", headers=limited)).json()["scope"] == "owner"
    for path in ("/default", "/chat"):
        assert (await client.get(f"/x/{owner}{path}", headers=limited)).status_code == 403
    assert (await client.get(f"/x/{owner}/open")).status_code == 200
    assert (await client.get(f"/x/{owner}/chat")).status_code == 401


async def test_a_route_by_block_is_for_whom_the_block_is_shared_with(
    env: Environment, client: httpx.AsyncClient
) -> None:
    """A token for some blocks reaches these blocks only. A block that is not shared does not exist, and who may read
    one may not do what needs more."""
    plugins = env.platform.instance.workers["gateway"].context.plugins
    owner = next(one.owner for one in plugins.http_routes() if one.item.path == "/default")

    async def status(method: str, block: str, who: str) -> int:
        return (await client.request(method, f"/x/{owner}/in/{block}", headers={HEADER: who})).status_code

    assert [await status("GET", "main", who) for who in ("read-token", LIMITED.id, GUEST.id)] == [
        200,
        200,
        404,
    ]
    assert [await status("GET", block, LIMITED.id) for block in ("other", "No-Name")] == [404, 404]
    assert [await status("POST", "main", who) for who in ("read-token", LIMITED.id)] == [403, 403]
    assert (await client.get(f"/x/{owner}/in/main")).status_code == 401


async def test_a_web_socket_needs_its_scope(env: Environment) -> None:
    """The handshake is refused, so nothing can be sent."""
    sockets = [route for route in own_routes() if isinstance(route, ScopedWebSocketRoute)]
    assert sockets
    for route in sockets:
        url = env.url.replace("http", "ws", 1) + route.path.replace("{path:path}", "unknown")
        attempts = [(401, {}), *([] if route.scope is TokenScope.READ else [(403, below(route.scope))])]
        for status, headers in attempts:
            with pytest.raises(InvalidStatus) as refused:
                async with connect(url, additional_headers=headers):
                    pass
            assert refused.value.response.status_code == status, url


def test_the_openapi_document_has_the_scope_of_every_route() -> None:
    """As the roles of the security requirement, with each credential; a route without a scope requires nothing."""
    declared = {(route.path, method): scope for route, method, scope in described()}
    paths = openapi_document()["paths"]
    security = {
        (path, method.upper()): one["security"] for path, own in paths.items() for method, one in own.items()
    }
    assert set(security) == {place for place in declared if place[0] not in ("/openapi.json", "/pair")}
    for place, required in security.items():
        scope = declared[place]
        assert required == ([] if scope is None else [{"bearer": [scope.value]}, {"key": [scope.value]}]), (
            place
        )


def test_every_operation_of_the_gateway_has_a_scope() -> None:
    """What changes something needs more than reading, and only the owner deletes and revokes."""
    scopes = {operation.name: operation.scope for operation in GATEWAY_OPERATIONS}
    assert scopes["gateway.send"] is TokenScope.CHAT and scopes["gateway.decide"] is TokenScope.APPROVE
    assert {name for name, scope in scopes.items() if scope is TokenScope.OWNER} == {
        "gateway.approvals.forget",
        "gateway.blocks.delete",
        "gateway.senders.link",
    }
    assert not {one.name for one in GATEWAY_OPERATIONS if one.root and one.scope is TokenScope.READ}
