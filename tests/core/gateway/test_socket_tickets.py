"""Who may open a socket at ``/ws``: tickets for browsers, origins, and the end of a credential (CC-T5, T6, C15)."""

from collections.abc import Sequence
from typing import Any

import anyio
import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.support.socket_client import SocketClient, open_socket
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import OWNER
from trunkline.contracts.gateway.ticket import TICKET_BUCKET
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.testing.platform import platform
from trunkline.workers.gateway.http.routes.socket import PROTOCOL
from trunkline.workers.gateway.socket.server_envelopes import PongEnvelope
from trunkline.workers.gateway.socket.tickets import TicketStore

from .conftest import Environment

pytestmark = pytest.mark.anyio

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"


def by_ticket(env: Environment, protocols: Sequence[str], **headers: str) -> connect:
    """A handshake as a browser makes it: no header of its own but the sub-protocols."""
    given = {"Origin": env.url, "Sec-Fetch-Site": "same-origin", **headers}
    return connect(
        env.url.replace("http", "ws", 1) + "/ws",
        subprotocols=[Subprotocol(one) for one in protocols],
        additional_headers={name: value for name, value in given.items() if value},
        user_agent_header=BROWSER,
        open_timeout=30,
    )


async def issued(env: Environment) -> dict[str, Any]:
    response = await env.http.post("/api/ws-ticket")
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    return dict(response.json())


async def status_of(handshake: connect) -> int:
    with pytest.raises(InvalidStatus) as refused:
        async with handshake:
            pass
    return refused.value.response.status_code


async def test_a_browser_opens_a_socket_with_a_ticket_once(env: Environment) -> None:
    """CC-T6: a ticket in the sub-protocol opens one socket; used again, guessed or changed it is 401."""
    ticket = await issued(env)
    assert ticket["seconds"] == 30
    async with by_ticket(env, ticket["protocols"]) as connection:
        assert connection.subprotocol == PROTOCOL
        await SocketClient(connection).done("chat", content="hi")
    assert await status_of(by_ticket(env, ticket["protocols"])) == 401
    assert await status_of(by_ticket(env, [PROTOCOL])) == 401
    for wrong in ("ticket.", "ticket.x", f"ticket.{'x' * 43}", f"ticket.{'x' * 5000}"):
        assert await status_of(by_ticket(env, [PROTOCOL, wrong])) == 401


async def test_a_ticket_races_with_itself_and_wins_once(env: Environment) -> None:
    """Ten handshakes with one ticket at the same time are one socket, also across gateways."""
    stores = [TicketStore(env.bus) for _ in range(10)]
    ticket = await stores[0].issue(OWNER)
    won = []

    async def redeem(store: TicketStore) -> None:
        won.append(await store.redeem(ticket))

    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(redeem, store)
    assert [identity for identity in won if identity is not None] == [OWNER]


async def test_a_ticket_is_kept_as_a_hash_and_expires(env: Environment) -> None:
    """The bus does not have the ticket, and drops its record after 30 seconds."""
    ticket = (await issued(env))["ticket"]
    keys = await env.bus.kv(TICKET_BUCKET).keys()
    assert keys and ticket not in "".join(keys)
    assert TICKET_BUCKET.ttl == 30


async def test_two_credentials_are_none(env: Environment) -> None:
    """A ticket beside a token, a key, a cookie or another ticket is refused, and is not used up by a foreign page."""
    ticket = await issued(env)
    bearer = {"Authorization": f"Bearer {env.token}"}
    assert await status_of(by_ticket(env, ticket["protocols"], **bearer)) == 401
    assert await status_of(by_ticket(env, ticket["protocols"], **{"X-API-Key": env.token})) == 401
    cookie = f"{TokenKey(env.platform.home.token_key).session_cookie}=tl_x"
    assert await status_of(by_ticket(env, ticket["protocols"], Cookie=cookie)) == 401
    assert await status_of(by_ticket(env, [*ticket["protocols"], "ticket.x"])) == 401
    assert await status_of(by_ticket(env, ticket["protocols"], Origin="http://evil.com")) == 403
    async with by_ticket(env, ticket["protocols"]):
        pass


async def test_a_ticket_opens_nothing_but_the_socket(env: Environment) -> None:
    """Neither another socket nor a request takes it; and without a credential nobody gets one."""
    ticket = await issued(env)
    url = env.url.replace("http", "ws", 1) + "/v1/responses"
    protocols = [Subprotocol(one) for one in ticket["protocols"]]
    assert await status_of(connect(url, subprotocols=protocols, open_timeout=30)) == 401
    async with httpx.AsyncClient(base_url=env.url, timeout=60) as nobody:
        header = {"sec-websocket-protocol": ", ".join(ticket["protocols"])}
        assert (await nobody.get("/conversations", headers=header)).status_code == 401
        assert (await nobody.post("/api/ws-ticket")).status_code == 401


async def test_a_browser_without_an_origin_is_refused(env: Environment) -> None:
    """CC-T5: every browser names the origin of a WebSocket, so one that does not is something else."""
    ticket = await issued(env)
    assert await status_of(by_ticket(env, ticket["protocols"], Origin="")) == 403
    headers = {"Authorization": f"Bearer {env.token}", "User-Agent": BROWSER}
    url = env.url.replace("http", "ws", 1) + "/ws"
    handshake = connect(url, additional_headers=headers, user_agent_header=None, open_timeout=30)
    assert await status_of(handshake) == 403


async def test_a_further_host_is_an_origin_of_the_server() -> None:
    """A proxy's name in ``gateway.allowed_hosts`` is the host and the origin; the page of no other name connects."""
    config = {"gateway.allowed_hosts": ["chat.example"]}
    async with platform(workers=("gateway", "memory"), config=config) as running:
        bearer = {"Authorization": f"Bearer {running.token}"}
        address = running.url.removeprefix("http://")
        host, port = address.split(":")
        for origin, status in (("https://chat.example", 101), ("https://evil.example", 403)):
            handshake = connect(
                "ws://chat.example/ws", host=host, port=int(port), origin=origin,  # type: ignore[arg-type]
                additional_headers=bearer, open_timeout=30,
            )  # fmt: skip
            if status == 101:
                async with handshake:
                    pass
            else:
                assert await status_of(handshake) == status


async def test_a_proxy_that_rewrites_the_host_is_refused() -> None:
    """A page's origin is not the host that the gateway sees, and a forwarded name does not count: any client could send
    one. The how-to says what the proxy is to pass."""
    config = {"gateway.allowed_hosts": ["chat.example"]}
    async with platform(workers=("gateway", "memory"), config=config) as running:
        headers = {"Authorization": f"Bearer {running.token}", "Origin": "https://chat.example"}
        forwarded = {"X-Forwarded-Host": "chat.example", "Forwarded": "host=chat.example"}
        for more in ({}, forwarded):
            url = running.url.replace("http", "ws", 1) + "/ws"
            assert (
                await status_of(connect(url, additional_headers={**headers, **more}, open_timeout=30)) == 403
            )
            async with httpx.AsyncClient(base_url=running.url, headers={**headers, **more}) as http:
                assert (await http.get("/conversations")).status_code == 200
                assert (await http.post("/api/ws-ticket")).status_code == 403
                http.headers["host"] = "chat.example"
                assert (await http.post("/api/ws-ticket")).status_code == 201


async def test_one_identity_has_a_number_of_sockets() -> None:
    """A socket above ``gateway.max_sockets`` is refused with 429 until another one is closed."""
    async with platform(workers=("gateway", "memory"), config={"gateway.max_sockets": 2}) as running:
        async with open_socket(running.url, running.token), open_socket(running.url, running.token):
            with pytest.raises(InvalidStatus) as refused:
                async with open_socket(running.url, running.token):
                    pass
            assert refused.value.response.status_code == 429
        with anyio.fail_after(30):
            while True:
                try:
                    async with open_socket(running.url, running.token) as client:
                        await client.done("chat", content="hi")
                        break
                except InvalidStatus:
                    await anyio.sleep(0.05)


async def test_a_socket_outlives_the_time_limits_of_a_request() -> None:
    """The limits for the header and the body of a request are not those of a socket that it became."""
    config = {"gateway.header_timeout": 0.5, "gateway.body_timeout": 0.5}
    async with (
        platform(workers=("gateway", "memory"), config=config) as running,
        open_socket(running.url, running.token) as client,
    ):
        begin = anyio.current_time()
        while anyio.current_time() - begin < 1.5:
            ping = await client.send("ping", {})
            pong = await client.receive()
            assert isinstance(pong, PongEnvelope) and pong.payload.reply_to == ping


async def test_a_gateway_that_stops_closes_its_sockets_with_1001() -> None:
    """CC-T5: the client learns that it is to connect again."""
    async with platform(workers=("gateway", "memory")) as running:
        async with open_socket(running.url, running.token) as client:
            await client.done("chat", content="hi")
            gateway = running.instance.workers["gateway"]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gateway.drain)
                with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(30):
                    while True:
                        await client.connection.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001


@pytest.mark.parametrize("by", ["token", "ticket"])
async def test_a_revoked_token_ends_its_sockets(env: Environment, by: str) -> None:
    """CC-T5: the socket closes with 4401 within a second, also one that a ticket of the token opened."""
    auth = AuthClient(env.bus)
    token = await auth.issue_token("owner", scope=TokenScope.OWNER)
    bearer = {"Authorization": f"Bearer {token.text}"}
    response = await env.http.post("/api/ws-ticket", headers=bearer)
    handshake = (
        by_ticket(env, response.json()["protocols"])
        if by == "ticket"
        else connect(env.url.replace("http", "ws", 1) + "/ws", additional_headers=bearer, open_timeout=30)
    )
    unused = (await env.http.post("/api/ws-ticket", headers=bearer)).json()["protocols"]
    async with handshake as connection:
        await SocketClient(connection).done("subscribe")
        await auth.revoke_token(token.token.id)
        begin = anyio.current_time()
        with pytest.raises(ConnectionClosed) as closed, anyio.fail_after(30):
            while True:
                await connection.recv()
        assert anyio.current_time() - begin < 5  # a second, and a busy machine
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        async with by_ticket(env, unused) as connection:
            await connection.recv()
