"""Every call in the audit log has an end there, and a question that is no longer asked has a reason: the log has no
denial without a decider."""

import sys
from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

import trunkline
from tests.block_client import BlockClient, stopped_at_the_end
from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.testing.platform import Platform, platform
from trunkline_bus import RemoteFault

from .approval_helpers import ask, asked_by, asking, decide, question_of, write

pytestmark = pytest.mark.anyio


class Slow:
    """Tools that do not end by themselves."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.begun = anyio.Event()

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        @trunkline.tool(effect="send")
        async def post() -> str:
            """Post without end."""
            self.begun.set()
            await anyio.sleep_forever()
            return ""

        @trunkline.tool(effect="read")
        async def look() -> str:
            """Read without end."""
            self.begun.set()
            await anyio.sleep_forever()
            return ""

        return [post, look]


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, provider: str) -> AsyncIterator[tuple[Platform, Slow]]:
    slow = Slow()
    async with platform(config=asking(provider), plugins=[slow]) as running:
        yield running, slow


@pytest.fixture
def slow(shared: tuple[Platform, Slow]) -> Slow:
    """The tools, of which none has begun."""
    shared[1].forget()
    return shared[1]


@pytest.fixture
async def running(shared: tuple[Platform, Slow]) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own, which leaves no question."""
    async with stopped_at_the_end(shared[0]) as client:
        yield client


async def last_of(
    running: BlockClient, accepted: MessageAccepted, event: str, seconds: float = 30
) -> AuditEntry:
    """The last line of this kind about the turn, once it is one that says why."""
    with anyio.fail_after(seconds):
        while True:
            lines = [stored.data async for stored in running.bus.history(AUDIT)]
            ours = [line for line in lines if line.turn == accepted.turn and line.event == event]
            if ours and ours[-1].why:
                return ours[-1]
            await anyio.sleep(0.05)


@pytest.mark.parametrize(("tool", "ended"), [("post", "unknown"), ("look", "cancelled")])
async def test_a_call_that_is_cancelled_has_its_end(
    running: BlockClient, slow: Slow, tool: str, ended: str
) -> None:
    """The outcome of a cancelled call with an effect is unknown; one without an effect did not fail."""
    await running.gateway.change_block(running.block, {"permissions.approvals": "none"})
    accepted = await running.send(f"call:{tool} {{}} ;; quote")
    await slow.begun.wait()
    await running.gateway.cancel(accepted.turn)
    await running.answer(accepted)
    last = await last_of(running, accepted, "call")
    assert (last.tool, last.status, last.why) == (tool, ended, "cancelled by channel:test.")


async def run(running: BlockClient, *words: str) -> str:
    """Return the output of ``trunkline approvals``, errors included."""
    command = [sys.executable, "-m", "trunkline.cli.main", "approvals", *words]
    environ = {"TRUNKLINE_HOME": str(running.home.path), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    done = await anyio.run_process(command, env=environ, check=False)
    return (done.stdout + done.stderr).decode()


async def test_a_question_of_a_cancelled_turn_is_withdrawn(running: BlockClient) -> None:
    """A late decision gets the answer that the turn was cancelled and by whom, and so do the lists; the log has the
    end of the call. A decision in time is reported as decided, even if the turn is cancelled afterwards."""
    for program in (write("a.md"), ask("Which?")):
        accepted, asked = await asked_by(running, program)
        await running.gateway.cancel(accepted.turn)
        await running.answer(accepted)
        with pytest.raises(
            RemoteFault, match="withdrawn, because the turn was cancelled by the owner in test"
        ):
            await decide(running.gateway, asked, False)
        line = await last_of(running, accepted, "approval")
        assert (line.decision, line.by, line.call) == ("withdrawn", ("channel:test",), asked.call)
        shown = await run(running, "show", asked.id)
        assert "Withdrawn, because the turn was cancelled by the owner in test" in shown
        assert "withdrawn: the turn was cancelled" in await run(running, "list", "--settled")
        assert "the turn was cancelled by the owner in test" in await run(running, "deny", asked.id)
        path = f"/api/turns/{asked.turn}/calls/{asked.call}/decision"
        headers = {"authorization": f"Bearer {running.token}"}
        async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
            late = await http.post(path, json={"allow": False, "hash": asked.call_hash})
            assert (late.status_code, late.headers["x-withdrawn"]) == (409, "cancelled")
    accepted, asked = await asked_by(running, write("b.md"))
    await decide(running.gateway, asked, False)
    await running.answer(accepted)
    with pytest.raises(RemoteFault, match=r"denied by .* already"):
        await decide(running.gateway, asked, True)


async def test_a_question_of_a_stopped_block_is_withdrawn(running: BlockClient) -> None:
    """The reason is the stopped block, and not a cancelled turn."""
    accepted = await running.send(write("a.md"))
    asked = await question_of(running, accepted)
    await running.gateway.stop_block(running.block)
    with pytest.raises(RemoteFault, match="withdrawn, because the block was stopped by the owner in test"):
        await decide(running.gateway, asked, True)
    assert "block was stopped" in (await last_of(running, accepted, "approval")).why
