"""Push notices (issue 14): who asked and may decide is told once that a block asks for an approval, and nobody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

import trunkline
from tests.other_users import share, write_identity
from trunkline.contracts.approvals.messages import Approval, ApprovalDetail, Settlement
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.push.subjects import PUSH_SUBSCRIPTION_BUCKET
from trunkline.contracts.push.subscriptions import MOST_SUBSCRIPTIONS
from trunkline.testing.platform import Platform, platform
from trunkline_bus import Scope, new_id
from trunkline_push.web_push_sender import WebPushSender

from .push_endpoint import Browser, PushEndpoint, push_endpoint

pytestmark = pytest.mark.anyio

PUSH = "/api/push"
SILENCE_SECONDS = 3.0
"""Seconds after which a notice that does not come would have come: longer than notices are gathered."""


class Sender:
    """A plugin whose sender reaches the service of these tests. The installed plugin reaches the internet only."""

    def __init__(self, endpoint: PushEndpoint) -> None:
        self._sender = WebPushSender(endpoint.guard(), endpoint.tls)

    @trunkline.hookimpl
    def trunkline_push_senders(self) -> list[object]:
        return [self._sender]


@dataclass
class House:
    """A running gateway, and the service of the browsers' vendor."""

    running: Platform
    endpoint: PushEndpoint

    @property
    def auth(self) -> AuthClient:
        return AuthClient(self.running.bus)

    @asynccontextmanager
    async def page(self, identity: str = "owner", scope: str = "owner") -> AsyncIterator[httpx.AsyncClient]:
        """A page in a session of an identity."""
        url = self.running.url
        async with httpx.AsyncClient(base_url=url, timeout=60, headers={"origin": url}) as page:
            started = await self.auth.start_pairing(identity, TokenScope(scope))
            await ok(await page.post("/api/pair", json={"code": started.code, "as": "cookie"}))
            yield page

    def browser(self) -> Browser:
        """A browser with an address of its own."""
        return Browser(self.endpoint.origin, f"/send/{new_id()}")

    async def subscribed(self, identity: str = "owner", scope: str = "owner", **fields: Any) -> Browser:
        """A browser whose person turned notices on and closed the page."""
        browser = self.browser()
        async with self.page(identity, scope) as page:
            await ok(await page.post(PUSH, json={**browser.json, **fields}), 201)
        return browser

    async def ask(self, block: str = "garden", **fields: Any) -> Approval:
        """Let a call wait for an approval, as the monitor does."""
        now = datetime.now(UTC)
        approval = Approval(
            id=new_id().lower()[-10:], turn=new_id("trn"), call="call-1", call_hash="0" * 64, tool="shell_run",
            block=block, conversation=new_id("cnv"), channel="test", actor="owner", question="Run rm secret.txt?",
            asked_at=now, expires_at=now + timedelta(minutes=5), **fields,
        )  # fmt: skip
        await self.store(approval)
        return approval

    async def store(self, approval: Approval) -> None:
        scope = Scope(block=approval.block, conversation=approval.conversation, turn=approval.turn)
        await self.running.bus.append(APPROVAL, approval, scope=scope, approval=approval.id)

    async def settle(self, approval: Approval) -> None:
        settled = Settlement(allow=False, by="owner", at=datetime.now(UTC))
        await self.store(msgspec.structs.replace(approval, settled=settled))

    def sent_to(self, browser: Browser) -> list[dict[str, Any]]:
        """The notices that a browser got."""
        return [browser.read(one) for one in self.endpoint.received if one.path == browser.path]

    async def wait_for(self, browser: Browser, number: int = 1) -> list[dict[str, Any]]:
        """Return the notices of a browser as soon as there are this many."""
        with anyio.fail_after(20):
            while len(self.sent_to(browser)) < number:  # noqa: ASYNC110  the service has no event for it
                await anyio.sleep(0.02)
        return self.sent_to(browser)

    async def kept(self) -> list[str]:
        return await self.running.bus.kv(PUSH_SUBSCRIPTION_BUCKET).keys()


async def ok(response: httpx.Response, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


@asynccontextmanager
async def started(endpoint: PushEndpoint, home: Path) -> AsyncIterator[House]:
    settings = {"plugins.disabled": ["trunkline-push"]}
    async with platform(
        home, plugins=[Sender(endpoint)], config=settings, workers=("gateway", "memory")
    ) as running:
        yield House(running, endpoint)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("push")
    async with push_endpoint(folder) as endpoint, started(endpoint, folder / "home") as house:
        yield house


@pytest.fixture
async def house(shared: House) -> AsyncIterator[House]:
    """The shared gateway, without subscriptions."""
    yield shared
    for id in await shared.kept():
        await shared.running.bus.kv(PUSH_SUBSCRIPTION_BUCKET).delete(id)
    shared.endpoint.received.clear()
    shared.endpoint.statuses.clear()


async def test_a_notice_names_the_block_and_nothing_of_the_call(house: House) -> None:
    """The browser of the owner gets one notice, in its language, without the question or the tool."""
    browser = await house.subscribed(language="de")
    approval = await house.ask()
    assert await house.wait_for(browser) == [
        {"language": "de", "count": 1, "approval": approval.id, "block": "garden"}
    ]
    assert house.endpoint.received[0].headers["topic"] == approval.id
    assert 200 < int(house.endpoint.received[0].headers["ttl"]) <= 300


async def test_nothing_is_sent_before_somebody_asks(house: House) -> None:
    """An approval alone sends nothing, and one that waited before is not told later."""
    await house.ask()
    browser = await house.subscribed()
    await anyio.sleep(SILENCE_SECONDS)
    assert house.endpoint.received == [] and house.sent_to(browser) == []


async def test_many_approvals_are_one_notice(house: House) -> None:
    """What waits at once is one notice with the number; what was settled meanwhile is not counted."""
    browser = await house.subscribed()
    for _ in range(3):
        await house.ask()
    await house.settle(await house.ask())
    assert await house.wait_for(browser) == [{"language": "en", "count": 3}]
    await anyio.sleep(SILENCE_SECONDS)
    assert len(house.sent_to(browser)) == 1


async def test_a_reminder_is_no_second_notice(house: House) -> None:
    """A person is told once of an approval, also when it is reminded of."""
    browser = await house.subscribed()
    approval = await house.ask()
    await house.wait_for(browser)
    await house.store(msgspec.structs.replace(approval, reminded_at=datetime.now(UTC)))
    await anyio.sleep(SILENCE_SECONDS)
    assert len(house.sent_to(browser)) == 1


async def test_the_notices_end_with_the_session(house: House) -> None:
    """A revoked session, and one that signed out, gets nothing, and its subscription is removed."""
    owner = await house.subscribed()
    before = {one.id for one in await house.auth.tokens()}
    revoked = await house.subscribed()
    (new,) = [one.id for one in await house.auth.tokens() if one.id not in before]
    left = house.browser()
    async with house.page() as page:
        await ok(await page.post(PUSH, json=left.json), 201)
        await ok(await page.post("/api/sign-out"))
    await house.auth.revoke_token(new)
    await house.ask()
    await house.wait_for(owner)
    await anyio.sleep(0.5)
    assert house.sent_to(revoked) == [] and house.sent_to(left) == []
    assert len(await house.kept()) == 1


async def test_only_who_may_decide_is_told(house: House) -> None:
    """A collaborator is told of the block where they may approve, and of no other; nobody but the owner is told of what
    only the owner decides.
    """
    await write_identity(house.running.bus, "anna")
    await write_identity(house.running.bus, "ben")
    await share(house.running.bus, "approve", subject="anna", block="orchard")
    await share(house.running.bus, "chat", subject="ben", block="orchard")
    owner = await house.subscribed()
    anna, ben = await house.subscribed("anna", "approve"), await house.subscribed("ben", "approve")
    await house.ask("cellar")
    await house.ask("orchard", detail=ApprovalDetail(owner_only=True))
    shared = await house.ask("orchard")
    assert [one["approval"] for one in await house.wait_for(anna)] == [shared.id]
    assert [one["count"] for one in await house.wait_for(owner)] == [3]
    await anyio.sleep(0.5)
    assert house.sent_to(ben) == []


async def test_a_subscription_that_the_vendor_ended_is_removed(house: House) -> None:
    """After the status 410 nothing is sent there again."""
    browser = await house.subscribed()
    house.endpoint.statuses.append(410)
    await house.ask()
    await house.wait_for(browser)
    with anyio.fail_after(10):
        while await house.kept():  # noqa: ASYNC110  it is asked over the bus
            await anyio.sleep(0.02)


async def test_a_failed_notice_is_tried_again(house: House) -> None:
    """A vendor's service that is overloaded gets the notice again, until the approval is decided."""
    browser = await house.subscribed()
    house.endpoint.statuses.append(503)
    approval = await house.ask()
    assert [one["approval"] for one in await house.wait_for(browser, 2)] == [approval.id] * 2
    house.endpoint.statuses.append(503)
    second = await house.ask()
    await house.wait_for(browser, 3)
    await house.settle(second)
    await anyio.sleep(SILENCE_SECONDS)
    assert len(house.sent_to(browser)) == 3


async def test_a_record_written_behind_the_gateway_gets_nothing(house: House) -> None:
    """Whoever writes to the bucket without the key of the home leads no notice to another address."""
    await house.subscribed()
    bucket = house.running.bus.kv(PUSH_SUBSCRIPTION_BUCKET)
    (id,) = await house.kept()
    entry = await bucket.get(id)
    assert entry is not None and entry.value is not None
    await bucket.put(id, msgspec.structs.replace(entry.value, endpoint=f"{house.endpoint.origin}/thief"))
    await house.ask()
    await anyio.sleep(SILENCE_SECONDS)
    assert house.endpoint.received == []


async def test_an_identity_sees_and_ends_its_own_only(house: House) -> None:
    """The list has neither address nor keys. Another identity's subscription does not exist."""
    browser = await house.subscribed(label="my phone")
    await write_identity(house.running.bus, "carl")
    async with house.page() as page, house.page("carl", "approve") as other:
        state = await ok(await page.get(PUSH))
        (mine,) = state["subscriptions"]
        assert set(mine) == {"id", "host", "created", "label"} and mine["label"] == "my phone"
        assert browser.path not in str(state) and len(state["public_key"]) == 87
        assert (await ok(await other.get(PUSH)))["subscriptions"] == []
        for refused in (
            await other.delete(f"{PUSH}/{mine['id']}"),
            await other.post(f"{PUSH}/{mine['id']}/test"),
        ):
            assert refused.status_code == 404
        assert await ok(await page.post(f"{PUSH}/{mine['id']}/test")) == {"outcome": "delivered"}
        assert house.sent_to(browser) == [{"language": "en", "test": True}]
        await ok(await page.delete(f"{PUSH}/{mine['id']}"))
        assert await house.kept() == []


async def test_what_is_no_browser_of_a_session_is_refused(house: House) -> None:
    """A program's token, an address inside, wrong keys and one browser too many are refused."""
    token = {"authorization": f"Bearer {house.running.token}"}
    async with httpx.AsyncClient(base_url=house.running.url, headers=token) as program:
        assert (await program.post(PUSH, json=house.browser().json)).status_code == 400
    async with house.page() as page:
        for endpoint in ("https://127.0.0.1/x", "http://push.test/x", "https://inside.test/x", "x"):
            refused = await page.post(PUSH, json={**house.browser().json, "endpoint": endpoint})
            assert refused.status_code == 400 and "10.0.0.7" not in refused.text
        assert (
            await page.post(PUSH, json={**house.browser().json, "keys": {"p256dh": "", "auth": ""}})
        ).status_code == 400
        for _ in range(MOST_SUBSCRIPTIONS):
            await ok(await page.post(PUSH, json=house.browser().json), 201)
        assert (await page.post(PUSH, json=house.browser().json)).status_code == 409


async def test_no_approval_is_told_twice_after_a_restart(tmp_path: Path) -> None:
    """A gateway that starts again tells of what came meanwhile, and of nothing that it has told."""
    async with push_endpoint(tmp_path) as endpoint:
        async with started(endpoint, tmp_path / "home") as house:
            browser = await house.subscribed()
            told = await house.ask()
            await house.wait_for(browser)
        async with started(endpoint, tmp_path / "home") as house:
            new = await house.ask()
            notices = await house.wait_for(browser, 2)
            assert [one.get("approval") for one in notices] == [told.id, new.id]
            assert (tmp_path / "home" / "push-key").stat().st_mode & 0o777 == 0o600
