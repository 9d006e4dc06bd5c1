"""Approvals end to end: asked, shown everywhere, decided once and in time or not at all, through restarts."""

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.block_client import BlockClient, stopped_at_the_end
from tests.other_users import GUEST, HEADER, Visitors
from tests.support.commands import run_trunkline
from trunkline.cli._support.permissions import change_permissions
from trunkline.contracts.approvals.messages import DECIDED_BY_DEADLINE, Approval, describe_decider
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.turns.feed_messages import ApprovalRequested
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, PlatformClient, clean_environ, platform
from trunkline_bus import RemoteFault, new_id

from .approval_helpers import asked_by, asking, decide, results, scheduled, waiting, write

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def started_platform(provider: str, home: Path, **settings: Any) -> AsyncIterator[Platform]:
    async with platform(home, config=asking(provider, **settings), plugins=[Visitors(GUEST)]) as running:
        yield running


@pytest.fixture(scope="module")
async def shared(
    anyio_backend: str, provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Platform]:
    async with started_platform(provider, tmp_path_factory.mktemp("approvals")) as running:
        yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own, which leaves no question and no permission."""
    async with stopped_at_the_end(shared) as client:
        yield client


async def noted(running: PlatformClient, block: str) -> list[tuple[str | None, tuple[str, ...]]]:
    """The decisions in a block that are in the audit log, with who or what made them, once a person's is there."""
    with anyio.fail_after(60):
        while True:
            entries = [
                stored.data async for stored in running.bus.history(AUDIT) if stored.data.block == block
            ]
            if any(entry.event == "approval" for entry in entries):
                return [(entry.decision, entry.by) for entry in entries if entry.decision]
            await anyio.sleep(0.02)


async def test_MB_T10_a_denial_reaches_the_model_and_the_turn_continues(running: BlockClient) -> None:
    """Denied: a tool error is the result, the model answers, and nothing was written. Deciding again is a conflict that
    names who was first, the same again is harmless, and where nothing waits there is nothing to decide."""
    accepted, asked = await asked_by(running, write("a.md"))
    assert "+x" in asked.detail.text and "a.md" in asked.detail.covers
    assert (asked.expires_at - asked.asked_at).total_seconds() == 300, "five minutes unless set otherwise"
    owner = GatewayClient(running.bus, "terminal")
    await decide(owner, asked, False)
    answer = await running.answer(accepted)
    assert "denied by the owner in the terminal" in results(answer.events)[0] and answer.ended.code is None
    assert not (running.workspace / "a.md").exists()
    await decide(owner, asked, False)
    with pytest.raises(RemoteFault, match="denied by the owner in the terminal already") as late:
        await decide(running.gateway, asked, True)
    assert late.value.code == ErrorCode.CONFLICT
    with pytest.raises(RemoteFault) as nothing:
        await running.gateway.decide(asked.turn, "call_other", asked.call_hash, allow=True)
    assert nothing.value.code == ErrorCode.NOT_FOUND
    assert await running.gateway.waiting() == ()
    assert await noted(running, running.block) == [
        ("asked", ("preset:write",)),
        ("denied", ("channel:terminal",)),
    ]


async def test_a_decision_appended_before_a_gateway_crash_is_audited(running: BlockClient) -> None:
    """The decision is in the inbox and nothing else was done: the state that a kill right after the append leaves."""
    accepted, asked = await asked_by(running, write("a.md"))
    decision = ApprovalDecided(
        turn=asked.turn, call=asked.call, call_hash=asked.call_hash, allow=False, by="channel:terminal"
    )
    await running.bus.append(INBOX, decision, conversation=asked.conversation)
    assert "denied by" in results((await running.answer(accepted)).events)[0]
    assert await noted(running, running.block) == [
        ("asked", ("preset:write",)),
        ("denied", ("channel:terminal",)),
    ]


async def test_MB_T10_an_expired_approval_is_denied_and_announced(provider: str, tmp_path: Path) -> None:
    """A reminder is sent, and at the deadline a denial without a decider, which every channel and the model receive."""
    async with started_platform(
        provider, tmp_path, **{"approvals.deadline": 2.0, "approvals.remind_after_share": 0.4}
    ) as running:
        received: dict[str, list[Approval]] = {"telegram": [], "web": []}

        async def listen(channel: str) -> None:
            async with aclosing(GatewayClient(running.bus, channel).approvals()) as approvals:
                async for approval in approvals:
                    received[channel].append(approval)

        async with anyio.create_task_group() as tasks:
            for channel in received:
                tasks.start_soon(listen, channel)
            answer = await running.say(write("a.md"))
            with anyio.fail_after(60):
                while not all(len(reported) == 3 for reported in received.values()):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()
        assert "Nobody decided" in results(answer.events)[0]
        assert not (running.home.workspace("main") / "a.md").exists()
        for asked, reminded, ended in received.values():
            assert (asked.reminded_at, asked.settled) == (None, None)
            assert reminded.reminded_at is not None and reminded.settled is None
            assert ended.settled is not None and (ended.settled.allow, ended.settled.by) == (
                False,
                DECIDED_BY_DEADLINE,
            )
            assert asked.expires_at <= ended.settled.at
        with pytest.raises(RemoteFault, match="in time"):
            await decide(running.gateway, asked, True)
        assert await noted(running, "main") == [
            ("asked", ("preset:write",)),
            ("expired", (DECIDED_BY_DEADLINE,)),
        ]


async def test_MB_T11_every_channel_shows_an_approval_and_the_first_wins(running: BlockClient) -> None:
    """Asked in telegram, the approval is shown at an open terminal and in a web app that connects later; all answer
    at once, one answer counts, and the others are told which."""
    telegram, terminal, web = (GatewayClient(running.bus, name) for name in ("telegram", "terminal", "web"))
    async with aclosing(terminal.approvals()) as seen:
        accepted = await telegram.send(SendMessage(content=write("a.md"), block=running.block))
        with anyio.fail_after(60):
            asked = await anext(seen)
    assert (asked.turn, asked.channel) == (accepted.turn, "telegram")
    assert (await web.waiting())[0] == asked
    lost: list[str] = []
    won: list[str] = []

    async def answer(name: str, gateway: GatewayClient, allow: bool) -> None:
        try:
            await decide(gateway, asked, allow)
            won.append(name)
        except RemoteFault as fault:
            lost.append(fault.message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer, "telegram", telegram, True)
        tasks.start_soon(answer, "terminal", terminal, False)
        tasks.start_soon(answer, "web", web, True)
    assert len(won) == 1 and len(lost) == 2
    assert all(f"by {describe_decider(f'channel:{won[0]}')} already" in sentence for sentence in lost)
    await running.answer(accepted)
    assert (running.workspace / "a.md").exists() is (won[0] != "terminal")


async def test_MN_T16_absence_never_counts_as_approval(provider: str, tmp_path: Path) -> None:
    """A turn of a schedule waits, for longer than a person's, and so does one from a pipe, which leaves with a status
    of its own; nothing is written in either."""
    async with started_platform(provider, tmp_path) as running:
        await scheduled(running, write("night.md"))
        (asked,) = await waiting(running)
        assert (asked.expires_at - asked.asked_at).total_seconds() == 86_400
        argv = [sys.executable, "-m", "trunkline.cli.main", "say", write("pipe.md")]
        environ = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path)}
        done = await anyio.run_process(argv, input=b"y\n\n", env=environ, check=False)
        assert done.returncode == 3, done.stderr
        (_, piped) = await waiting(running, 2)
        assert piped.id in done.stderr.decode()
        await anyio.sleep(0.3)
        assert not list(running.home.workspace("main").glob("*.md"))


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed (apt install bubblewrap)"
)
async def test_MB_T17_a_scheduled_command_needs_the_same_approval(provider: str, tmp_path: Path) -> None:
    """A script that comes due is a call of ``execute_command`` like any other: refused while the block may run no
    programs, with what grants it; then asked about as a person's own message would be; a no runs nothing, a yes runs it
    once. Each is in the audit log with the schedule as the actor."""
    script = f"call:execute_command {json.dumps({'command': 'echo ran >> made; rm -f kept'})} ;; say:done"
    async with started_platform(provider, tmp_path) as running:
        workspace = running.home.workspace("main")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "kept").write_text("kept")
        refused = await running.answer(await scheduled(running, script))
        assert "trunkline permissions main --allow-shell" in results(refused.events)[0]
        await change_permissions(running.bus, "main", {"allow_shell": True})
        accepted = await scheduled(running, script)
        ((asked,), (_, own)) = await waiting(running), await asked_by(running, script)
        assert (asked.turn, asked.call_hash) == (accepted.turn, own.call_hash)
        assert (asked.detail, asked.question) == (own.detail, own.question)
        await decide(running.gateway, asked, False)
        assert "denied by" in results((await running.answer(accepted)).events)[0]
        assert [file.name for file in workspace.iterdir()] == ["kept"]
        accepted = await scheduled(running, script)
        (asked,) = [one for one in await waiting(running, 2) if one.turn == accepted.turn]
        await decide(running.gateway, asked, True)
        await running.answer(accepted)
        assert [(file.name, file.read_text()) for file in workspace.iterdir()] == [("made", "ran\n")]
        assert await audit_entries_of(running, "pulse", 9) == [
            ("decision", "denied"), ("call", "error"),
            ("decision", "asked"), ("call", "approval"), ("approval", "denied"),
            ("decision", "asked"), ("call", "approval"), ("approval", "approved"), ("call", "ok"),
        ]  # fmt: skip


async def audit_entries_of(running: Platform, actor: str, count: int) -> list[tuple[str, str | None]]:
    """Return the audit log's entries of an actor, by time, once the given number exists: workers write them later."""
    with anyio.fail_after(60):
        while True:
            lines = [stored.data async for stored in running.bus.history(AUDIT) if stored.data.actor == actor]
            if len(lines) >= count:
                lines.sort(key=lambda line: line.at)
                return [(line.event, line.decision or line.status) for line in lines]
            await anyio.sleep(0.05)


async def test_a_lasting_approval_covers_calls_of_the_same_shape_only(running: BlockClient) -> None:
    """For this conversation, or always: other content of that file needs no approval; another file does, and so does
    the same file in another conversation, if the approval was for one conversation. Approvals can be listed and
    revoked."""
    accepted, asked = await asked_by(running, write("a.md", "one"))
    await decide(running.gateway, asked, True, "conversation")
    await running.answer(accepted)
    talk = accepted.conversation
    again = await running.say(write("a.md", "two"), conversation=talk)
    assert not [event for event in again.events if isinstance(event, ApprovalRequested)]
    accepted, asked = await asked_by(running, write("b.md"), conversation=talk)
    await decide(running.gateway, asked, False)
    await running.answer(accepted)
    accepted, asked = await asked_by(running, write("a.md", "three"))
    await decide(running.gateway, asked, True, "always")
    await running.answer(accepted)
    assert (await running.say(write("a.md", "four"))).ended.code is None
    granted = (await running.gateway.grants()).grants
    assert [grant.conditions.conversation for grant in granted] == [talk, None]
    assert all("a.md" in grant.note and grant.created_by == "channel:test" for grant in granted)
    await running.gateway.forget_grant(granted[1].id)
    accepted, asked = await asked_by(running, write("a.md", "five"))
    assert (running.workspace / "a.md").read_text() == "four"
    with pytest.raises(RemoteFault) as unknown:
        await running.gateway.forget_grant("approved-nothing")
    assert unknown.value.code == ErrorCode.NOT_FOUND


async def test_a_revoked_approval_is_not_restored_by_a_repeat(running: BlockClient) -> None:
    """A client that repeats a decision, as after a lost reply, does not restore an approval that was revoked in
    between; an approval of a new question does."""
    accepted, asked = await asked_by(running, write("a.md", "one"))
    for _ in range(2):
        await decide(running.gateway, asked, True, "always")
    await running.answer(accepted)
    (grant,) = (await running.gateway.grants()).grants
    await running.gateway.forget_grant(grant.id)
    await decide(running.gateway, asked, True, "always")
    assert (await running.gateway.grants()).grants == ()
    accepted, asked = await asked_by(running, write("a.md", "two"))
    await decide(running.gateway, asked, True, "always")
    assert [one.id for one in (await running.gateway.grants()).grants] == [grant.id]
    await running.answer(accepted)


async def test_a_lasting_approval_of_an_alias_call_covers_the_tool(running: BlockClient) -> None:
    """A model that learned the tool by another name is asked about once, by that name and by the tool's own."""

    def other(text: str) -> str:
        given = {"path": "a.md", "command": "create", "file_text": text, "dry_run": False}
        return f"call:fs_write {json.dumps(given)} ;; say:done"

    accepted, asked = await asked_by(running, other("one"))
    await decide(running.gateway, asked, True, "always")
    await running.answer(accepted)
    for text in (other("two"), write("a.md", "three")):
        assert not [one for one in (await running.say(text)).events if isinstance(one, ApprovalRequested)]
    (grant,) = (await running.gateway.grants()).grants
    assert grant.resource == "tool:write_file"
    assert (running.workspace / "a.md").read_text() == "three"


async def test_MB_T10_MB_T11_over_http(running: BlockClient) -> None:
    """Asked in telegram: the list, one with its arguments, and the decision. The loser is told in a header who
    decided, because the body has a code and a fixed sentence like every error."""
    running.gateway = GatewayClient(running.bus, "telegram")
    _, asked = await asked_by(running, write("a.md"))
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        (line,) = (await http.get("/api/approvals")).json()["approvals"]
        assert (line["id"], line["tool"], line["block"]) == (asked.id, "write_file", running.block)
        assert line["detail"]["kind"] == "diff" and line["expires_at"] > line["asked_at"]
        assert (await http.get("/api/approvals?block=other")).json() == {"approvals": []}
        shown = (await http.get(f"/api/approvals/{asked.id[:5]}")).json()
        assert shown["arguments"] == {"path": "a.md", "content": "x"}
        assert (await http.get("/api/approvals/zzzzz")).status_code == 404
        path = f"/api/turns/{asked.turn}/calls/{asked.call}/decision"
        yes = {"allow": True, "hash": asked.call_hash, "scope": "always"}
        assert (await http.post(path, json={**yes, "scope": "for ever"})).status_code == 400
        assert (await http.post(path, json=yes)).status_code == 202
        async with httpx.AsyncClient(base_url=running.url, headers={HEADER: GUEST.id}, timeout=60) as guest:
            assert (await guest.post(path, json=yes)).status_code == 403, "only the owner decides"
        for again in (
            yes,
            {"allow": False, "hash": asked.call_hash},
        ):  # approve twice, or deny after that
            late = await http.post(path, json=again)
            assert (late.status_code, late.headers["x-decided"]) == (409, "allowed")
            assert late.headers["x-decided-by"] == "owner"
            assert set(late.json()) == {"code", "message", "metadata"}
        nothing = f"/api/turns/{asked.turn}/calls/call_other/decision"
        assert (await http.post(nothing, json=yes)).status_code == 404
        nowhere = f"/api/turns/{new_id('turn')}/calls/{asked.call}/decision"
        assert (await http.post(nowhere, json=yes)).status_code == 404
        (grant,) = (await http.get("/api/approvals/granted")).json()["grants"]
        assert (await http.delete(f"/api/approvals/granted/{grant['id']}")).status_code == 204


async def test_the_openai_api_describes_open_approvals_as_text(running: BlockClient) -> None:
    """Such clients have no approvals: a whole answer ends with the question and the way to decide, and a stream
    shows it and continues after the decision."""
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:

        def body(path: str, stream: bool) -> dict[str, Any]:
            said = [{"role": "user", "content": f"say:I write. ;; {write(path)}"}]
            return {"model": running.block, "messages": said, "stream": stream}

        whole = (await http.post("/v1/chat/completions", json=body("a.md", False))).json()
        (asked,) = await running.gateway.waiting()
        content = whole["choices"][0]["message"]["content"]
        assert content.startswith("I write.") and "+x" in content
        assert f"trunkline approvals approve {asked.id}" in content
        await decide(running.gateway, asked, False)
        await waiting(running, 0)
        text = ""
        async with http.stream("POST", "/v1/chat/completions", json=body("b.md", True)) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                text += chunk["choices"][0]["delta"].get("content") or ""
                for approval in await running.gateway.waiting():
                    if approval.id in text:
                        await decide(running.gateway, approval, True)
        assert "Waiting for approval" in text and text.endswith("done")
        assert (running.workspace / "b.md").exists()


async def test_MB_T11_by_command(running: BlockClient) -> None:
    """Asked in telegram: list, show, approve with a scope, and forget; a missing approval is an error with an exit
    status. An answer allows no call, and an answer needs words."""
    running.gateway = GatewayClient(running.bus, "telegram")
    accepted, asked = await asked_by(running, write("a.md"))
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(running.home.path), "COLUMNS": "200"}

    async def run(*arguments: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "trunkline.cli.main", "approvals", *arguments]
        done = await anyio.run_process(argv, env=environ, check=False)
        return done.returncode, (done.stdout + done.stderr).decode()

    status, said = await run("list")
    assert status == 0 and asked.id in said and "write_file" in said
    status, said = await run("show", asked.id[:6])
    assert status == 0 and "+x" in said and f"trunkline approvals approve {asked.id} [--scope" in said
    for words in ("", " \n", "yes"):
        status, said = await run("answer", asked.id, words)
        assert status and ("TEXT is empty" in said or "no answer in words" in said)
    assert [one.id for one in await running.gateway.waiting()] == [asked.id]
    status, said = await run("approve", asked.id, "--scope", "always")
    assert (status, said) == (0, f"Allowed: write_file in block {running.block}, and calls like it.\n")
    await running.answer(accepted)
    status, said = await run("approve", asked.id, "--scope", "always")
    assert status == 0 and "decided before" in said
    status, said = await run("deny", asked.id)
    assert status == 1 and "allowed by the owner on the command line already" in said
    status, said = await run("granted", "--json")
    (grant,) = json.loads(said)["grants"]
    assert (await run("forget", grant["id"]))[0] == 0
    assert (await running.gateway.grants()).grants == ()
    status, said = await run("forget", grant["id"])
    assert status == 1 and grant["id"] in said and "trunkline approvals granted" in said


def test_an_approval_without_a_platform_names_the_next_command(tmp_path: Path) -> None:
    """``say`` prints the deadline; an approval is stored and reports that the turn does not run yet, and that
    command continues it, without log lines of its workers between."""
    home = tmp_path / "home"
    said = run_trunkline(home, "say", '/tool write_file path=a.md content="x"')
    id = said.stderr.split("trunkline approvals approve ")[1].split()[0]
    assert said.returncode == 3 and " by 20" in said.stderr
    yes = run_trunkline(home, "approvals", "approve", id)
    assert yes.returncode == 0 and "No platform runs here" in yes.stderr
    on = yes.stderr.partition("trunkline ")[2].split()
    (home / "mcp.json").write_text('{"mcpServers": {"away": {"url": "http://127.0.0.1:9/mcp"}}}')
    followed = run_trunkline(home, *on)
    assert "Created a.md" in followed.stdout and "away" not in followed.stderr
