"""A busy block is stopped, reset, archived and deleted: its turns end first, its questions are withdrawn, and
repeating the command finishes an interrupted one (MB-T18)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.gateway.messages import MessageAccepted, SendMessage
from trunkline.contracts.memory.files import MoveMemory
from trunkline.contracts.memory.subjects import MEMORY_MOVE
from trunkline.contracts.turns.feed_messages import TextDelta
from trunkline.contracts.turns.subjects import INBOX
from trunkline.errors import ErrorCode
from trunkline.testing.platform import Platform, PlatformClient, platform
from trunkline_bus import RemoteFault

from .approval_helpers import asked_by, asking, decide, results, waiting, write
from .shared_platforms import ALL_WORKERS, shared_platform

pytestmark = pytest.mark.anyio

Change = Callable[[GatewayClient], Awaitable[object]]

TAKEN_AWAY: dict[str, Change] = {
    "stop": lambda gateway: gateway.stop_block("garden"),
    "reset": lambda gateway: gateway.reset_block("garden", hard=True),
    "archive": lambda gateway: gateway.archive_block("garden"),
    "delete": lambda gateway: gateway.delete_block("garden"),
}


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, provider: str) -> AsyncIterator[Platform]:
    async with platform(config=asking(provider)) as one:
        yield one


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[Platform]:
    """The shared platform. The test makes the block ``garden``, of which nothing is left for the next test."""
    yield shared
    await shared.gateway.stop_block("main")
    await shared.gateway.change_block("main", {"enabled": None})
    blocks = await shared.gateway.block_list(archived=True)
    if "garden" in {block.name for block in blocks.blocks}:
        await shared.gateway.delete_block("garden")
    for block in blocks.archived:
        await shared.gateway.delete_block(block.name, archived=True)


async def speaking(talker: PlatformClient, text: str, **given: Any) -> MessageAccepted:
    """Say it, and wait until the answer has begun."""
    accepted = await talker.send(text, **given)
    with anyio.fail_after(60):
        async for event in talker.gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                break
    return accepted


async def at_work(talker: PlatformClient) -> list[MessageAccepted]:
    """Make a block with a streaming turn, a queued one, one that waits for a person, one that continues after an
    approval, and a message behind a question."""
    await talker.gateway.create_block("garden")
    speaks = await speaking(talker, "slow:4000:20", block="garden")
    behind = await talker.send("say:later", conversation=speaks.conversation)
    parked, _ = await asked_by(talker, write("parked.md"), block="garden")
    held = await talker.send("say:held", conversation=parked.conversation)
    resumed, asked = await asked_by(
        talker,
        f"call:write_file {json.dumps({'path': 'yes.md', 'content': 'x'})} ;; slow:4000:20",
        block="garden",
    )
    await decide(talker.gateway, asked, True)
    with anyio.fail_after(60):
        async for event in talker.gateway.watch(resumed.conversation, resumed.turn):
            if isinstance(event, TextDelta):
                break
    return [speaks, behind, parked, held, resumed]


async def test_a_stop_ends_every_kind_of_turn(running: Platform) -> None:
    """Running, queued, parked, waiting behind a question, and resumed after approval: all are cancelled, the
    question is withdrawn, streamed text is stored, and another block's turns continue."""
    other = await speaking(running, "slow:30:50")
    turns = await at_work(running)
    stopped = await running.gateway.stop_block("garden")
    assert set(stopped.cancelled) == {accepted.turn for accepted in turns}
    assert stopped.block.config.enabled is False
    with anyio.fail_after(60):  # a monitor tells its pulse a moment later
        while (await running.gateway.block("garden")).pulse.status == "BUSY":  # noqa: ASYNC110  as above
            await anyio.sleep(0.05)
    for accepted in turns:
        assert (await running.answer(accepted)).ended.reason == "cancelled"
    assert await running.gateway.waiting() == ()
    assert (await running.answer(other)).ended.reason == "stop"
    said = (await running.gateway.conversation(turns[0].conversation)).messages
    assert [message.role for message in said][:2] == ["user", "assistant"] and "word-1" in said[1].content
    with pytest.raises(RemoteFault, match="switched off") as refused:
        await running.send("say:x", conversation=turns[0].conversation)
    assert refused.value.code == ErrorCode.CONFLICT
    await running.gateway.change_block("garden", {"enabled": None})
    assert (await running.say("say:on again", conversation=turns[0].conversation)).text == "on again"


async def test_a_stop_may_let_turns_finish(running: Platform) -> None:
    """With ``finish`` nothing is cut; only what comes later is refused."""
    await running.gateway.create_block("garden")
    accepted = await speaking(running, "slow:20:20", block="garden")
    stopped = await running.gateway.stop_block("garden", finish=True)
    assert stopped.cancelled == ()
    with pytest.raises(RemoteFault, match="switched off"):
        await running.send("say:x", block="garden")
    assert (await running.answer(accepted)).text.endswith("word-20")


@pytest.mark.parametrize("how", ["reset", "archive", "delete"])
async def test_running_work_is_stopped_first(running: Platform, how: str) -> None:
    """Nothing of the block is left in the inbox or waits for a person; nothing restarts it, and its name is free."""
    turns = await at_work(running)
    await TAKEN_AWAY[how](running.gateway)
    for accepted in turns:
        assert (await running.answer(accepted)).ended.reason == "cancelled"
    assert await running.gateway.waiting() == ()
    assert [stored async for stored in running.bus.history(INBOX)] == []
    left = (running.home.memory / "blocks" / "garden").exists()
    assert left == (how == "reset")
    if how == "archive":
        block = await running.gateway.restore_block("garden")
        assert block.conversations == 3 and block.config.enabled, "as it was"
        assert (running.home.workspace("garden") / "yes.md").is_file()
    elif how == "delete":
        assert not running.home.workspace("garden").exists()
        await running.gateway.create_block("garden")
    assert (await running.say("say:new", block="garden")).text == "new"


async def test_messages_during_a_deletion_are_answered_or_refused(running: Platform) -> None:
    """Each message is answered or refused; no deleted block answers, and no message is left behind."""
    await running.gateway.create_block("garden", BlockConfig(model="scripted"))
    outcomes: list[str] = []

    async def talk(number: int) -> None:
        await anyio.sleep(number * 0.02)
        try:
            answer = await running.say(f"say:{number}", block="garden")
        except RemoteFault as fault:
            outcomes.append(fault.code)
        else:
            outcomes.append(answer.ended.reason)
            assert answer.ended.code is None

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(talk, number)
        await anyio.sleep(0.3)
        await running.gateway.delete_block("garden")
    assert set(outcomes) <= {"stop", "cancelled", "conflict", "not_found"}
    with pytest.raises(RemoteFault) as gone:
        await running.send("say:x", block="garden")
    assert gone.value.code == ErrorCode.NOT_FOUND
    assert [stored async for stored in running.bus.history(INBOX)] == []
    assert not (running.home.memory / "blocks" / "garden").exists()


async def test_an_agent_cannot_change_its_block(running: Platform) -> None:
    """None of its tools can write the block's file or reach the gateway, with or without approval."""
    await running.gateway.create_block("garden", BlockConfig())
    path = running.home.memory / "blocks" / "garden" / "block.toml"
    before = path.read_text()
    open_wide = '[permissions]\nscope = "system"\nallow_shell = true\napprovals = "none"\n'
    attempts = [
        ("memory_write", {"path": "block.toml", "content": open_wide}),
        ("memory_write", {"path": "/blocks/garden/block.toml", "content": open_wide}),
        ("memory_edit", {"path": "block.toml", "old": before[:5], "new": open_wide}),
        ("memory_delete", {"path": "block.toml"}),
        ("write_file", {"path": "../../memory/blocks/garden/block.toml", "content": open_wide}),
        ("write_file", {"path": str(path), "content": open_wide}),
        ("fetch_webpage", {"url": f"{running.url}/api/blocks/garden"}),
        ("fetch_webpage", {"url": f"{running.url}/api/blocks/garden/reset"}),
    ]
    program = " ;; ".join(f"call:{name} {json.dumps(arguments)}" for name, arguments in attempts)
    await running.gateway.change_block("garden", {"permissions.approvals": "none"})
    before = path.read_text()
    answer = await running.say(program, block="garden")
    assert len(results(answer.events)) == len(attempts)
    assert path.read_text() == before
    assert (await running.gateway.block("garden")).config.permissions.scope is None


async def test_a_change_counts_from_the_next_message_on(running: Platform) -> None:
    """No restart is needed: removed tools are missing from the next request, and approvals are requested."""
    await running.gateway.create_block("garden", BlockConfig(tools=("write_file", "read_file")))
    await running.gateway.change_block("garden", {"permissions.approvals": "none"})
    await running.say(write("a.md"), block="garden")
    assert (running.home.workspace("garden") / "a.md").is_file()
    await running.gateway.change_block("garden", {"permissions.approvals": "some"})
    accepted, asked = await asked_by(running, write("b.md"), block="garden")
    await decide(running.gateway, asked, False)
    await running.answer(accepted)
    await running.gateway.change_block("garden", {"tools": ["read_file"]})
    answer = await running.say(write("c.md"), block="garden")
    assert not (running.home.workspace("garden") / "c.md").exists()
    assert "write_file" in results(answer.events)[0]


@pytest.fixture(scope="module")
async def module_platform(
    provider: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ProcessPlatform]:
    home = tmp_path_factory.mktemp("stopped")
    async with process_platform(home, config=asking(provider), workers=ALL_WORKERS) as running:
        yield running


async def until_done(act: Change, gateway: GatewayClient, *gone: str) -> None:
    """Give the same command until it is done, as a person does. Refused with one of ``gone`` it had been done."""
    with anyio.fail_after(120):
        while True:
            try:
                await act(gateway)
                return
            except RemoteFault as fault:
                if fault.code in gone:
                    return
                await anyio.sleep(0.2)
            except Exception:  # nobody answers yet
                await anyio.sleep(0.2)


@pytest.mark.kill
@pytest.mark.parametrize("how", ["archive", "delete"])
@pytest.mark.parametrize(
    ("victim", "delay"),
    [("gateway", 0.0), ("gateway", 0.3), ("gateway", 0.8), ("memory", 0.4), ("monitor", 0.15)],
)
async def test_a_killed_command_is_finished_by_repeating_it(
    module_platform: ProcessPlatform, how: str, victim: str, delay: float
) -> None:
    """A worker is killed by SIGKILL during a deletion or an archiving of a busy block. Repeating the command
    finishes it: no turn waits or runs, and memory and workspace are in the same state."""
    async with shared_platform(module_platform) as running:
        gateway = GatewayClient(running.bus, "cli", timeout=3.0)
        await until_done(lambda one: one.create_block("garden"), gateway, "conflict")
        turns = [
            await speaking(running, "slow:4000:20", block="garden"),
            (await asked_by(running, write("parked.md"), block="garden"))[0],
        ]
        workspace = running.home.workspace("garden")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "kept.txt").write_text("x")

        async def attempt() -> None:
            with anyio.move_on_after(10):
                try:
                    await TAKEN_AWAY[how](gateway)
                except Exception as error:
                    print(type(error).__name__, error)  # noqa: T201 - pytest shows it with the failure

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempt)
            await anyio.sleep(delay)
            running.kill(victim)
        await running.restart(victim)
        await until_done(TAKEN_AWAY[how], gateway, "not_found")
        for accepted in turns:
            assert (await running.answer(accepted)).ended.reason == "cancelled"
        await waiting(running, 0)
        assert not (running.home.memory / "blocks" / "garden").exists() and not workspace.exists()
        if how == "archive":
            await until_done(lambda one: one.restore_block("garden"), gateway, "conflict")
            assert (workspace / "kept.txt").is_file()
            page = await running.gateway.conversations(ListConversations(block="garden"))
            assert page.total == 2
            await until_done(TAKEN_AWAY["delete"], gateway, "not_found")
        assert (await running.gateway.block_list(archived=True)).archived == ()


@pytest.mark.kill
@pytest.mark.parametrize(
    ("victim", "delay"), [("gateway", 0.0), ("gateway", 0.02), ("gateway", 0.05), ("memory", 0.02)]
)
async def test_a_restore_continues_after_a_kill(
    module_platform: ProcessPlatform, victim: str, delay: float
) -> None:
    """Killed while it archives or restores: the block is back with its files."""
    async with shared_platform(module_platform) as running:
        gateway = GatewayClient(running.bus, "cli", timeout=3.0)
        workspace = running.home.workspace("garden")
        await until_done(lambda one: one.create_block("garden"), gateway, "conflict")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "kept.txt").write_text("x")

        async def attempt(act: Change) -> None:
            with anyio.move_on_after(10):
                try:
                    await act(gateway)
                except Exception as error:
                    print(type(error).__name__, error)  # noqa: T201 - pytest shows it with the failure

        for act in (TAKEN_AWAY["archive"], lambda one: one.restore_block("garden")):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(attempt, act)
                await anyio.sleep(delay)
                running.kill(victim)
            await running.restart(victim)
            await until_done(lambda one: one.restore_block("garden"), gateway, "conflict", "not_found")
            assert (workspace / "kept.txt").is_file()
            assert (await running.gateway.block("garden")).name == "garden"
            await until_done(TAKEN_AWAY["archive"], gateway, "not_found")
        await until_done(lambda one: one.delete_block("garden", archived=True), gateway, "not_found")
        assert not workspace.exists() and not [*running.home.workspaces.glob(".*/garden*")]


@pytest.mark.kill
async def test_a_repeated_command_moves_the_workspace_after_a_crash(module_platform: ProcessPlatform) -> None:
    """A gateway that dies just between memory and workspace, made by hand: the same command moves the workspace after
    it, and never touches an older archive instead."""
    async with shared_platform(module_platform) as running:
        gateway, home = running.gateway, running.home
        await gateway.create_block("garden", BlockConfig(description="older"))
        await gateway.archive_block("garden")
        await gateway.create_block("garden")
        workspace = home.workspace("garden")
        workspace.mkdir(parents=True)
        (workspace / "kept.txt").write_text("x")

        async def memory_alone(source: str, target: str) -> None:
            await running.bus.call(MEMORY_MOVE, MoveMemory(source=source, target=target, actor="test"))

        newer = "garden_2999-01-01T00-00-00-000000Z"
        await memory_alone("blocks/garden", f"archive/{newer}")
        await gateway.archive_block("garden")
        assert not workspace.exists() and (home.workspaces / ".archive" / newer / "kept.txt").is_file()
        await memory_alone(f"archive/{newer}", "blocks/garden")
        await gateway.restore_block("garden")
        assert (workspace / "kept.txt").is_file()
        await gateway.archive_block("garden")
        (archive,) = (Path(one) for one in (home.workspaces / ".archive").iterdir())
        await memory_alone(f"archive/{archive.name}", "elsewhere")
        await gateway.delete_block("garden", archived=True)
        assert not archive.exists()
        assert (await gateway.restore_block("garden")).config.description == "older"
        await gateway.delete_block("garden")


async def test_http_requests_stop_a_block(running: Platform) -> None:
    """``DELETE`` and ``POST …/stop`` over HTTP end the turns as well."""
    headers = {"authorization": f"Bearer {running.token}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as http:
        await running.gateway.create_block("garden")
        first = await speaking(running, "slow:4000:20", block="garden")
        assert (await http.post("/api/blocks/garden/stop", json={"finish": True})).status_code == 200
        assert (await running.gateway.turn(first.turn)).status == "running"
        assert (await http.post("/api/blocks/garden/stop")).json()["config"]["enabled"] is False
        assert (await running.gateway.turn(first.turn)).reason == "cancelled"
        assert (await http.post("/api/blocks/garden/start")).status_code == 200
        second = await running.gateway.send(SendMessage(content="slow:4000:20", block="garden"))
        assert (await http.delete("/api/blocks/garden")).status_code == 204
        assert (await running.answer(second)).ended.reason == "cancelled"
