"""Approvals and questions while every process that could hold them is killed by SIGKILL, with the server."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.turns.feed_messages import TurnEnded
from trunkline.contracts.turns.journal_messages import ApprovalAsked, ApprovalRecorded
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.contracts.turns.subjects import INBOX, JOURNAL
from trunkline_bus import RemoteFault

from .approval_helpers import answer, ask, asking, decide, question_of, results, waiting, write
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

LOOK = '''
"""A tool that counts how often it ran."""
from pathlib import Path
import trunkline

@trunkline.tool(effect="read")
def look(file: str) -> str:
    """Look, and count it."""
    with Path(file).open("a") as out:
        out.write("look\\n")
    return "seen"

@trunkline.hookimpl
def trunkline_tools():
    return [look]
'''


HELD = '''
"""A call that must not run twice and asks in its middle: what it did is in a file."""
from pathlib import Path
import trunkline

@trunkline.tool(effect="send")
async def post(context: trunkline.ToolContext, file: str) -> str:
    """Post something."""
    with Path(file).open("a") as out:
        out.write("begun\\n")
    to = await context.person.ask("To whom?")
    with Path(file).open("a") as out:
        out.write(f"sent to {to}\\n")
    return f"sent to {to}"

@trunkline.hookimpl
def trunkline_tools():
    return [post]
'''


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    config = asking(provider, **{"approvals.channel_deadlines": {"brief": 8.0}})
    home = tmp_path_factory.mktemp("asked")
    async with process_platform(
        home, config=config, plugins={"look": LOOK, "post": HELD}, workers=ALL_WORKERS
    ) as running:
        yield running


async def asked_in(running: ProcessPlatform, *turns: MessageAccepted) -> int:
    """Return the number of questions asked in these turns."""
    ours = {accepted.turn for accepted in turns}
    asked = [
        entry
        async for stored in running.bus.history(JOURNAL)
        for entry in stored.data.entries
        if stored.keys["turn"] in ours and isinstance(entry, ApprovalAsked)
    ]
    return len(asked)


async def taken(running: ProcessPlatform, call: str) -> None:
    """Wait until a decision about the call is in the inbox, or in the journal."""
    with anyio.fail_after(60):
        while True:
            waits = [stored.data async for stored in running.bus.history(INBOX)]
            noted = [entry async for one in running.bus.history(JOURNAL) for entry in one.data.entries]
            if any(isinstance(one, ApprovalDecided) and one.call == call for one in waits):
                return
            if any(isinstance(one, ApprovalRecorded) and one.call_id == call for one in noted):
                return
            await anyio.sleep(0.02)


async def test_CC_T10_a_hundred_wait_through_a_kill_of_everything(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """A hundred turns are parked; every worker and the server are killed by SIGKILL and restarted. The same hundred
    wait, each can be decided, completed calls do not run again, a second decision is refused, and each turn ends as
    it was decided. A deadline that falls into the outage is kept as well."""
    looked = tmp_path / "looked"
    async with shared_platform(module_platform) as running:
        brief = GatewayClient(running.bus, "brief")
        look = f"call:look {json.dumps({'file': str(looked)})} ;; "
        turns = [await running.send(look + write(f"{n}.md")) for n in range(99)]
        await waiting(running, 99)
        ending = await brief.send(SendMessage(content=write("ending.md")))
        before = await waiting(running, 100)
        for name in (*running.processes, "nats"):
            running.kill(name)
        (soon,) = (asked.expires_at for asked in before if asked.turn == ending.turn)
        await anyio.sleep((soon - datetime.now(UTC)).total_seconds())
        await running.start_all(ALL_WORKERS)
        after = await waiting(running, 99)
        assert after == tuple(asked for asked in before if asked.turn != ending.turn)
        gave_up = await running.answer(ending)
        assert "Nobody decided" in results(gave_up.events)[0]
        for number, asked in enumerate(after):
            await decide(running.gateway, asked, number % 2 == 0)
        for accepted in turns:
            assert (await running.answer(accepted)).ended.code is None
        with pytest.raises(RemoteFault, match="already"):
            await decide(running.gateway, after[0], False)
        allowed = {asked.turn for asked in after[::2]}
        files = {file.name for file in running.home.workspace("main").glob("*.md")}
        assert files == {f"{n}.md" for n, accepted in enumerate(turns) if accepted.turn in allowed}
        assert looked.read_text().count("look") == 99
        assert await running.gateway.waiting() == ()
        assert await asked_in(running, ending, *turns) == 100, "nobody was asked twice"


async def test_questions_wait_through_a_kill_of_everything(module_platform: ProcessPlatform) -> None:
    """Ten questions are parked; every worker and the server are killed by SIGKILL and restarted: the same ten wait,
    none is asked twice, and each answer reaches its own turn."""
    async with shared_platform(module_platform) as running:
        turns = [await running.send(ask(f"Number {n}?")) for n in range(10)]
        before = [await question_of(running, accepted) for accepted in turns]
        for name in (*running.processes, "nats"):
            running.kill(name)
        await running.start_all(ALL_WORKERS)
        after = [await question_of(running, accepted) for accepted in turns]
        assert after == before
        for number, asked in enumerate(after):
            await answer(running.gateway, asked, f"answer {number}")
        for number, accepted in enumerate(turns):
            ended = await running.answer(accepted)
            assert isinstance(ended.events[-1], TurnEnded) and ended.ended.code is None
            assert results(ended.events) == [f"The owner answered: answer {number}"]
        assert await asked_in(running, *turns) == 10


async def test_a_tools_worker_killed_while_calls_are_waiting(
    module_platform: ProcessPlatform, tmp_path: Path
) -> None:
    """A question of ``ask_human``, an approval, and a question in the middle of a call that must not run twice are
    open when the tools worker is killed by SIGKILL: all three can still be answered. The answer arrives, the
    approved call has its effect once, and the interrupted call is reported as unknown and never started again."""
    begun = tmp_path / "begun"
    async with shared_platform(module_platform) as running:
        asking_human = await running.send(ask("What colour?"))
        appending = await running.send(
            f"call:append_to_file {json.dumps({'path': 'once.txt', 'content': 'once'})} ;; quote"
        )
        posting = await running.send(f"call:post {json.dumps({'file': str(begun)})} ;; quote")
        approval = await question_of(running, posting, "file:")
        await running.gateway.decide(approval.turn, approval.call, approval.call_hash, allow=True)
        held = await question_of(running, posting, "To whom?")
        colour, append = await question_of(running, asking_human), await question_of(running, appending)
        running.kill("tools")
        assert {one.id for one in await running.gateway.waiting()} == {colour.id, append.id, held.id}
        await running.restart("tools")
        await answer(running.gateway, colour, "red")
        await running.gateway.decide(append.turn, append.call, append.call_hash, allow=True)
        await answer(running.gateway, held, "Ada")
        assert results((await running.answer(asking_human)).events) == ["The owner answered: red"]
        await running.answer(appending)
        (reported,) = results((await running.answer(posting)).events)
        assert "unknown" in reported and begun.read_text() == "begun\n"
        assert (running.home.workspace("main") / "once.txt").read_text() == "once"
        assert await running.gateway.waiting() == ()


async def test_a_lasting_approval_survives_the_gateway_that_received_it(
    module_platform: ProcessPlatform,
) -> None:
    """Memory and then the gateway die by SIGKILL between a decision and the grant that it makes: the decision stands,
    and the client, which sends it again until it is answered, has the grant made. Once that was taken back, no repeat
    makes it again."""
    async with shared_platform(module_platform) as running:
        turn = await running.send(write("wide.md"))
        asked = await question_of(running, turn, "wide.md")
        running.kill("memory")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                decide, running.gateway, asked, True, "always"
            )  # it is sent again until it is answered
            await taken(running, asked.call)
            running.kill("gateway")
            for name in ("memory", "gateway"):
                await running.restart(name)
        (grant,) = (await running.gateway.grants()).grants
        assert (await running.answer(turn)).ended.code is None
        await running.gateway.forget_grant(grant.id)
        await decide(running.gateway, asked, True, "always")
        assert (await running.gateway.grants()).grants == ()
