"""Pairing (CC-F5): a code becomes one token, once, and never for a guess, a foreign page or another machine."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.pairing_codes import PendingPairings
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.subjects import PAIRING_BUCKET, TOKEN_BUCKET, TOKENS_CHANGED
from trunkline.contracts.auth.tokens import AccessTokenRecord, TokensChanged
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.testing.platform import Platform, platform
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio

PAIR, ME, OUT = "/api/pair", "/api/me", "/api/sign-out"


@dataclass
class Entrance:
    """A running gateway and its pairing."""

    running: Platform
    auth: AuthClient

    @property
    def cookie(self) -> str:
        """The name of this home's cookie."""
        return TokenKey(self.running.home.token_key).session_cookie

    def browser(self) -> httpx.AsyncClient:
        """A client that keeps cookies and names its origin, as a browser does."""
        return httpx.AsyncClient(base_url=self.running.url, timeout=60, headers={"origin": self.running.url})

    async def pair(self, code: str, form: str = "bearer", **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.running.url, timeout=60) as http:
            return await http.post(PAIR, json={"code": code, "as": form}, headers=headers)

    async def change_pending(self, **fields: Any) -> None:
        """Change the codes that wait, behind the gateway's back."""
        bucket = self.running.bus.kv(PAIRING_BUCKET)
        entry = await bucket.get("pending")
        assert entry is not None and entry.value is not None
        codes = tuple(msgspec.structs.replace(one, **fields) for one in entry.value.codes)
        await bucket.put("pending", PendingPairings(codes=codes, wrong=entry.value.wrong))


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Entrance]:
    async with platform(workers=("gateway", "memory")) as running:
        yield Entrance(running, AuthClient(running.bus))


@pytest.fixture
async def entrance(shared: Entrance) -> Entrance:
    await shared.auth.cancel_pairings()
    return shared


async def test_CC_T6_a_code_becomes_a_token_once(entrance: Entrance) -> None:
    """CC-T6: the first exchange gives a token that is accepted; a second exchange of the code fails."""
    started = await entrance.auth.start_pairing(scope=TokenScope.CHAT, label="phone")
    first = await entrance.pair(started.code)
    assert first.status_code == 200
    assert first.json().keys() == {"identity", "scope", "token", "expires"}
    async with httpx.AsyncClient(base_url=entrance.running.url) as http:
        headers = {"authorization": f"Bearer {first.json()['token']}"}
        me = (await http.get(ME, headers=headers)).json()
        assert (me["id"], me["scope"], me["kind"]) == ("owner", "chat", "bearer")
    second = await entrance.pair(started.code)
    assert (second.status_code, second.json()["code"]) == (401, "unauthorized")


async def test_a_label_that_is_too_long_is_refused_before_a_code_is_used(entrance: Entrance) -> None:
    """Otherwise the code would be used up by an exchange that fails."""
    with pytest.raises(RemoteFault, match="100 characters"):
        await entrance.auth.start_pairing(label="x" * 101)
    started = await entrance.auth.start_pairing(label="x" * 100)
    assert (await entrance.pair(started.code)).status_code == 200


async def test_the_owners_label_of_a_code_stays(entrance: Entrance) -> None:
    """Whoever uses the code may name the device only if the owner did not."""
    labels = []
    for own in ("kitchen tablet", ""):
        started = await entrance.auth.start_pairing(label=own)
        body = {"code": started.code, "as": "bearer", "label": "Mozilla/5.0"}
        async with entrance.browser() as http:
            assert (await http.post(PAIR, json=body)).status_code == 200
        labels.append((await entrance.auth.tokens())[-1].label)
    assert labels == ["kitchen tablet", "Mozilla/5.0"]


async def test_a_programs_token_lives_on_while_it_is_used(entrance: Entrance) -> None:
    """CC-T6: the token of a code expires after 90 days without use. A program that asks who it is gets 90 days more,
    with the same token; one that comes too late, and a token with an expiry of the owner's choice, gets none."""
    token = (await entrance.pair((await entrance.auth.start_pairing()).code)).json()["token"]
    async with httpx.AsyncClient(base_url=entrance.running.url, timeout=60) as http:
        http.headers["authorization"] = f"Bearer {token}"
        first = datetime.fromisoformat((await http.get(ME)).json()["expires"])
        assert timedelta(days=89) < first - datetime.now(UTC) <= timedelta(days=90)
        assert datetime.fromisoformat((await http.get(ME)).json()["expires"]) == first
        await age(entrance, timedelta(days=60))
        later = datetime.fromisoformat((await http.get(ME)).json()["expires"])
        assert first - timedelta(days=1) < later
        await age(entrance, timedelta(days=91))
        with anyio.fail_after(5):
            while (await http.get(ME)).status_code != 401:  # noqa: ASYNC110  it is asked over HTTP
                await anyio.sleep(0.01)
    soon = datetime.now(UTC) + timedelta(days=7)
    issued = await entrance.auth.issue_token("owner", TokenScope.READ, expires=soon)
    async with httpx.AsyncClient(base_url=entrance.running.url, timeout=60) as http:
        http.headers["authorization"] = f"Bearer {issued.text}"
        assert datetime.fromisoformat((await http.get(ME)).json()["expires"]) == soon


async def age(entrance: Entrance, time: timedelta) -> None:
    """Make all paired tokens older."""
    bucket = entrance.running.bus.kv(TOKEN_BUCKET)
    ids = []
    for entry in await bucket.entries():
        if entry.value is not None and entry.value.paired and entry.value.expires is not None:
            older = msgspec.structs.replace(entry.value, expires=entry.value.expires - time)
            await bucket.put(entry.value.id, older)
            ids.append(entry.value.id)
    await entrance.running.bus.publish(TOKENS_CHANGED, TokensChanged(ids=tuple(ids)))


async def test_a_browser_completes_the_handshake(entrance: Entrance) -> None:
    """CC-T6: a browser, which sets no header of its own, gets a cookie that no script can read, and is signed in."""
    started = await entrance.auth.start_pairing()
    async with entrance.browser() as http:
        assert (await http.get(ME)).status_code == 401
        response = await http.post(PAIR, json={"code": started.code.lower(), "as": "cookie"})
        cookie = response.headers["set-cookie"]
        for attribute in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age="):
            assert attribute in cookie
        assert "Secure" not in cookie
        assert "token" not in response.json()
        me = (await http.get(ME)).json()
        assert (me["id"], me["scope"], me["kind"]) == ("owner", "owner", "session")
        days = (datetime.fromisoformat(me["expires"]) - datetime.now(UTC)).days
        assert days == 29


async def test_the_cookie_is_secure_behind_a_proxy_with_tls(entrance: Entrance) -> None:
    """A browser that came by https gets a cookie that is never sent without it."""
    started = await entrance.auth.start_pairing()
    response = await entrance.pair(started.code, "cookie", **{"x-forwarded-proto": "https"})
    assert "Secure" in response.headers["set-cookie"]


async def test_signing_out_ends_the_session(entrance: Entrance) -> None:
    """The cookie is removed, and its token is refused also if somebody kept it."""
    started = await entrance.auth.start_pairing()
    async with entrance.browser() as http:
        await http.post(PAIR, json={"code": started.code, "as": "cookie"})
        kept = http.cookies[entrance.cookie]
        assert (await http.post(OUT, json={})).json() == {"signed_out": True}
        assert entrance.cookie not in http.cookies
        assert (await http.get(ME, headers={"cookie": f"{entrance.cookie}={kept}"})).status_code == 401


async def test_two_homes_on_one_host_do_not_disturb_each_other(entrance: Entrance) -> None:
    """A browser sends its cookies to every port of a host. It is signed in at both homes, and signing out at one leaves
    the other; the name of a cookie shows nothing of the key, and stays for the sessions of one home."""
    async with (
        platform(workers=("gateway", "memory")) as running,
        httpx.AsyncClient(timeout=60) as http,
    ):
        other = Entrance(running, AuthClient(running.bus))
        assert entrance.cookie != other.cookie
        for one in (entrance, other):
            code = (await one.auth.start_pairing()).code
            signed_in = await http.post(one.running.url + PAIR, json={"code": code, "as": "cookie"})
            assert signed_in.headers["set-cookie"].startswith(f"{one.cookie}=")
        assert set(http.cookies) == {entrance.cookie, other.cookie}
        assert [await _me(http, one) for one in (entrance, other)] == [200, 200]
        await http.post(other.running.url + OUT, json={})
        assert [await _me(http, one) for one in (entrance, other)] == [200, 401]
    assert entrance.running.home.token_key.read_text().strip() not in entrance.cookie


async def _me(http: httpx.AsyncClient, entrance: Entrance) -> int:
    return (await http.get(entrance.running.url + ME)).status_code


@pytest.mark.parametrize("guess", ["AAAA-AAAA", "", "x" * 200, "7KQ4XM2P7KQ4XM2P", "ÄÖÜ", "'; --"])
async def test_a_wrong_code_is_refused(entrance: Entrance, guess: str) -> None:
    """CC-T6: a wrong code gives no token, and the reply does not say whether another code waits."""
    without = await entrance.pair(guess or "0")
    await entrance.auth.start_pairing()
    waiting = await entrance.pair(guess or "0")
    assert without.status_code == waiting.status_code == 401
    assert {**without.json(), "x": 0} == {**waiting.json(), "x": 0}
    assert "Ask for a new one: trunkline pair" in waiting.json()["metadata"]["reason"]


async def test_five_wrong_codes_end_all_that_wait(entrance: Entrance) -> None:
    """Guessing is hopeless: after five wrong attempts the right code does not count any more either."""
    started = await entrance.auth.start_pairing()
    link = await entrance.auth.start_pairing(is_local=True)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(entrance.pair, f"AAAA-AAA{number + 2}")
    assert (await entrance.pair(started.code)).status_code == 401
    assert (await entrance.pair(link.code)).status_code == 401
    fresh = await entrance.auth.start_pairing()
    assert (await entrance.pair(fresh.code)).status_code == 200


async def test_at_most_three_codes_wait(entrance: Entrance) -> None:
    """A fourth code is refused until one is used, has expired or is ended."""
    codes = [(await entrance.auth.start_pairing()).code for _ in range(3)]
    with pytest.raises(RemoteFault) as fault:
        await entrance.auth.start_pairing()
    assert fault.value.code == "rate_limited"
    assert (await entrance.pair(codes[1])).status_code == 200
    await entrance.auth.start_pairing()
    assert await entrance.auth.cancel_pairings() == 3
    assert (await entrance.pair(codes[0])).status_code == 401


async def test_links_of_this_machine_take_no_room_from_codes(entrance: Entrance) -> None:
    """``trunkline open`` can be repeated: of four links the oldest one ends, and a code can still be made."""
    links = [(await entrance.auth.start_pairing(is_local=True)).code for _ in range(4)]
    code = await entrance.auth.start_pairing()
    assert [(await entrance.pair(link)).status_code for link in links] == [401, 200, 200, 200]
    assert (await entrance.pair(code.code)).status_code == 200


async def test_simultaneous_exchanges_give_one_token(entrance: Entrance) -> None:
    """CC-T6: of twenty exchanges at once, one succeeds."""
    started = await entrance.auth.start_pairing()
    answers: list[int] = []

    async def exchange() -> None:
        answers.append((await entrance.pair(started.code)).status_code)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(exchange)
    assert sorted(answers) == [200, 401, 401, 401]


async def test_an_expired_code_is_refused(entrance: Entrance) -> None:
    """CC-T6: a code counts for ten minutes; a link for one."""
    started = await entrance.auth.start_pairing()
    link = await entrance.auth.start_pairing(is_local=True)
    for one, seconds in ((started, 600), (link, 60)):
        assert 0 <= seconds - (one.expires - datetime.now(UTC)).total_seconds() < 5
    await entrance.change_pending(expires=datetime.now(UTC) - timedelta(seconds=1))
    assert (await entrance.pair(started.code)).status_code == 401
    assert (await entrance.pair(link.code)).status_code == 401


async def test_a_page_of_another_origin_cannot_pair(entrance: Entrance) -> None:
    """CC-T5: the right code from a foreign page is refused, and the code still works for its owner."""
    started = await entrance.auth.start_pairing()
    for headers in ({"origin": "http://evil.com"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert (await entrance.pair(started.code, "cookie", **headers)).status_code == 403
    assert (await entrance.pair(started.code)).status_code == 200


async def test_a_link_works_on_this_machine_only(entrance: Entrance) -> None:
    """The link of ``trunkline open`` is refused for whoever comes through a proxy; a short code is not."""
    link = await entrance.auth.start_pairing(is_local=True)
    for name in ("x-forwarded-for", "forwarded", "via"):
        assert (await entrance.pair(link.code, "cookie", **{name: "203.0.113.9"})).status_code == 401
    assert (await entrance.pair(link.code, "cookie")).status_code == 200
    assert (await entrance.pair(link.code, "cookie")).status_code == 401
    code = await entrance.auth.start_pairing()
    assert (await entrance.pair(code.code, **{"x-forwarded-for": "203.0.113.9"})).status_code == 200


async def test_codes_are_stored_as_hashes_and_survive_a_restart(tmp_path: Any) -> None:
    """CC-T6: a pairing that waits survives a restart of the gateway; no file has the code, and the key is 0600."""
    async with platform(tmp_path, workers=("gateway", "memory")) as running:
        code = (await AuthClient(running.bus).start_pairing()).code
    assert (tmp_path / "token-key").stat().st_mode & 0o777 == 0o600
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in files if code.encode() in file.read_bytes()] == []
    async with platform(tmp_path, workers=("gateway", "memory")) as running:
        entrance = Entrance(running, AuthClient(running.bus))
        answer = await entrance.pair(code)
        assert answer.status_code == 200
        token = answer.json()["token"]
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert [file for file in files if token.encode() in file.read_bytes()] == []


async def test_a_pairing_is_for_a_known_identity_and_its_scope(entrance: Entrance) -> None:
    """A code for somebody else never has the scope of the owner, and is not made for a stranger."""
    await entrance.auth.create_identity("emil")
    for identity, scope in (("emil", TokenScope.OWNER), ("stranger", TokenScope.CHAT)):
        with pytest.raises(RemoteFault):
            await entrance.auth.start_pairing(identity, scope)
    started = await entrance.auth.start_pairing("emil", TokenScope.CHAT)
    await entrance.auth.change_identity("emil", "suspended")
    assert (await entrance.pair(started.code)).status_code == 409


class OldSession:
    """A session that is old enough for another token. Each request names its token, as different tabs may."""

    def __init__(self, entrance: Entrance, http: httpx.AsyncClient, id: str, token: str) -> None:
        self.entrance, self.http, self.id, self.token = entrance, http, id, token

    async def get_me(self, token: str) -> httpx.Response:
        headers = {"cookie": f"{self.entrance.cookie}={token}"}
        self.http.cookies.clear()
        return await self.http.get(ME, headers=headers)

    async def next_token(self, token: str) -> str | None:
        """Return the token that an answer gives instead of this one; None if it gives none."""
        answer = await self.get_me(token)
        assert answer.status_code == 200
        return answer.cookies.get(self.entrance.cookie)

    async def record(self) -> AccessTokenRecord:
        entry = await self.entrance.running.bus.kv(TOKEN_BUCKET).get(self.id)
        assert entry is not None and entry.value is not None
        return entry.value

    async def change(self, **fields: Any) -> None:
        """Change the record behind the gateway's back, and announce it."""
        record = msgspec.structs.replace(await self.record(), **fields)
        bus = self.entrance.running.bus
        await bus.kv(TOKEN_BUCKET).put(self.id, record)
        await bus.publish(TOKENS_CHANGED, TokensChanged(ids=(self.id,)))

    async def rotate(self) -> str:
        """Let the browser get its next token and present it, more than a minute ago; return it."""
        new = await self.next_token(self.token)
        assert new is not None and await self.next_token(new) is None
        past = datetime.now(UTC) - timedelta(seconds=61)
        await self.change(confirmed=past, scope=TokenScope.READ)
        with anyio.fail_after(5):
            while (await self.get_me(new)).json()["scope"] != "read":  # noqa: ASYNC110  it is asked over HTTP
                await anyio.sleep(0.01)
        return new


@pytest.fixture
async def old_session(entrance: Entrance) -> AsyncIterator[OldSession]:
    started = await entrance.auth.start_pairing(scope=TokenScope.CHAT)
    async with entrance.browser() as http:
        token = (await http.post(PAIR, json={"code": started.code, "as": "cookie"})).cookies[entrance.cookie]
        session = OldSession(entrance, http, (await entrance.auth.tokens())[-1].id, token)
        assert await session.next_token(token) is None
        await session.change(created=datetime.now(UTC) - timedelta(days=2))
        yield session


async def ended_copies(entrance: Entrance, id: str) -> int:
    entries = [one async for one in entrance.running.bus.history(AUDIT)]
    return sum(one.data.status == "session_copied" and id in one.data.why for one in entries)


async def test_an_old_session_gets_another_token(old_session: OldSession) -> None:
    """PA-F23: a session older than a day rotates. Requests of other tabs are under way with the earlier cookie, so it
    counts for a minute after the new one was presented, and nobody gets another token for it.
    """
    first = old_session.token
    new = await old_session.next_token(first)
    assert new is not None and new != first
    assert await old_session.next_token(new) is None
    assert await old_session.next_token(first) is None
    assert (await old_session.record()).confirmed is not None


async def test_a_lost_answer_signs_nobody_out(old_session: OldSession) -> None:
    """The browser that has not got its new token stays signed in by the earlier one, and gets the new one again: the
    same, so that it does not matter which answer of several tabs arrives last.
    """
    first = old_session.token
    answers: list[str | None] = []

    async def open_tab() -> None:
        answers.append((await old_session.get_me(first)).cookies.get(old_session.entrance.cookie))

    async with anyio.create_task_group() as tabs:
        for _ in range(5):
            tabs.start_soon(open_tab)
    assert len(set(answers)) == 1 and answers[0] not in (None, first)
    expires = (await old_session.record()).expires
    again = await old_session.next_token(first)
    assert again is not None and again == answers[0]
    assert (await old_session.record()).expires == expires
    assert await old_session.next_token(again) is None


async def test_the_earlier_token_ends_with_the_session(old_session: OldSession) -> None:
    """It does not prolong the session, however often it is presented."""
    assert await old_session.next_token(old_session.token)
    await old_session.change(expires=datetime.now(UTC) - timedelta(seconds=1))
    with anyio.fail_after(5):
        while (await old_session.get_me(old_session.token)).status_code != 401:  # noqa: ASYNC110  it is asked over HTTP
            await anyio.sleep(0.01)


async def test_a_copied_cookie_ends_the_session(old_session: OldSession) -> None:
    """Whoever presents the earlier token after the browser has shown the new one has a copy of the cookie, or the
    browser presents it and the copy was rotated. Both are refused from then on, and the owner finds it in the audit.
    """
    first, new = old_session.token, await old_session.rotate()
    for foreign in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
        headers = {"cookie": f"{old_session.entrance.cookie}={first}", **foreign}
        assert (await old_session.http.get(ME, headers=headers)).status_code == 401
    assert await old_session.next_token(new) is None  # a foreign page cannot end it
    assert (await old_session.get_me(first)).status_code == 401
    assert (await old_session.get_me(new)).status_code == 401
    assert (await old_session.record()).ended == "revoked"
    assert (await old_session.get_me(first)).status_code == 401
    with anyio.fail_after(5):
        while await ended_copies(old_session.entrance, old_session.id) != 1:  # noqa: ASYNC110  the log is written later
            await anyio.sleep(0.02)


async def test_a_copy_in_a_header_ends_the_session_too(old_session: OldSession) -> None:
    """A thief need not be a browser."""
    first, new = old_session.token, await old_session.rotate()
    async with httpx.AsyncClient(base_url=old_session.entrance.running.url) as thief:
        assert (await thief.get(ME, headers={"authorization": f"Bearer {first}"})).status_code == 401
    assert (await old_session.get_me(new)).status_code == 401


async def test_the_page_contains_no_data_and_runs_its_own_script_alone(entrance: Entrance) -> None:
    """``/pair`` needs no credential; its policy allows its own script alone."""
    async with httpx.AsyncClient(base_url=entrance.running.url) as http:
        page = await http.get("/pair")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http://" not in page.text and "https://" not in page.text
