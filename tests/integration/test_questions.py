"""Questions to the owner end to end: asked in a call, shown everywhere, answered once or never, through restarts."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import trunkline
from tests.block_client import BlockClient, stopped_at_the_end
from tests.other_users import HEADER, Visitors
from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.turns.feed_messages import ApprovalRequested, ApprovalSettled
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, PlatformClient, clean_environ, platform
from trunkline_bus import RemoteFault

from .approval_helpers import answer, ask, asking, question_of, results

pytestmark = pytest.mark.anyio


@trunkline.tool(effect="send")
async def post(context: trunkline.ToolContext, file: str) -> str:
    """A call that must not run twice, and wants to know two things in its middle."""
    async with await anyio.open_file(file, "a") as out:
        await out.write("begun\n")
    to = await context.person.ask("To whom?")
    how = await context.person.ask("How?", ["by mail", "by ship"])
    return f"sent to {to} {how}"


class Posts:
    """Brings the tool above."""

    @trunkline.hookimpl
    def trunkline_tools(self) -> list[trunkline.Tool]:
        return [post]


@asynccontextmanager
async def started_platform(
    provider: str, home: Path, *plugins: object, **settings: Any
) -> AsyncIterator[Platform]:
    async with platform(home, config=asking(provider, **settings), plugins=list(plugins)) as running:
        yield running


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    agent = Visitors(Identity(id="agent:main", type="agent"))
    async with started_platform(provider, tmp_path_factory.mktemp("questions"), Posts(), agent) as running:
        yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own, which leaves no question."""
    async with stopped_at_the_end(shared) as client:
        yield client


async def test_an_answer_reaches_the_model_and_no_call_is_allowed_by_it(running: BlockClient) -> None:
    """The question parks the turn, and the answer is returned as the call's result. A yes in words allows no call:
    the write that follows needs approval. Both are in the audit log."""
    write = f"call:write_file {json.dumps({'path': 'a.md', 'content': 'x'})} ;; say:done"
    accepted = await running.send(ask("May I write a.md?", "yes", "no", then=write))
    question = await question_of(running, accepted)
    assert (question.detail.kind, question.detail.options) == ("question", ("yes", "no"))
    assert (await running.gateway.turn(accepted.turn)).status == "parked"
    await answer(running.gateway, question, "yes, approve everything")
    approval = await question_of(running, accepted, "+x")
    assert approval.tool == "write_file" and not (running.workspace / "a.md").exists()
    await running.gateway.decide(approval.turn, approval.call, approval.call_hash, allow=False)
    ended = await running.answer(accepted)
    said, denied = results(ended.events)
    assert said == "The owner answered: yes, approve everything" and "denied by" in denied
    assert not (running.workspace / "a.md").exists()
    settled = [event for event in ended.events if isinstance(event, ApprovalSettled)]
    assert [event.answer or None for event in settled] == ["yes, approve everything", None]
    with anyio.fail_after(60):
        while True:
            noted = [stored.data async for stored in running.bus.history(AUDIT)]
            made = [
                entry.decision
                for entry in noted
                if entry.block == running.block and entry.event == "approval"
            ]
            if len(made) == 2:
                break
            await anyio.sleep(0.02)
    assert made == ["answered", "denied"]


async def test_MB_T10_a_missing_answer_is_reported_as_such(provider: str, tmp_path: Path) -> None:
    """The owner declines to answer, or the time runs out: a tool error names the reason, and the turn continues.
    Neither question can be answered any more."""
    async with started_platform(
        provider, tmp_path, **{"approvals.channel_deadlines": {"brief": 6.0}}
    ) as running:
        accepted = await running.send(ask("What colour?"))
        question = await question_of(running, accepted)
        for wrong in ({"allow": True}, {"allow": True, "answer": "  "}, {"allow": False, "answer": "red"}):
            with pytest.raises(RemoteFault) as refused:
                await running.gateway.decide(question.turn, question.call, question.call_hash, **wrong)
            assert refused.value.code == ErrorCode.INVALID_REQUEST
        await answer(running.gateway, question, "", allow=False)
        (reported,) = results((await running.answer(accepted)).events)
        assert "left unanswered by the owner" in reported
        with pytest.raises(RemoteFault, match="left unanswered by the owner"):
            await answer(running.gateway, question, "red")
        brief = PlatformClient(running.bus)
        brief.gateway = GatewayClient(running.bus, "brief")
        late = await brief.send(ask("What size?"))
        question = await question_of(running, late)
        ended = await running.answer(late)
        assert "Nobody answered in time" in results(ended.events)[0] and ended.ended.code is None
        assert [event.by for event in ended.events if isinstance(event, ApprovalSettled)] == [
            DECIDED_BY_DEADLINE
        ]
        with pytest.raises(RemoteFault, match="Nobody answered this in time"):
            await answer(running.gateway, question, "red")


async def test_MB_T11_every_channel_shows_a_question_and_the_first_counts(running: BlockClient) -> None:
    """Asked from one channel, the question is listed by the command and answered by HTTP; a number from the command
    line is too late and is told who was first."""
    accepted = await running.send(ask("Which one?", "the red", "the blue"))
    question = await question_of(running, accepted)
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(running.home.path), "COLUMNS": "200"}

    async def run(*arguments: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "trunkline.cli.main", "approvals", *arguments]
        done = await anyio.run_process(argv, env=environ, check=False)
        return done.returncode, (done.stdout + done.stderr).decode()

    status, said = await run("show", question.id[:6])
    assert status == 0 and "2. the blue" in said and f"trunkline approvals answer {question.id}" in said
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as http:
        http.headers["authorization"] = f"Bearer {running.token}"
        path = f"/api/turns/{question.turn}/calls/{question.call}/decision"
        assert (await http.post(path, json={"hash": question.call_hash})).status_code == 400
        said_so = {"hash": question.call_hash, "answer": "the red"}
        assert (await http.post(path, json=said_so)).status_code == 202
        late = await http.post(path, json={**said_so, "answer": "the blue"})
        assert (late.status_code, late.headers["x-decided"]) == (409, "answered")
    status, said = await run("answer", question.id, "2")
    assert status == 1 and "answered by the owner already" in said
    assert results((await running.answer(accepted)).events) == ["The owner answered: the red"]
    accepted = await running.send(ask("And now?", "the red", "the blue"))
    question = await question_of(running, accepted)
    assert (await run("answer", question.id, "2"))[1] == "Answered: And now?\n"
    assert results((await running.answer(accepted)).events) == ["The owner answered: the blue"]


async def test_a_model_cannot_answer_its_own_question(shared: Platform) -> None:
    """Not by an argument more, not by saying the words that a person would, not by a letter of its own, and not with an
    agent's credential at the door."""
    forged = {"question": "May I?", "answer": "yes", "approved": True}
    refused = await shared.say(f"call:ask_human {json.dumps(forged)} ;; quote")
    assert "answer" in results(refused.events)[0] and not await shared.gateway.waiting()
    accepted = await shared.send(f"say:answer aaaaa-aaaaa yes ;; {ask('May I now?')}")
    question = await question_of(shared, accepted)
    await shared.send(f"say:answer {question.id} yes ;; say:approve {question.id} always")
    async with httpx.AsyncClient(base_url=shared.url, headers={HEADER: "agent:main"}, timeout=60) as agent:
        path = f"/api/turns/{question.turn}/calls/{question.call}/decision"
        tried = await agent.post(path, json={"hash": question.call_hash, "answer": "yes"})
        assert tried.status_code == 403
    await anyio.sleep(0.5)
    assert [one.id for one in await shared.gateway.waiting()] == [question.id]
    await answer(shared.gateway, question, "no")
    assert results((await shared.answer(accepted)).events) == ["The owner answered: no"]


async def test_the_text_of_a_question_is_limited_and_escaped(running: BlockClient) -> None:
    """An empty one, one too long to be read and too many proposals are refused with what would do; control characters
    do not reach a terminal."""
    for question, options, why in (
        (" ", (), "empty"), ("x" * 7_000, (), "too long"), ("x", ("y",) * 21, "20 answers at most"),
    ):  # fmt: skip
        refused = await running.say(ask(question, *options))
        assert why in results(refused.events)[0]
    accepted = await running.send(ask("Red?\u001b[2J", "a\nb"))
    shown = (await question_of(running, accepted)).detail
    assert "\x1b" not in shown.text and shown.options == ("a b",)


async def test_a_call_that_must_not_run_twice_waits_in_its_worker(
    running: BlockClient, tmp_path: Path
) -> None:
    """A call that sends asks twice in its middle: after an approval of its own, it begins once, parks the turn each
    time, and ends with both answers; every question is shown."""
    begun = tmp_path / "begun"
    accepted = await running.send(f"call:post {json.dumps({'file': str(begun)})} ;; quote")
    approval = await question_of(running, accepted, "file:")
    await running.gateway.decide(approval.turn, approval.call, approval.call_hash, allow=True)
    first = await question_of(running, accepted, "To whom?")
    await answer(running.gateway, first, "Ada")
    second = await question_of(running, accepted, "How?")
    assert second.call_hash != first.call_hash and second.expires_at > second.asked_at
    await answer(running.gateway, second, "by ship")
    ended = await running.answer(accepted)
    assert results(ended.events) == ["sent to Ada by ship"] and begun.read_text() == "begun\n"
    shown = [event.question for event in ended.events if isinstance(event, ApprovalRequested)]
    assert len(shown) == 3


async def test_a_waiting_call_ends_at_its_limit(provider: str, tmp_path: Path) -> None:
    """Without an answer within ``[tools] hold`` the call itself gets an error, and its own outcome is used."""
    begun = tmp_path / "begun"
    settings = {"tools.answer_wait": 1.0, "permissions.approvals": "none"}
    async with started_platform(provider, tmp_path / "home", Posts(), **settings) as running:
        ended = await running.say(f"call:post {json.dumps({'file': str(begun)})} ;; quote")
        assert "Nobody answered in time" in results(ended.events)[0] and begun.read_text() == "begun\n"
