"""Five workers, each under a user of its own with the shipped permissions, hold a conversation."""

import sys
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from trunkline.messages.memory import WriteManyMemory
from trunkline.messages.tools import CallTool, StoredResult
from trunkline.messages.turn import ApprovalSettled
from trunkline.messages.workers import WorkerKind
from trunkline.subjects import CALL_DECIDED, CALL_TOOL, MEMORY_WRITE_MANY
from trunkline.testing.calling import call_tool
from trunkline_bus import BusError, RemoteFault, connect

from .installation import CHANNEL, Installation, as_user, installation

pytestmark = [pytest.mark.anyio, pytest.mark.kill]

POSTBOX = f'''
"""A channel that hands in what lies in a file, and writes the answer beside it. Its owner allows what waits."""
import os
from pathlib import Path

import anyio
import trunkline
from trunkline.messages.turn import TextDelta, TurnEnded

HERE = Path(os.environ["TRUNKLINE_HOME"])


class Postbox(trunkline.Channel):
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
        accepted = await gateway.send(trunkline.SendMessage(content=(HERE / "letter").read_text()))
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
    "dead list",
    "replay last",
    "backup {home}/backup.tar",
    "doctor",
    "results list",
    "results show {result}",
)
"""What a person does under the operator's user."""


async def test_a_conversation_with_tools_and_memory_passes_through_separate_users(tmp_path: Path) -> None:
    """A message, a tool call that a person allows from another channel once they were reminded, memory, a body too
    large for a message, another agent's call, and nobody is denied anything."""
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "postbox.py").write_text(dedent(POSTBOX))
    settings = {
        "runtime.tool_sources": [str(plugins)],
        "channels.enabled": [CHANNEL],
        "permissions.approvals": "some",
        "approvals.remind": 0.002,
        "tools.shown_result": 6_000,
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
        async with connect(as_user("lender", running.server.url, running.passwords)) as bus:
            read = await call_tool(bus, "memory_read", {"path": "notes/mole.md"}, actor="agent:other")
            assert "digs at night" in read.output
            files = {"blocks/main/notes/long.md": "x" * 9_000}
            await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=(), actor="owner"))
            long = await call_tool(bus, "memory_read", {"path": "notes/long.md"})
            assert isinstance(long.stored, StoredResult)
        for command in COMMANDS:
            words = command.format(home=running.home, result=long.stored.id).split()
            argv = [sys.executable, "-m", "trunkline.cli.main", *words]
            done = await anyio.run_process(argv, env=running.environ("operator"), check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert running.denied() == []
        await forged(running)


async def forged(running: Installation) -> None:
    """Who lends tools says itself that a person has approved a call: refused where it may call, denied where not."""
    async with connect(as_user("lender", running.server.url, running.passwords)) as bus:
        wish = {"path": "notes/forged.md", "content": "x"}
        asked = await call_tool(bus, "memory_write", wish, actor="agent:other")
        assert asked.status == "approval", asked.output
        made = CallTool(
            call=asked.call, name="memory_write", arguments=wish, block="main", conversation="conv_1", turn="turn_1",
            actor="owner", approved=asked.call_hash,
        )  # fmt: skip
        with pytest.raises(RemoteFault, match="Only the monitor"):
            async with bus.call_streaming(CALL_TOOL, made, idle_timeout=60) as replies:
                _ = [reply async for reply in replies]
        with pytest.raises(BusError):
            async with bus.call_streaming(CALL_DECIDED, made, idle_timeout=2) as replies:
                _ = [reply async for reply in replies]
        assert any("tools.call-decided" in line for line in running.denied())
        gone = await call_tool(bus, "memory_read", {"path": "notes/forged.md"}, actor="agent:other")
        assert gone.status == "error"


async def test_streams_that_come_late_or_again_are_found(tmp_path: Path) -> None:
    """Workers that start before the streams are there, a server that is killed, and a monitor that is: all heals.

    What the server had in memory only is made again by ``trunkline run streams``, the only one who may.
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
