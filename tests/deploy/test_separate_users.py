"""Five workers, each under a user of its own with the shipped permissions, hold a conversation."""

import shlex
import sys
from pathlib import Path
from subprocess import STDOUT
from textwrap import dedent
from typing import Any

import anyio
import msgspec
import pytest

from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, Policy
from trunkline.contracts.tools.messages import CallTool, StoredResult, ToolOutcome, ToolReply
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL, DELEGATED_CALL_TOOL
from trunkline.contracts.turns.feed_messages import ApprovalSettled
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.testing.scripted_provider import ScriptedProvider
from trunkline.testing.tool_calls import call_tool
from trunkline_bus import Bus, BusError, Endpoint, RemoteFault, connect, new_id

from .installation import CHANNEL, Installation, as_user, installation

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

POSTBOX = f'''
"""A channel that hands in what lies in a file, and writes the answer beside it. Its owner allows what waits."""
import os
from pathlib import Path

import anyio
import trunkline
from trunkline.api.channel import Channel
from trunkline.api.gateway import SendMessage
from trunkline.contracts.turns.feed_messages import (TextDelta, TurnEnded)

HERE = Path(os.environ["TRUNKLINE_HOME"])


class Postbox(Channel):
    name = "{CHANNEL}"

    async def run(self, gateway):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.allow, gateway)
            await self.answer(gateway)

    async def allow(self, gateway):
        async for asked in gateway.approvals():
            if asked.reminded_at is not None and asked.settled is None:
                await gateway.decide(asked.turn, asked.call, asked.call_hash, allow=True, scope="always")

    async def answer(self, gateway):
        while not (HERE / "letter").exists():
            await anyio.sleep(0.05)
        accepted = await gateway.send(SendMessage(content=(HERE / "letter").read_text()))
        text = ""
        async for event in gateway.watch(accepted.conversation, accepted.turn):
            if isinstance(event, TextDelta):
                text += event.text
        (HERE / "answer.part").write_text(text)
        (HERE / "answer.part").rename(HERE / "answer")


@trunkline.hookimpl
def trunkline_channels():
    return [Postbox()]
'''


COMMANDS = (
    "say hello",
    "trace last",
    "blocks list",
    "memory search mole",
    "top --once",
    "dead-letters list",
    "replay last",
    "backup {home}/backup.tar",
    "doctor",
    "results list",
    "results show {result}",
)
"""What a person does under the operator's user."""


async def test_separate_users_serve_a_conversation_with_tools_and_memory(tmp_path: Path) -> None:
    """The conversation has a message, a tool call that a person allows from another channel after a reminder,
    memory, a body too large for a message, and another agent's call. The server denies nothing."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "postbox.py").write_text(dedent(POSTBOX))
    settings = {
        "runtime.tool_sources": [str(plugins)],
        "channels.enabled": [CHANNEL],
        "permissions.approvals": "some",
        "approvals.remind_after_share": 0.002,
        "tools.max_shown_result": 6_000,
    }
    async with installation(tmp_path, settings=settings) as running:
        written = await running.say('/tool memory_write path=notes/mole.md content="A mole digs at night."')
        conversation = written.accepted.conversation
        settled = [event.by for event in written.events if isinstance(event, ApprovalSettled)]
        assert settled == [f"channel:{CHANNEL}"]
        (grant,) = (await running.gateway.grants()).grants
        assert "mole.md" in grant.note
        asked = await running.say("What does a mole do?", conversation=conversation)
        assert "digs at night" in asked.text
        exported = await running.say("/tool memory_export", conversation=conversation)
        assert ".tar" in exported.text, exported.text
        large = await running.say("word " * 60_000, conversation=conversation)
        assert large.ended.code is None, large.ended
        view = await running.gateway.conversation(conversation)
        assert len(view.messages) >= 6
        (running.home / "letter").write_text("hello")
        with anyio.fail_after(60):
            while not (running.home / "answer").exists():  # noqa: ASYNC110 - another process writes it
                await anyio.sleep(0.05)
        assert (running.home / "answer").read_text()
        async with connect(as_user("delegate-external", running.server.url, running.passwords)) as bus:
            read = await delegated(bus, "memory_read", {"path": "notes/mole.md"})
            assert "digs at night" in read.output
            files = {"blocks/main/notes/long.md": "x" * 9_000}
            await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=(), actor="owner"))
            long = await delegated(bus, "memory_read", {"path": "notes/long.md"})
            assert isinstance(long.stored, StoredResult)
        for command in COMMANDS:
            words = command.format(home=running.home, result=long.stored.id).split()
            argv = [sys.executable, "-m", "trunkline.cli.main", *words]
            done = await anyio.run_process(argv, env=running.environ("operator"), check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        await monitor_tests_the_model(running)
        assert running.denied() == []
        await forged(running)


async def monitor_tests_the_model(running: Installation) -> None:
    """The operator cannot write the cost ledger, so ``trunkline init`` sends nothing to a model. The command that it
    names has the monitor ask, with the new settings, and the ledger has the request."""
    with ScriptedProvider() as provider:
        adapter = ("--adapter", "openai", "--base-url", provider.url, "--model", "tiny")
        status, said = await command(running, "init", "--yes", *adapter, "--test")
        assert status == 1 and "it was not asked: only a monitor may ask a model here" in said
        assert 'Restart the monitor, so that it takes the settings, and let it ask: trunkline say "' in said
        assert "Test: one message goes" not in said and not provider.requests
        running.processes["monitor"].kill()
        await running.launch("monitor", "monitor").ready()
        status, said = await command(running, *shlex.split(said.partition("let it ask: trunkline ")[2])[:2])
        assert status == 0 and len(provider.answer_requests) == 1, said
        status, said = await command(running, "costs", "--by", "model", "--json")
        assert status == 0 and '"openai/tiny"' in said


async def command(running: Installation, *words: str) -> tuple[int, str]:
    """Run a command under the operator's user, and return its status and what it prints, in one line."""
    argv = [sys.executable, "-m", "trunkline.cli.main", *words]
    done = await anyio.run_process(argv, env=running.environ("operator"), check=False, stderr=STDOUT)
    return done.returncode, " ".join(done.stdout.decode().split())


async def delegated(
    bus: Bus,
    name: str,
    arguments: dict[str, Any],
    agent: str = "external",
    block: str = "main",
    timeout: float = 60.0,
    **said: Any,
) -> ToolOutcome:
    """Make a call of an agent that the block is delegated to, with any claims about itself."""
    known: dict[str, Any] = {
        "call": new_id("call"),
        "block": block,
        "conversation": "conv_1",
        "turn": "turn_1",
        "actor": "owner",
    }
    request = CallTool(name=name, arguments=arguments, **(known | said))
    async with bus.call_streaming(
        DELEGATED_CALL_TOOL, request, idle_timeout=timeout, agent=agent, block=block
    ) as replies:
        async for reply in replies:
            if isinstance(reply, ToolOutcome):
                return reply
    raise AssertionError("there was no outcome")


async def forged(running: Installation) -> None:
    """An attacker controls the program that delegates a block. It can neither claim a person's approval of a call,
    nor use another call's approval, nor act as another agent, another block's or the block's own, nor see their
    results."""
    await running.bus.call(
        MEMORY_WRITE_MANY, WriteManyMemory(files=granted("conv_1"), gone=(), actor="owner")
    )
    mine = {"path": "notes/allowed.md", "content": "x"}
    async with connect(as_user("monitor", running.server.url, running.passwords)) as bus:
        assert (await call_tool(bus, "memory_write", mine)).status == "ok", "the yes is for this conversation"
        long = (await call_tool(bus, "memory_read", {"path": "notes/long.md"})).stored
        assert isinstance(long, StoredResult)
    async with connect(as_user("delegate-external", running.server.url, running.passwords)) as bus:
        claims: tuple[dict[str, Any], ...] = ({}, {"block": "main"}, {"forked_from": "conv_1"})
        for said in claims:
            assert (await delegated(bus, "memory_write", mine, **said)).status == "approval"
            assert (await delegated(bus, "read_result", {"id": long.id}, **said)).status == "error"
        asked = await delegated(bus, "memory_write", mine)
        with pytest.raises(RemoteFault, match="Only the monitor"):
            await delegated(bus, "memory_write", mine, call=asked.call, approved=asked.call_hash)
        for agent, block in (("external", "garden"), ("claude", "main")):
            with pytest.raises(BusError):
                await delegated(bus, "memory_write", mine, agent, block, timeout=2)
            assert any(f"delegated.{agent}.{block}.call" in line for line in running.denied())
        for endpoint in (CALL_TOOL, CALL_DECIDED_TOOL):
            with pytest.raises(BusError):
                await call_as_owner(bus, endpoint, mine)
            assert any(f'"{endpoint.subject.template}"' in line for line in running.denied())
    lines = [stored.data async for stored in running.bus.history(AUDIT)]
    theirs = [one for one in lines if one.conversation.startswith("delegated_")]
    assert {(one.actor, one.block) for one in theirs} == {("agent:external", "main")}


def granted(conversation: str) -> dict[str, str]:
    """A yes of the owner's to all writing into memory in one conversation, as a file."""
    policy = Policy(
        subject="block:main", resource="tool:memory_write", action="write", effect="allow",
        conditions=Conditions(conversation=conversation), created_by="owner",
    )  # fmt: skip
    return {"policies/yes.json": msgspec.json.encode(policy).decode()}


async def call_as_owner(bus: Bus, endpoint: Endpoint[CallTool, ToolReply], arguments: dict[str, Any]) -> None:
    request = CallTool(
        call=new_id("call"), name="memory_write", arguments=arguments, block="main", conversation="conv_1",
        turn="turn_1", actor="owner",
    )  # fmt: skip
    async with bus.call_streaming(endpoint, request, idle_timeout=2) as replies:
        _ = [reply async for reply in replies]


async def test_workers_find_streams_that_are_created_late_or_again(tmp_path: Path) -> None:
    """The cases are workers that start before the streams exist, a killed server, and a killed monitor: all recover.

    In-memory data of the server is created again by ``trunkline run streams``, which alone may do so.
    """
    kinds: tuple[WorkerKind, ...] = ("gateway", "monitor", "tools", "memory")
    async with installation(tmp_path, settings={}, workers=kinds, streams_last=True) as running:
        first = await running.say("/tool memory_write path=notes/newt.md content=wet")
        before = running.streams()
        running.server.kill()
        await running.server.start()
        again = await running.say(
            "/tool memory_read path=notes/newt.md", conversation=first.accepted.conversation
        )
        assert "wet" in again.text
        with anyio.fail_after(60):
            while set(running.streams()) != set(before):  # noqa: ASYNC110 - another process makes them
                await anyio.sleep(0.05)
        running.processes["monitor"].kill()
        sent = await running.send("hello", conversation=first.accepted.conversation)
        running.launch("monitor", "monitor")
        assert (await running.answer(sent)).ended.code is None
