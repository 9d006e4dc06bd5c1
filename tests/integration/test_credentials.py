"""The permissions of a turn's tools are limited by the credential of its sender, on every path and under every
owner."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from tests.other_users import HEADER, Visitors, share, write_policy
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import ForkTurn, MessageAccepted
from trunkline.contracts.policies.messages import Policy
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.subjects import INBOX
from trunkline.testing.platform import Platform, platform
from trunkline_bus import new_id

from .approval_helpers import answer, ask, asking, question_of, results, write

pytestmark = pytest.mark.anyio

PEOPLE = (
    Identity(id="reader", permissions=("tools:read_file", "tools:ask_human")),
    Identity(id="writer", permissions=("tools:*",)),
    Identity(id="boss", type="owner", permissions=("tools:read_file",)),
    Identity(id="nobody", permissions=()),
    Identity(id="odd", permissions=("everything", "tools", "tools:")),
)
WRITE = write("x.txt")
REMEMBER = 'call:memory_read {"path": "/secret.md"} ;; quote'
LEFT_OUT = "permissions of this request do not include"


class UnaskedPlatform:
    """A platform whose calls need no approval, and its gateway."""

    def __init__(self, running: Platform, http: httpx.AsyncClient) -> None:
        self.running = running
        self.http = http
        self.written = running.home.workspace("main") / "x.txt"

    @asynccontextmanager
    async def said(self, who: str, text: str) -> AsyncIterator[MessageAccepted]:
        """Send a message over HTTP; when this returns, the turn has ended."""
        body, headers = {"content": text}, {HEADER: who}
        async with self.http.stream(
            "POST", "/conversations/messages", json=body, headers=headers
        ) as response:
            assert response.status_code == 200, await response.aread()
            turn, conversation = response.headers["x-turn-id"], response.headers["x-conversation-id"]
            yield MessageAccepted(block="main", conversation=conversation, turn=turn, message_id="")
            await response.aread()

    async def say(self, who: str, text: str) -> str:
        """Return the outcomes of all calls of the turn."""
        async with self.said(who, text) as accepted:
            pass
        return await self.results(accepted)

    async def results(self, accepted: MessageAccepted) -> str:
        return " ".join(results((await self.running.answer(accepted)).events))

    async def steer(self, who: str, turn: str, text: str) -> dict[str, Any]:
        """Steer the turn over HTTP. Return the place of the message."""
        done = await self.http.post(f"/api/turns/{turn}/steer", json={"content": text}, headers={HEADER: who})
        assert done.status_code == 202, done.text
        place: dict[str, Any] = done.json()
        return place


@asynccontextmanager
async def unasked_platform(provider: str, home: Path) -> AsyncIterator[UnaskedPlatform]:
    (home / "memory").mkdir(parents=True, exist_ok=True)
    (home / "memory" / "secret.md").write_text("the combination is 4711")
    config: dict[str, Any] = asking(provider, **{"permissions.approvals": "none"})
    async with (
        platform(home, config=config, plugins=[Visitors(*PEOPLE)]) as running,
        httpx.AsyncClient(base_url=running.url, timeout=60) as http,
    ):
        await share(running.bus)
        yield UnaskedPlatform(running, http)


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[UnaskedPlatform]:
    async with unasked_platform(provider, tmp_path_factory.mktemp("credentials")) as found:
        yield found


@pytest.fixture
def started_platform(shared: UnaskedPlatform) -> UnaskedPlatform:
    """The shared platform, in which nothing is written yet."""
    shared.written.unlink(missing_ok=True)
    return shared


async def test_a_turn_is_limited_to_its_credentials_permissions(started_platform: UnaskedPlatform) -> None:
    """Over the native and the OpenAI API, calls outside of the permissions are refused, whatever type the identity
    has. Missing and unreadable permissions permit nothing. The owner's token and channels have every permission."""
    for who in ("reader", "boss", "nobody", "odd"):
        assert LEFT_OUT in await started_platform.say(who, WRITE)
        body = {"model": "main", "messages": [{"role": "user", "content": WRITE}]}
        done = await started_platform.http.post("/v1/chat/completions", json=body, headers={HEADER: who})
        assert done.status_code == 200, done.text
    assert not started_platform.written.exists()
    assert LEFT_OUT in await started_platform.say("writer", REMEMBER)
    await started_platform.say("writer", WRITE)
    assert started_platform.written.exists()
    assert "4711" in " ".join(results((await started_platform.running.say(REMEMBER)).events))


async def test_a_command_runs_within_the_permissions_of_its_sender(started_platform: UnaskedPlatform) -> None:
    """``/tool`` is no way around them; its list names what may not be used."""
    command = '/tool write_file path=x.txt content="x"'
    assert LEFT_OUT in await started_platform.say("reader", command)
    async with started_platform.said("reader", "/tool") as accepted:
        pass
    reported = (await started_platform.running.answer(accepted)).text
    assert "`read_file " in reported and "`write_file`" in reported.partition("may not use")[2]
    assert not started_platform.written.exists()
    await started_platform.say("writer", command)
    assert started_platform.written.exists()


async def test_steering_only_removes_permissions(started_platform: UnaskedPlatform) -> None:
    """A turn has the permissions common to all authors of its messages, from the arrival of each."""
    accepted = await started_platform.running.send("slow:60:50")
    await started_platform.steer("reader", accepted.turn, WRITE)
    assert LEFT_OUT in await started_platform.results(accepted)
    async with started_platform.said("reader", "slow:60:50") as accepted:
        await started_platform.steer("writer", accepted.turn, WRITE)
    assert LEFT_OUT in await started_platform.results(accepted)
    assert not started_platform.written.exists()


async def test_who_has_rules_of_their_own_steers_no_turn_of_others(provider: str, tmp_path: Path) -> None:
    """A denial for the agents of one person would not count in the turn of another, so the message is a turn of its
    own; neither does anybody steer the turn of a person to whom more is permitted."""
    async with unasked_platform(provider, tmp_path) as started_platform:
        running = started_platform.running
        denial: Any = {
            "subject": "writer",
            "resource": "tool:write_file",
            "action": "write",
            "effect": "deny",
        }
        await write_policy(running.bus, Policy(**denial))
        assert "denies" in await started_platform.say("writer", WRITE)
        accepted = await running.send("slow:60:50 ;; say:done")
        own = await started_platform.steer("writer", accepted.turn, WRITE)
        assert own["turn"] != accepted.turn and own["conversation_id"] == accepted.conversation
        assert (await running.answer(accepted)).text.endswith("done")
        later = msgspec.structs.replace(accepted, turn=own["turn"])
        assert "denies" in await started_platform.results(later)
        assert not started_platform.written.exists()
        async with started_platform.said("writer", "slow:60:50 ;; say:done") as accepted:
            assert (await started_platform.steer("boss", accepted.turn, WRITE))["turn"] != accepted.turn
            again = await started_platform.steer("writer", accepted.turn, "say:more")
            assert again["turn"] == accepted.turn


async def test_a_fork_has_the_intersection_of_both_permissions(started_platform: UnaskedPlatform) -> None:
    """Repeating another's words permits no more than they had; new words have the permissions of their author."""
    async with started_platform.said("reader", WRITE) as theirs:
        pass
    fork = started_platform.running.gateway.fork
    assert LEFT_OUT in await started_platform.results(await fork(ForkTurn(turn=theirs.turn, step=0)))
    begun = (await started_platform.running.say("say:hello")).accepted
    again = await fork(ForkTurn(turn=begun.turn, step=1, content=WRITE))
    assert LEFT_OUT not in await started_platform.results(again)
    started_platform.written.unlink()
    for request in ({"step": 0}, {"step": 0, "content": WRITE}):
        done = await started_platform.http.post(
            f"/api/turns/{again.turn}/fork", json=request, headers={HEADER: "reader"}
        )
        taken = done.json()
        forked = MessageAccepted(
            block="main", conversation=taken["conversation_id"], turn=taken["turn"], message_id=""
        )
        assert LEFT_OUT in await started_platform.results(forked)
    assert not started_platform.written.exists()
    own = await fork(ForkTurn(turn=theirs.turn, step=0, content=WRITE))
    assert LEFT_OUT not in await started_platform.results(own) and started_platform.written.exists()


async def test_a_resumed_turn_keeps_its_narrow_permissions(provider: str, tmp_path: Path) -> None:
    """The permissions of a parked turn are read from its journal."""
    program = ask("Well?", then=WRITE)
    async with unasked_platform(provider, tmp_path) as started_platform, anyio.create_task_group() as tasks:
        turns: list[MessageAccepted] = []

        async def talk() -> None:
            async with started_platform.said("reader", program) as accepted:
                turns.append(accepted)

        tasks.start_soon(talk)
        with anyio.fail_after(60):
            while not turns:  # noqa: ASYNC110  the head of the answer tells it
                await anyio.sleep(0.05)
        await question_of(started_platform.running, turns[0])
        tasks.cancel_scope.cancel()
    async with unasked_platform(provider, tmp_path) as started_platform:
        await answer(
            started_platform.running.gateway, await question_of(started_platform.running, turns[0]), "Go on."
        )
        assert LEFT_OUT in await started_platform.results(turns[0])
        assert not started_platform.written.exists()


@pytest.mark.parametrize(("actor", "permitted"), [("owner", True), ("channel:cli", True), ("ann", False)])
async def test_a_message_of_an_earlier_version_has_no_permissions_field(
    started_platform: UnaskedPlatform, actor: str, permitted: bool
) -> None:
    """The owner's message is answered as before; for any other sender the permissions are unknown, so no call is
    permitted."""
    message = Message(id=new_id("msg"), role="user", content=WRITE)
    request = TurnRequested(
        turn=new_id("turn"),
        block="main",
        conversation=new_id("conv"),
        message=message,
        actor=actor,
        channel="x",
    )
    assert b"permissions" not in msgspec.json.encode(request)
    await started_platform.running.bus.append(INBOX, request, conversation=request.conversation)
    accepted = MessageAccepted(
        block="main", conversation=request.conversation, turn=request.turn, message_id=message.id
    )
    assert (LEFT_OUT not in await started_platform.results(accepted)) is permitted
    assert started_platform.written.exists() is permitted
