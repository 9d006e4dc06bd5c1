"""Passkeys (issue 14): one signs its identity in again; nothing else that a browser, a page or a thief sends does."""

import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from tests.software_authenticator import FLAGS, Passkey
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.passkeys import CHALLENGE_SECONDS, MOST_PASSKEYS
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.subjects import (
    PASSKEY_BUCKET,
    PASSKEY_CHALLENGE_BUCKET,
    TOKEN_BUCKET,
    TOKENS_CHANGED,
)
from trunkline.contracts.auth.tokens import TokensChanged
from trunkline.testing.platform import Platform, platform
from trunkline.workers.gateway.auth.attempt_limiter import AttemptLimiter
from trunkline.workers.gateway.auth.passkeys import PasskeyService
from trunkline.workers.gateway.auth.token_service import TokenService

pytestmark = pytest.mark.anyio

KEYS, SIGN_IN, ME = "/api/passkeys", "/api/passkeys/sign-in", "/api/me"


@dataclass
class Door:
    """A running gateway, as pages at localhost reach it."""

    running: Platform
    auth: AuthClient

    @property
    def url(self) -> str:
        return self.running.url.replace("127.0.0.1", "localhost")

    def page(self, **headers: str) -> httpx.AsyncClient:
        """A page of the gateway, with cookies of its own."""
        return httpx.AsyncClient(base_url=self.url, timeout=60, headers={"origin": self.url, **headers})

    async def pair(self, page: httpx.AsyncClient, identity: str = "owner", scope: str = "owner") -> None:
        started = await self.auth.start_pairing(identity, TokenScope(scope))
        paired = await page.post("/api/pair", json={"code": started.code, "as": "cookie"})
        assert paired.status_code == 200, paired.text

    async def options(self, page: httpx.AsyncClient, path: str = KEYS) -> dict[str, Any]:
        return dict((await ok(await page.post(f"{path}/options")))["public_key"])

    async def try_to_register(
        self, page: httpx.AsyncClient, passkey: Passkey, **fields: Any
    ) -> httpx.Response:
        return await page.post(KEYS, json={**passkey.register(await self.options(page)), **fields})

    async def registered(self, identity: str = "owner", scope: str = "owner") -> tuple[Passkey, str]:
        """A passkey of an identity, and its id. The page that registered it is gone."""
        passkey = Passkey(self.url)
        async with self.page() as page:
            await self.pair(page, identity, scope)
            made = await ok(await self.try_to_register(page, passkey, label="laptop"), 201)
        return passkey, str(made["id"])

    async def try_to_sign_in(self, page: httpx.AsyncClient, passkey: Passkey) -> httpx.Response:
        return await page.post(SIGN_IN, json=passkey.sign_in(await self.options(page, SIGN_IN)))

    async def is_noted(self, event: str, words: str) -> None:
        """Wait until the audit log has an entry of this kind with these words."""
        with anyio.fail_after(10):
            while True:
                found = [stored.data async for stored in self.running.bus.history(AUDIT, after=0)]
                if any(one.status == event and words in one.why for one in found):
                    return
                await anyio.sleep(0.02)

    async def change_record(self, id: str, **fields: Any) -> None:
        """Change the record of a passkey behind the gateway's back."""
        bucket = self.running.bus.kv(PASSKEY_BUCKET)
        entry = await bucket.get(id)
        assert entry is not None and entry.value is not None
        await bucket.put(id, msgspec.structs.replace(entry.value, **fields))


async def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@pytest.fixture(scope="module")
async def door(anyio_backend: str) -> AsyncIterator[Door]:
    async with platform(workers=("gateway", "memory")) as running:
        yield Door(running, AuthClient(running.bus))


@pytest.fixture
async def page(door: Door) -> AsyncIterator[httpx.AsyncClient]:
    """A page that is not signed in."""
    async with door.page() as page:
        yield page
    bucket = door.running.bus.kv(PASSKEY_BUCKET)
    for id in await bucket.keys():
        await bucket.delete(id)


@pytest.fixture
async def guest(door: Door, people: "count[int]") -> str:
    """A collaborator of this test alone."""
    return (await door.auth.create_identity(f"guest{next(people)}")).id


@pytest.fixture(scope="module")
def people() -> "count[int]":
    return count()


async def test_a_passkey_signs_its_identity_in_again(door: Door, page: httpx.AsyncClient) -> None:
    """The session is like that of pairing: the cookie, the identity and the scope; it and the passkey are listed."""
    passkey, id = await door.registered(scope="operate")
    assert (await page.get(ME)).status_code == 401
    response = await door.try_to_sign_in(page, passkey)
    assert (await ok(response))["identity"] == "owner"
    assert (
        "HttpOnly" in response.headers["set-cookie"] and "SameSite=strict" in response.headers["set-cookie"]
    )
    me = await ok(await page.get(ME))
    assert (me["id"], me["scope"], me["kind"]) == ("owner", "operate", "session")
    listed = await ok(await page.get(KEYS))
    assert listed["current"] == listed["passkeys"][0]["id"] == id
    assert listed["passkeys"][0]["label"] == "laptop" and listed["passkeys"][0]["used"]
    assert not {"public_key", "credential", "mac"} & set(listed["passkeys"][0])
    assert [one.label for one in await door.auth.tokens() if one.passkey == id] == ["laptop"]
    await door.is_noted("passkey_added", id)
    await door.is_noted("signed_in", id)


async def test_an_answer_counts_once(door: Door, page: httpx.AsyncClient) -> None:
    """A replayed sign-in and a replayed registration are refused, and nothing is stored by asking for a challenge."""
    passkey, _ = await door.registered()
    body = passkey.sign_in(await door.options(page, SIGN_IN))
    async with door.page() as other:
        await ok(await page.post(SIGN_IN, json=body))
        replayed = await other.post(SIGN_IN, json=body)
        assert (replayed.status_code, replayed.json()["code"]) == (401, "unauthorized")
        assert "set-cookie" not in replayed.headers
    again = Passkey(door.url).register(await door.options(page))
    await ok(await page.post(KEYS, json=again), 201)
    assert (await page.post(KEYS, json=again)).status_code == 400
    assert len(await door.auth.passkeys()) == 2
    await door.is_noted("passkey_refused", "A challenge was wrong, used or expired.")


async def test_a_wrong_answer_takes_the_challenge(door: Door, page: httpx.AsyncClient) -> None:
    """Nobody tries twice with one challenge."""
    passkey, _ = await door.registered()
    options = await door.options(page, SIGN_IN)
    passkey.flags = FLAGS.UP
    assert (await page.post(SIGN_IN, json=passkey.sign_in(options))).status_code == 401
    passkey.flags |= FLAGS.UV
    assert (await page.post(SIGN_IN, json=passkey.sign_in(options))).status_code == 401
    await ok(await door.try_to_sign_in(page, passkey))


def forged(challenge: str, change: str) -> str:
    """A challenge with another proof, or with a later expiry."""
    nonce, expiry, proof = challenge.split(".")
    return {
        "proof": f"{nonce}.{expiry}.{proof[::-1]}",
        "expiry": f"{nonce}.{int(expiry) + 60}.{proof}",
        "empty": "",
        "words": "..",
        "long": challenge + "0" * 90,
    }[change]


@pytest.mark.parametrize("change", ["proof", "expiry", "empty", "words", "long"])
async def test_a_challenge_is_that_of_the_gateway(door: Door, page: httpx.AsyncClient, change: str) -> None:
    """One that it did not make, or whose end was moved, is refused, though the passkey signed it."""
    passkey, _ = await door.registered()
    options = await door.options(page, SIGN_IN)
    challenge = forged(urlsafe_b64decode(options["challenge"] + "==").decode(), change)
    options["challenge"] = urlsafe_b64encode(challenge.encode()).decode().rstrip("=")
    assert (await page.post(SIGN_IN, json=passkey.sign_in(options))).status_code == 401


async def test_an_expired_challenge_is_refused(
    door: Door, page: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five minutes the gateway has to be asked for another one."""
    passkey, _ = await door.registered()
    options = await door.options(page, SIGN_IN)
    late = time.time() + CHALLENGE_SECONDS + 1
    monkeypatch.setattr("trunkline.workers.gateway.auth.passkey_challenges.time.time", lambda: late)
    assert (await page.post(SIGN_IN, json=passkey.sign_in(options))).status_code == 401


async def test_a_challenge_is_for_one_ceremony_and_session(door: Door, page: httpx.AsyncClient) -> None:
    """A challenge for signing in registers nothing, that of a session is nothing in another session, and neither is a
    challenge for registering for signing in."""
    passkey, _ = await door.registered()
    async with door.page() as other:
        await door.pair(page)
        await door.pair(other)
        options = await door.options(page)
        assert (await other.post(KEYS, json=Passkey(door.url).register(options))).status_code == 400
        mixed = {**options, "challenge": (await door.options(page, SIGN_IN))["challenge"]}
        assert (await page.post(KEYS, json=Passkey(door.url).register(mixed))).status_code == 400
        assert (await other.post(SIGN_IN, json=passkey.sign_in(await door.options(page)))).status_code == 401
    assert len(await door.auth.passkeys()) == 1


STATED: dict[str, dict[str, Any]] = {
    "origin": {"origin": "http://localhost:1"},
    "scheme": {"origin": "https://localhost"},
    "host": {"host": "example.com"},
    "unverified": {"flags": FLAGS.UP},
    "absent": {"flags": FLAGS.UV},
    "embedded": {"is_embedded": True},
}
"""What a browser states that the gateway must not accept: the page of another port, for instance."""


@pytest.mark.parametrize("stated", STATED)
async def test_what_the_browser_states_is_checked(door: Door, page: httpx.AsyncClient, stated: str) -> None:
    """Another origin or host, an absent or unverified person, and a page within another page: refused at both
    ceremonies."""
    passkey, _ = await door.registered()
    await door.pair(page)
    wrong = Passkey(door.url)
    for name, value in STATED[stated].items():
        setattr(wrong, name, value)
        setattr(passkey, name, value)
    assert (await door.try_to_register(page, wrong)).status_code == 400
    assert len(await door.auth.passkeys()) == 1
    async with door.page() as other:
        response = await door.try_to_sign_in(other, passkey)
        assert response.status_code == 401 and "set-cookie" not in response.headers


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "http://evil.test", "null", ""])
async def test_a_page_of_another_site_begins_nothing(door: Door, origin: str) -> None:
    """Cross-site requests are refused before any handler, and passkeys need a host name that browsers accept."""
    headers = {"origin": origin.format(port=door.running.url.rsplit(":", 1)[1])} if origin else {}
    async with httpx.AsyncClient(base_url=door.running.url, timeout=60, headers=headers) as http:
        for path, body in ((f"{SIGN_IN}/options", None), (SIGN_IN, {"challenge": "x", "credential": {}})):
            assert (await http.post(path, json=body)).status_code in (400, 403)
    async with door.page(**{"sec-fetch-site": "cross-site"}) as http:
        assert (await http.post(f"{SIGN_IN}/options")).status_code == 403


async def test_a_passkey_speaks_for_its_identity_only(
    door: Door, page: httpx.AsyncClient, guest: str
) -> None:
    """The signature of one passkey under the name of another, and the handle of another identity, are refused."""
    owners, _ = await door.registered()
    guests, _ = await door.registered(guest, "chat")
    own = guests.credential, guests.user
    guests.credential = owners.credential
    assert (await door.try_to_sign_in(page, guests)).status_code == 401
    guests.credential, guests.user = own[0], owners.user
    assert (await door.try_to_sign_in(page, guests)).status_code == 401
    guests.user = own[1]
    assert (await ok(await door.try_to_sign_in(page, guests)))["identity"] == guest
    assert (await ok(await page.get(ME)))["scope"] == "chat"


async def test_a_counter_that_does_not_grow_is_refused(door: Door, page: httpx.AsyncClient) -> None:
    """A copy of an authenticator is noticed when both were used, and the audit log says so."""
    passkey, id = await door.registered()
    passkey.counter = 5
    await ok(await door.try_to_sign_in(page, passkey))
    for counter in (5, 4, 0):
        passkey.counter = counter
        assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    await door.is_noted("passkey_refused", f"{id} of owner: its counter went from 5 to 4")
    passkey.counter = 6
    await ok(await door.try_to_sign_in(page, passkey))


async def test_an_authenticator_need_not_count(door: Door, page: httpx.AsyncClient) -> None:
    """Passkeys that a person has on several devices always state 0."""
    passkey = Passkey(door.url, counter=0)
    await door.pair(page)
    await ok(await door.try_to_register(page, passkey), 201)
    for _ in range(2):
        passkey.counter = 0
        await ok(await door.try_to_sign_in(page, passkey))


async def test_a_flood_of_challenges_keeps_nobody_out(door: Door, page: httpx.AsyncClient) -> None:
    """Nothing is kept of a challenge that was not answered, nor of an answer by an unknown passkey."""
    passkey, _ = await door.registered()
    used = door.running.bus.kv(PASSKEY_CHALLENGE_BUCKET)
    before = len(await used.keys())
    early = await door.options(page, SIGN_IN)
    for _ in range(50):
        stranger = Passkey(door.url)
        assert (await door.try_to_sign_in(page, stranger)).status_code == 401
    assert len(await used.keys()) == before
    await ok(await page.post(SIGN_IN, json=passkey.sign_in(early)))


async def test_attempts_with_one_passkey_are_limited(door: Door, page: httpx.AsyncClient) -> None:
    """After ten within a minute none is looked at, not even a right one; another passkey is not affected."""
    passkey, _ = await door.registered()
    other, _ = await door.registered()
    passkey.flags = FLAGS.UP
    statuses = [(await door.try_to_sign_in(page, passkey)).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    passkey.flags |= FLAGS.UV
    assert (await door.try_to_sign_in(page, passkey)).status_code == 429
    await ok(await door.try_to_sign_in(page, other))


def test_attempts_are_permitted_again_after_a_while() -> None:
    """Each attempt counts for a time, and those that were refused do not prolong it."""
    clock = [0.0]
    limiter = AttemptLimiter(2, 60, now=lambda: clock[0])
    assert [limiter.permits("one") for _ in range(3)] == [True, True, False]
    assert limiter.permits("other")
    clock[0] = 61
    assert [limiter.permits("one") for _ in range(3)] == [True, True, False]


async def test_a_smaller_scope_gets_no_larger_passkey(door: Door, page: httpx.AsyncClient) -> None:
    """A session registers a passkey with its own scope or a smaller one, and sees no larger one."""
    await door.pair(page, scope="chat")
    for scope in ("owner", "operate", "approve"):
        assert (await door.try_to_register(page, Passkey(door.url), scope=scope)).status_code == 403
    assert await door.auth.passkeys() == ()
    smaller = await ok(await door.try_to_register(page, Passkey(door.url), scope="read"), 201)
    same = await ok(await door.try_to_register(page, Passkey(door.url)), 201)
    assert (smaller["scope"], same["scope"]) == ("read", "chat")
    async with door.page() as reader:
        await door.pair(reader, scope="read")
        assert [one["id"] for one in (await ok(await reader.get(KEYS)))["passkeys"]] == [smaller["id"]]


async def test_only_a_session_registers_a_passkey(door: Door, page: httpx.AsyncClient) -> None:
    """Neither the token of the home nor one that a program keeps becomes a way in that stays."""
    issued = await door.auth.issue_token("owner", TokenScope.OWNER)
    for token in (door.running.token, issued.text):
        bearer = {"authorization": f"Bearer {token}"}
        assert (await page.post(f"{KEYS}/options", headers=bearer)).status_code == 400
    assert (await page.post(f"{KEYS}/options")).status_code == 401


async def test_a_session_for_some_blocks_gives_passkeys_for_them(door: Door, page: httpx.AsyncClient) -> None:
    """What a passkey opens reaches the same blocks as the session that registered it."""
    await door.pair(page)
    (session,) = [one for one in await door.auth.tokens("owner") if one.kind == "session" and not one.ended][
        -1:
    ]
    bucket = door.running.bus.kv(TOKEN_BUCKET)
    entry = await bucket.get(session.id)
    assert entry is not None and entry.value is not None
    await bucket.put(session.id, msgspec.structs.replace(entry.value, blocks=("main",)))
    await door.running.bus.publish(TOKENS_CHANGED, TokensChanged(ids=(session.id,)))
    passkey = Passkey(door.url)
    with anyio.fail_after(10):
        while (await ok(await page.get(ME))).get("blocks") != ["main"]:  # noqa: ASYNC110  it is asked over HTTP
            await anyio.sleep(0.02)
    await ok(await door.try_to_register(page, passkey), 201)
    async with door.page() as other:
        await ok(await door.try_to_sign_in(other, passkey))
        assert (await ok(await other.get(ME)))["blocks"] == ["main"]


async def test_removing_a_passkey_ends_what_it_opened(door: Door, page: httpx.AsyncClient) -> None:
    """Its sessions, and the passkeys that were registered in them, with their sessions; others stay."""
    first, id = await door.registered()
    async with door.page() as opened, door.page() as further:
        await ok(await door.try_to_sign_in(opened, first))
        second = Passkey(door.url)
        await ok(await door.try_to_register(opened, second), 201)
        await ok(await door.try_to_sign_in(further, second))
        await door.pair(page)
        removed = await ok(await page.delete(f"{KEYS}/{id}"))
        assert removed == {"passkeys": 2, "tokens": 2}
        assert [(await one.get(ME)).status_code for one in (opened, further, page)] == [401, 401, 200]
        for passkey in (first, second):
            assert (await door.try_to_sign_in(opened, passkey)).status_code == 401
    assert (await page.delete(f"{KEYS}/{id}")).status_code == 404
    await door.is_noted("passkey_removed", id)


async def test_a_session_removes_the_passkey_that_opened_it(door: Door, page: httpx.AsyncClient) -> None:
    """The request is answered, though it ends its own session."""
    passkey, id = await door.registered()
    await ok(await door.try_to_sign_in(page, passkey))
    assert (await ok(await page.delete(f"{KEYS}/{id}")))["tokens"] == 1
    assert (await page.get(ME)).status_code == 401


async def test_nobody_removes_more_than_their_own(door: Door, page: httpx.AsyncClient, guest: str) -> None:
    """Another identity's passkey does not exist, and that of a larger scope stays."""
    _, id = await door.registered()
    await door.pair(page, guest, "approve")
    assert (await ok(await page.get(KEYS)))["passkeys"] == []
    assert (await page.delete(f"{KEYS}/{id}")).status_code == 404
    async with door.page() as smaller:
        await door.pair(smaller, scope="operate")
        assert (await smaller.delete(f"{KEYS}/{id}")).status_code == 403
    assert [one.id for one in await door.auth.passkeys()] == [id]


async def test_who_may_not_enter_does_not_enter_by_a_passkey(
    door: Door, page: httpx.AsyncClient, guest: str
) -> None:
    """A suspended identity is refused until it is active again; the passkeys of a revoked one are gone."""
    passkey, id = await door.registered(guest, "chat")
    await door.auth.change_identity(guest, "suspended")
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    await door.is_noted("passkey_refused", f"{id}: {guest} may not enter")
    await door.auth.change_identity(guest, "active")
    await ok(await door.try_to_sign_in(page, passkey))
    await door.auth.change_identity(guest, "revoked")
    assert (await page.get(ME)).status_code == 401
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    assert await door.auth.passkeys(guest) == ()


async def test_a_revoked_session_leaves_no_passkey(door: Door, page: httpx.AsyncClient) -> None:
    """Otherwise a thief who is shut out would return by one."""
    await door.pair(page)
    session = (await door.auth.tokens("owner"))[-1]
    passkey = Passkey(door.url)
    await ok(await door.try_to_register(page, passkey), 201)
    await door.auth.revoke_token(session.id)
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    assert await door.auth.passkeys() == ()


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Do something once, in the middle of a request: right before the gateway calls a method."""

    def interrupt(kind: type, name: str, act: Callable[[], Awaitable[object]]) -> None:
        original = getattr(kind, name)

        async def interrupted(*args: Any, **options: Any) -> Any:
            monkeypatch.setattr(kind, name, original)
            await act()
            return await original(*args, **options)

        monkeypatch.setattr(kind, name, interrupted)

    return interrupt


async def test_no_session_is_opened_by_a_passkey_that_is_just_removed(
    door: Door, page: httpx.AsyncClient, before: Callable[..., None]
) -> None:
    """The passkey is removed after its signature was checked and before the session exists."""
    passkey, id = await door.registered()
    before(TokenService, "issue", lambda: door.auth.remove_passkey(id))
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    assert (await page.get(ME)).status_code == 401
    assert not [one for one in await door.auth.tokens() if one.passkey == id and not one.ended]


async def test_a_session_that_is_just_opened_ends_with_its_passkey(
    door: Door, page: httpx.AsyncClient, before: Callable[..., None]
) -> None:
    """The session is opened after the removal looked for sessions and before the passkey is gone."""
    passkey, id = await door.registered()
    opened: list[int] = []

    async def sign_in() -> None:
        opened.append((await door.try_to_sign_in(page, passkey)).status_code)

    before(PasskeyService, "remove", sign_in)
    assert (await door.auth.remove_passkey(id)).tokens == 1
    assert opened == [200]
    assert (await page.get(ME)).status_code == 401


async def test_a_session_that_is_just_revoked_leaves_no_passkey(
    door: Door, page: httpx.AsyncClient, before: Callable[..., None]
) -> None:
    """The session is revoked after its challenge was taken and before the passkey is stored."""
    await door.pair(page)
    session = (await door.auth.tokens("owner"))[-1]
    before(PasskeyService, "register", lambda: door.auth.revoke_token(session.id))
    assert (await door.try_to_register(page, Passkey(door.url))).status_code == 401
    assert await door.auth.passkeys() == ()


async def test_another_key_ends_every_passkey(door: Door, page: httpx.AsyncClient) -> None:
    """As it ends every token."""
    passkey, _ = await door.registered()
    await door.auth.rotate_key()
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    assert await door.running.bus.kv(PASSKEY_BUCKET).keys() == []


@pytest.mark.parametrize("fields", [{"identity": "owner"}, {"scope": TokenScope.OWNER}, {"counter": 0}])
async def test_a_record_that_the_gateway_did_not_write_does_not_count(
    door: Door, page: httpx.AsyncClient, guest: str, fields: dict[str, Any]
) -> None:
    """Whoever can write to the bucket, without the key in the home, gives a passkey no other identity or scope."""
    passkey, id = await door.registered(guest, "chat")
    await door.change_record(id, **fields)
    assert (await door.try_to_sign_in(page, passkey)).status_code == 401
    assert await door.auth.passkeys() == ()


async def test_a_passkey_is_registered_once_and_not_without_end(door: Door, page: httpx.AsyncClient) -> None:
    """The same one again is a conflict, and so is one too many; the browser is told which are there."""
    await door.pair(page)
    passkey = Passkey(door.url)
    await ok(await door.try_to_register(page, passkey), 201)
    assert (await door.try_to_register(page, passkey)).status_code == 409
    assert len((await door.options(page))["excludeCredentials"]) == 1
    for _ in range(MOST_PASSKEYS - 1):
        await ok(await door.try_to_register(page, Passkey(door.url)), 201)
    assert (await door.try_to_register(page, Passkey(door.url))).status_code == 409


@pytest.mark.parametrize(
    "credential",
    [{}, {"id": 7}, {"id": "!"}, {"id": "AAAA"}, {"id": "AAAA", "rawId": "BBBB", "response": []}],
)
async def test_nonsense_is_refused(door: Door, page: httpx.AsyncClient, credential: dict[str, Any]) -> None:
    """What is no response at all is refused like a wrong one."""
    await door.pair(page)
    challenge = urlsafe_b64decode((await door.options(page))["challenge"] + "==").decode()
    body = {"challenge": challenge, "credential": credential}
    assert (await page.post(KEYS, json=body)).status_code == 400
    assert (await page.post(SIGN_IN, json=body)).status_code == 401
