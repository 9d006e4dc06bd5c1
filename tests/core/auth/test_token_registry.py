"""Access tokens at the HTTP port: which token identifies whom, and when a token stops counting."""

import gc
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from anyio.abc import TaskStatus

from tests.other_users import issue_token, store_token, write_identity
from trunkline.contracts.auth.identity import IdentityStatus, identity_path
from trunkline.contracts.auth.subjects import TOKEN_BUCKET, TOKENS_CHANGED
from trunkline.contracts.auth.tokens import AccessTokenRecord, TokensChanged
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.home.secret_file import replace_secret
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.testing.platform import Platform, platform

pytestmark = pytest.mark.anyio

LISTS = "/conversations"


@dataclass
class Gateway:
    """A running gateway, and the means to issue tokens behind its back."""

    running: Platform
    http: httpx.AsyncClient

    @property
    def cookie(self) -> str:
        """The name of the cookie with a session."""
        return TokenKey(self.running.home.token_key).session_cookie

    async def issue(self, identity: str = "owner", **fields: Any) -> tuple[str, AccessTokenRecord]:
        """Store a new token; return its text and its record."""
        return await issue_token(self.running, identity, **fields)

    async def store(self, record: AccessTokenRecord) -> None:
        await store_token(self.running.bus, record)

    async def write_identity(self, id: str, status: IdentityStatus = "active") -> None:
        await write_identity(self.running.bus, id, status)

    async def write_file(self, path: str, text: str) -> None:
        request = WriteManyMemory(files={path: text}, actor="owner", reason="test")
        await self.running.bus.call(MEMORY_WRITE_MANY, request, timeout=10)

    async def status(self, token: str, **headers: str) -> int:
        given = {"authorization": f"Bearer {token}"} if token else {}
        return (await self.http.get(LISTS, headers=given | headers)).status_code

    async def becomes(self, status: int, token: str, seconds: float = 1.0) -> None:
        """Wait until a token gets this status; fail when that takes longer than a second."""
        with anyio.fail_after(seconds):
            while await self.status(token) != status:  # noqa: ASYNC110  it is asked over HTTP
                await anyio.sleep(0.02)


@pytest.fixture(scope="module")
async def gateway(anyio_backend: str) -> AsyncIterator[Gateway]:
    async with (
        platform(workers=("gateway", "memory")) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60) as http,
    ):
        yield Gateway(running, http)


async def test_a_token_of_the_owner_is_accepted_in_both_headers(gateway: Gateway) -> None:
    """The headers of the home's token carry an access token, too; an address carries none."""
    token, _ = await gateway.issue()
    await gateway.becomes(200, token)
    assert await gateway.status("", **{"x-api-key": token}) == 200
    assert (await gateway.http.get(LISTS, params={"token": token, "access_token": token})).status_code == 401


async def test_forged_tokens_are_refused(gateway: Gateway) -> None:
    """CC-T5: a token that nobody issued is refused, and so are the id and the stored hash of a token."""
    token, record = await gateway.issue()
    await gateway.becomes(200, token)
    for forged in (
        f"{token}x",
        token[:-1],
        token.upper(),
        record.id,
        record.mac,
        f"tl_{record.mac}",
        "tl_",
        "tl_é",
    ):
        response = await gateway.http.get(LISTS, headers=[(b"authorization", f"Bearer {forged}".encode())])
        assert response.status_code == 401, forged


async def test_an_expired_token_is_refused(gateway: Gateway) -> None:
    """CC-T5: a token counts until its expiry and not a moment longer."""
    soon, _ = await gateway.issue(expires=datetime.now(UTC) + timedelta(seconds=1.5))
    past, _ = await gateway.issue(expires=datetime.now(UTC) - timedelta(seconds=1))
    await gateway.becomes(200, soon)
    await gateway.becomes(401, soon, seconds=3)
    assert await gateway.status(past) == 401


async def test_a_revoked_token_is_refused_within_a_second(gateway: Gateway) -> None:
    """Ending the record, or deleting it, ends the token."""
    bucket = gateway.running.bus.kv(TOKEN_BUCKET)
    for deleted in (False, True):
        token, record = await gateway.issue()
        await gateway.becomes(200, token)
        if deleted:
            await bucket.delete(record.id)
            await gateway.running.bus.publish(TOKENS_CHANGED, TokensChanged(ids=(record.id,)))
        else:
            await gateway.store(msgspec.structs.replace(record, ended="revoked"))
        await gateway.becomes(401, token)


class HeldBucket:
    """The bucket of tokens; ``entries`` returns what it read once the test permits it."""

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket
        self.hold = False
        self.read, self.permitted = anyio.Event(), anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)

    async def entries(self) -> Any:
        found = await self._bucket.entries()
        if self.hold:
            self.read.set()
            await self.permitted.wait()
        return found


class HeldBus:
    """The bus of the platform, with the bucket of tokens held."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus
        self.bucket = HeldBucket(bus.kv(TOKEN_BUCKET))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    def kv(self, spec: Any) -> Any:
        return self.bucket if spec is TOKEN_BUCKET else self._bus.kv(spec)


async def test_reading_all_tokens_restores_none_that_ended_meanwhile(gateway: Gateway) -> None:
    """The records are read again from time to time. What ends or is issued during that counts at once and for good."""
    bus, key = HeldBus(gateway.running.bus), TokenKey(gateway.running.home.token_key)
    registry = TokenRegistry(bus, key)  # type: ignore[arg-type]  # the bus, with one bucket that waits
    token, record = await gateway.issue()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(registry.run)
        assert await registry.identify(token) is not None
        soon, _ = await gateway.issue(expires=datetime.now(UTC) + timedelta(seconds=1))
        with anyio.fail_after(5):
            while await registry.identify(soon) is None:  # noqa: ASYNC110  the registry is told over the bus
                await anyio.sleep(0.01)
        bus.bucket.hold = True
        with anyio.fail_after(10):  # all are read when one expires
            await bus.bucket.read.wait()
        await gateway.store(msgspec.structs.replace(record, ended="revoked"))
        late, _ = await gateway.issue()

        async def is_known() -> bool:
            return await registry.identify(token) is None and await registry.identify(late) is not None

        with anyio.fail_after(5):
            while not await is_known():  # noqa: ASYNC110  the registry is told over the bus
                await anyio.sleep(0.01)
        bus.bucket.hold = False
        bus.bucket.permitted.set()
        for _ in range(50):
            await anyio.sleep(0.01)
            assert await is_known()
        tasks.cancel_scope.cancel()


async def test_two_credentials_are_refused(gateway: Gateway) -> None:
    """Two credentials in one request are refused, although each alone is valid."""
    token, _ = await gateway.issue()
    await gateway.becomes(200, token)
    cookie = {"cookie": f"{gateway.cookie}={token}"}
    assert await gateway.status(token, **cookie) == 401
    assert await gateway.status("", cookie=f"{gateway.cookie}={token}; {gateway.cookie}={token}") == 401
    assert await gateway.status("", cookie=f"other=1; {gateway.cookie}={token}") == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_session_counts_for_own_pages_only(gateway: Gateway, headers: dict[str, str]) -> None:
    """A browser sends the cookie to another port of this machine, too: there it identifies nobody."""
    token, _ = await gateway.issue(kind="session")
    await gateway.becomes(200, token)
    cookie = {"cookie": f"{gateway.cookie}={token}"}
    own = {"origin": gateway.running.url, "sec-fetch-site": "same-origin"}
    assert await gateway.status("", **cookie, **own) == 200
    assert await gateway.status("", **cookie, **headers) == 401


async def test_only_active_identities_may_enter(gateway: Gateway) -> None:
    """PA-F20: without its identity a token is refused, and at once after the identity is suspended."""
    token, _ = await gateway.issue("anna")
    assert await gateway.status(token) == 401
    await gateway.write_identity("anna")
    await gateway.becomes(200, token)
    for status in ("suspended", "active", "revoked"):
        await gateway.write_identity("anna", status)  # type: ignore[arg-type]
        await gateway.becomes(200 if status == "active" else 401, token)


async def test_an_identity_returns_after_its_requests_ended(gateway: Gateway) -> None:
    """What is left of a request that ended with a suspension shuts out no later one, however rarely the garbage
    collector runs.
    """
    await gateway.write_identity("dana")
    token, _ = await gateway.issue("dana")
    gc.disable()
    try:
        for status in ("active", "suspended", "active"):
            await gateway.write_identity("dana", status)  # type: ignore[arg-type]
            await gateway.becomes(401 if status == "suspended" else 200, token)
    finally:
        gc.enable()


async def test_a_file_that_is_no_identity_admits_nobody(gateway: Gateway) -> None:
    """A broken file, a file of another name, and a file that claims to be the owner admit nobody."""
    whole = {
        "type": "collaborator",
        "display_name": "B",
        "status": "active",
        "created": "2026-01-01T00:00:00Z",
    }
    for text in (
        "not json",
        msgspec.json.encode({**whole, "id": "bob", "status": "trusted"}).decode(),
        msgspec.json.encode({**whole, "id": "carla"}).decode(),
        msgspec.json.encode({**whole, "id": "bob", "type": "owner"}).decode(),
    ):
        await gateway.write_identity("bob")
        token, _ = await gateway.issue("bob")
        await gateway.becomes(200, token)
        await gateway.write_file(identity_path("bob"), text)
        await gateway.becomes(401, token)


async def test_an_ended_token_ends_its_streams(gateway: Gateway) -> None:
    """A stream that is open with the token ends within a second after the token, also by its expiry; others go on."""
    (token, record), (other, _) = await gateway.issue(), await gateway.issue()
    await gateway.becomes(200, token)
    ended = [anyio.Event(), anyio.Event()]

    async def watch(with_token: str, end: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        headers = {"authorization": f"Bearer {with_token}"}
        body = {"content": "nobody answers this"}
        async with gateway.http.stream(
            "POST", "/conversations/messages", json=body, headers=headers
        ) as response:
            assert response.status_code == 200
            task_status.started()
            async for _ in response.aiter_bytes():
                pass
        end.set()

    async with anyio.create_task_group() as tasks:
        await tasks.start(watch, token, ended[0])
        await tasks.start(watch, other, ended[1])
        await gateway.store(msgspec.structs.replace(record, ended="revoked"))
        with anyio.fail_after(1):
            await ended[0].wait()
        expiring, _ = await gateway.issue(expires=datetime.now(UTC) + timedelta(seconds=2))
        await gateway.becomes(200, expiring)
        expired = anyio.Event()
        await tasks.start(watch, expiring, expired)
        with anyio.fail_after(5):
            await expired.wait()
        assert not ended[1].is_set()
        tasks.cancel_scope.cancel()


async def test_a_client_that_leaves_within_its_request_is_no_error(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever its credential: the log has one line about it."""
    token, _ = await gateway.issue()
    await gateway.becomes(200, token)
    caplog.set_level(logging.INFO)
    place = httpx.URL(gateway.running.url)
    for credential in (token, gateway.running.token):
        caplog.clear()
        head = (
            f"POST /conversations/messages HTTP/1.1\r\nHost: {place.netloc.decode()}\r\n"
            f"Authorization: Bearer {credential}\r\nContent-Length: 1000\r\n\r\n{{"
        )
        async with await anyio.connect_tcp(place.host, place.port or 80) as stream:
            await stream.send(head.encode())
            await anyio.sleep(0.1)  # the handler waits for the rest then
        with anyio.fail_after(10):
            while "/conversations/messages" not in caplog.text:  # noqa: ASYNC110  a log has no event
                await anyio.sleep(0.01)
        assert [one.levelname for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_without_the_key_access_tokens_are_refused(gateway: Gateway) -> None:
    """A missing or another key ends all access tokens; the token of the home still works."""
    file = gateway.running.home.token_key
    assert file.stat().st_mode & 0o777 == 0o600
    token, _ = await gateway.issue()
    await gateway.becomes(200, token)
    kept = file.read_text()
    file.unlink()
    assert await gateway.status(token) == 401
    assert await gateway.status(gateway.running.token) == 200
    file.write_text(kept)
    assert await gateway.status(token) == 200
    replace_secret(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert await gateway.status(token) == 401
