"""Identities and tokens by the operations of the gateway: who may enter, what a revocation ends, and the audit log."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

import trunkline
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.identity import IdentityRecord, identity_path
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.auth.share_policy import share_policy
from trunkline.contracts.auth.subjects import TOKEN_BUCKET
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.models.adapter import ModelAdapter
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ScriptedModel
from trunkline_bus import RemoteFault

pytestmark = pytest.mark.anyio

SEND = "/conversations/messages"


class SlowWork:
    """A plugin with a scripted model and a tool that takes its time."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.ended = 0

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [ScriptedModel()]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def dig() -> str:
            """Dig for a minute."""
            self.started.set()
            try:
                await anyio.sleep(60)
            finally:
                self.ended += 1
            return "a hole"

        return [dig]


@dataclass
class House:
    """A running platform, its operations about identities and tokens, and an HTTP client."""

    running: Platform
    auth: AuthClient
    http: httpx.AsyncClient
    work: SlowWork

    async def status(self, token: str) -> int:
        return (await self.http.get("/conversations", headers=bearer(token))).status_code

    async def entries(self) -> list[AuditEntry]:
        """The entries of the audit log about identities and tokens."""
        found = [stored.data async for stored in self.running.bus.history(AUDIT, after=0)]
        return [entry for entry in found if entry.event == "auth"]

    async def sent(self, token: str, content: str) -> str:
        """Send a message without reading its answer; return the turn."""
        async with self.http.stream(
            "POST", SEND, headers=bearer(token), json={"content": content}
        ) as response:
            assert response.status_code == 200
            return response.headers["x-turn-id"]

    async def ending(self, turn: str) -> str | None:
        """Wait for the end of a turn; return its reason."""
        with anyio.fail_after(10):
            while True:
                found = (await self.http.get(f"/api/turns/{turn}", headers=bearer(self.running.token))).json()
                if found["status"] == "finished":
                    return str(found["finish_reason"])
                await anyio.sleep(0.02)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 1.0) -> None:
    with anyio.fail_after(seconds):
        while not await condition():  # noqa: ASYNC110  it is asked over HTTP
            await anyio.sleep(0.02)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[House]:
    work = SlowWork()
    config = {"runtime.provider_adapter": "scripted"}
    async with (
        platform(plugins=[work], config=config) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60) as http,
    ):
        yield House(running, AuthClient(running.bus), http, work)


@pytest.fixture
def house(shared: House) -> House:
    shared.work.started, shared.work.ended = anyio.Event(), 0
    return shared


async def refused(call: Awaitable[Any], code: str) -> str:
    """Check that an operation is refused with a code; return its sentence."""
    with pytest.raises(RemoteFault) as fault:
        await call
    assert fault.value.code == code, fault.value
    return fault.value.message


async def test_identities_are_created_listed_and_revoked(house: House) -> None:
    """PA-F20: the owner is built in and stays active; a revoked identity is revoked for good."""
    anna = await house.auth.create_identity("anna", display_name="Anna")
    assert (anna.status, anna.type) == ("active", "collaborator")
    assert [one.id for one in await house.auth.identities()][:2] == ["owner", "anna"]
    await refused(house.auth.create_identity("anna"), "conflict")
    await refused(house.auth.change_identity("owner", "suspended"), "conflict")
    await refused(house.auth.change_identity("nobody", "suspended"), "not_found")
    await refused(house.auth.change_identity("../policies/x", "suspended"), "not_found")
    await house.auth.change_identity("anna", "revoked")
    await refused(house.auth.change_identity("anna", "active"), "conflict")


@pytest.mark.parametrize(
    "id", ["owner", "agent", "block", "a:b", "../x", "", "UPPER", "channel:terminal", "ä"]
)
async def test_ids_with_another_meaning_are_refused(house: House, id: str) -> None:
    """An id that a policy or an actor's name would confuse with something else is refused."""
    await refused(house.auth.create_identity(id), "invalid_request")


async def test_only_the_owner_has_owner_tokens(house: House) -> None:
    """No identity can be made an owner, and no token of another identity has the scope owner."""
    await house.auth.create_identity("bert")
    await refused(house.auth.create_identity("bertram", "owner"), "invalid_request")
    await refused(house.auth.issue_token("bert", TokenScope.OWNER), "invalid_request")
    await refused(house.auth.issue_token("nobody", TokenScope.READ), "not_found")
    past = datetime.now(UTC) - timedelta(seconds=1)
    await refused(house.auth.issue_token("bert", TokenScope.READ, expires=past), "invalid_request")
    await house.auth.change_identity("bert", "suspended")
    await refused(house.auth.issue_token("bert", TokenScope.READ), "conflict")


async def test_a_token_counts_at_once_and_is_listed_without_its_text(house: House) -> None:
    """PA-T20: the text is in the reply of its creation and nowhere else: no list, bucket, file or entry has it."""
    new = await house.auth.issue_token("owner", TokenScope.READ, label="laptop")
    assert await house.status(new.text) == 200
    listed = await house.auth.tokens("owner")
    assert next(one for one in listed if one.id == new.token.id).label == "laptop"
    record = await house.running.bus.kv(TOKEN_BUCKET).get(new.token.id)
    everything = [str(listed), str(record), str(await house.entries())]
    home = house.running.home.path
    everything += [file.read_bytes().decode("latin-1") for file in home.rglob("*") if file.is_file()]
    assert [text[:200] for text in everything if new.text in text] == []


async def test_a_revoked_token_ends_its_running_turn(house: House) -> None:
    """PA-T17: revoking a token during a tool run cancels the run, and the audit log has both."""
    new = await house.auth.issue_token("owner", TokenScope.CHAT)
    turn = await house.sent(new.text, "call:dig {}")
    other = await house.sent(house.running.token, "slow:30:50")
    with anyio.fail_after(10):
        await house.work.started.wait()
    ended = await house.auth.revoke_token(new.token.id[:-2])
    assert (ended.tokens, ended.turns) == (1, 1)
    await until(lambda: _is(house.status(new.text), 401))
    assert await house.ending(turn) == "cancelled"
    assert house.work.ended == 1
    assert await house.ending(other) == "stop"
    revoked = [one for one in await house.entries() if one.status == "token_revoked"]
    assert [(one.actor, new.token.id in one.why) for one in revoked] == [("owner", True)]
    await refused(house.auth.revoke_token("tok_none"), "not_found")


async def test_a_suspended_identity_is_out_at_once_and_may_return(house: House) -> None:
    """PA-F23: suspending refuses its tokens and cancels its turns; reactivating lets the same tokens in again."""
    await house.auth.create_identity("cleo")
    new = await house.auth.issue_token("cleo", TokenScope.CHAT)
    await until(lambda: _is(house.status(new.text), 200))
    turn = await house.sent(house.running.token, "slow:20:50")
    await house.auth.change_identity("cleo", "suspended")
    await until(lambda: _is(house.status(new.text), 401))
    await house.auth.change_identity("cleo", "active")
    await until(lambda: _is(house.status(new.text), 200))
    await house.auth.change_identity("cleo", "revoked")
    await until(lambda: _is(house.status(new.text), 401))
    assert {one.ended for one in await house.auth.tokens("cleo")} == {"revoked"}
    assert await house.ending(turn) == "stop"


async def test_revoking_an_identity_by_its_file_ends_its_tokens(house: House) -> None:
    """The owner may edit the file in memory; the effect is that of the command."""
    record = await house.auth.create_identity("dora")
    new = await house.auth.issue_token("dora", TokenScope.CHAT)
    await until(lambda: _is(house.status(new.text), 200))
    await _write(house, msgspec.structs.replace(record, status="revoked"))
    await until(lambda: _is(house.status(new.text), 401))

    async def ended() -> bool:
        return all(one.ended == "revoked" for one in await house.auth.tokens("dora"))

    await until(ended)


async def test_only_the_owner_approves_a_change_of_who_may_enter(house: House) -> None:
    """A collaborator who may approve calls in the block cannot approve that one; the owner can."""
    await house.auth.create_identity("finn")
    await house.auth.grant(share_policy("main", "finn", "approve"))
    finn = await house.auth.issue_token("finn", TokenScope.APPROVE)
    await until(lambda: _is(house.status(finn.text), 200))
    turn = await house.sent(house.running.token, 'call:auth_create_identity {"id": "gast"}')
    asked = await _question(house, turn)
    decision = {"hash": asked["hash"], "allow": True}
    path = f"/api/turns/{turn}/calls/{asked['call']}/decision"
    refused_decision = await house.http.post(path, json=decision, headers=bearer(finn.text))
    assert refused_decision.status_code == 403
    assert "gast" not in {one.id for one in await house.auth.identities()}
    assert (
        await house.http.post(path, json=decision, headers=bearer(house.running.token))
    ).status_code == 202
    assert await house.ending(turn) == "stop"
    assert "gast" in {one.id for one in await house.auth.identities()}


async def test_rotating_the_key_ends_every_token(house: House) -> None:
    """Nothing that was issued before counts; what is issued afterwards does."""
    old = await house.auth.issue_token("owner", TokenScope.CHAT)
    kept = house.running.home.token_key.read_text()
    assert (await house.auth.rotate_key()).tokens >= 1
    assert house.running.home.token_key.read_text() != kept
    assert await house.status(old.text) == 401
    new = await house.auth.issue_token("owner", TokenScope.CHAT)
    assert await house.status(new.text) == 200


async def test_tokens_survive_a_restart_and_end_with_their_bucket(tmp_path: Path) -> None:
    """A restart ends nothing. Without the bucket every access token is refused; the token of the home still works."""

    async def statuses(text: str) -> tuple[int, int]:
        async with (
            platform(tmp_path, workers=("gateway", "memory")) as running,
            httpx.AsyncClient(base_url=running.url, timeout=60) as http,
        ):
            found = [(await http.get("/conversations", headers=bearer(one))) for one in (text, running.token)]
            return found[0].status_code, found[1].status_code

    async with platform(tmp_path, workers=("gateway", "memory")) as running:
        new = await AuthClient(running.bus).issue_token("owner", TokenScope.CHAT)
    assert await statuses(new.text) == (200, 200)
    shutil.rmtree(tmp_path / "bus")
    assert await statuses(new.text) == (401, 200)


async def test_refused_sign_ins_are_in_the_audit_log(house: House) -> None:
    """A wrong token leaves an entry without anything of what was presented."""
    assert await house.status("tl_wrong") == 401

    async def noted() -> bool:
        return any(one.status == "sign_in_refused" for one in await house.entries())

    await until(noted, seconds=10)
    assert "tl_wrong" not in str(await house.entries())


async def test_many_refused_sign_ins_are_counted(house: House) -> None:
    """The log is a file of memory, with history: a stranger must not fill it."""
    known = {one.id for one in await house.entries()}
    for number in range(60):
        assert await house.status(f"tl_wrong{number}") == 401

    async def refused() -> list[AuditEntry]:
        new = [one for one in await house.entries() if one.id not in known]
        return [one for one in new if one.status == "sign_in_refused"]

    async def all_noted() -> bool:
        return sum(one.count or 1 for one in await refused()) >= 60

    await until(all_noted, seconds=20)
    assert len(await refused()) < 30


async def _question(house: House, turn: str) -> dict[str, Any]:
    """Wait for the question of a turn."""
    with anyio.fail_after(10):
        while True:
            found = await house.http.get("/api/approvals", headers=bearer(house.running.token))
            for one in found.json()["approvals"]:
                if one["turn"] == turn:
                    return dict(one)
            await anyio.sleep(0.02)


async def _is(status: Awaitable[int], expected: int) -> bool:
    return await status == expected


async def _write(house: House, record: IdentityRecord) -> None:
    text = msgspec.json.encode(record).decode()
    request = WriteManyMemory(files={identity_path(record.id): text}, actor="owner", reason="test")
    await house.running.bus.call(MEMORY_WRITE_MANY, request, timeout=10)
