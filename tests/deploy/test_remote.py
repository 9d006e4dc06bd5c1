"""Another host's tools over a leaf node: a block's access to them, the remote's own rights, and the effects of a
broken line."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import anyio
import nats
import pytest
from nats.aio.client import Client

from tests.ports import free_port
from trunkline.config import load_config
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.tools.messages import ListTools
from trunkline.contracts.tools.subjects import REMOTE_LIST_TOOLS
from trunkline.home.paths import Home
from trunkline.runtime.leaf_node import run_leaf_node
from trunkline.runtime.remotes.certificates import AUTHORITY, ensure_leaf_certificate
from trunkline.runtime.remotes.enrolment import HUB, SEED
from trunkline.runtime.remotes.nkeys import new_key
from trunkline.runtime.remotes.registry import Remote, RemoteRegistry
from trunkline.testing.platform import Platform, clean_environ, platform
from trunkline.workers.tools.remote_worker import RemoteToolsWorker
from trunkline_bus import Bus, BusError, BusSettings, NoResponders

from .test_forbidden import published, subscribed
from .two_hosts import WORK, Order, needs_namespaces, run

pytestmark = pytest.mark.anyio


@dataclass
class Pair:
    """A hub and a remote in this process. ``leaf`` is the remote's own server, as an attacker in it reaches it."""

    hub: Platform
    remote: Path
    leaf: BusSettings
    stop: anyio.Event

    @property
    def registry(self) -> RemoteRegistry:
        return RemoteRegistry(self.hub.home.remotes)

    async def says(self, request: str, wanted: str, *, seconds: float = 60.0) -> None:
        """Ask until the answer holds the text."""
        with anyio.fail_after(seconds):
            while wanted not in (answer := await self.hub.say(f"/tool {request}")).text:
                print(answer.text[-300:])  # noqa: T201 - shown when it fails
                await anyio.sleep(0.1)


@asynccontextmanager
async def pair(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """A hub that has let ``laptop`` in for the block main, and the remote."""
    hub, remote = folder / "hub", folder / "remote"
    port = free_port()
    seed, key = new_key()
    ensure_leaf_certificate(hub / "remotes")
    RemoteRegistry(hub / "remotes").add(
        Remote(name="laptop", key=key, blocks=("main",), enrolled_at=datetime.now(UTC))
    )
    keep = remote / "hub"
    keep.mkdir(parents=True)
    (keep / SEED).write_text(seed)
    (keep / AUTHORITY).write_text((hub / "remotes" / AUTHORITY).read_text())
    (keep / HUB).write_text(f'name = "laptop"\nhost = "127.0.0.1"\nport = {port}\n')
    (folder / "tools").mkdir()
    (folder / "tools/work.py").write_text(dedent(WORK))
    monkeypatch.setenv("TRUNKLINE_HOME", str(remote))
    environ = {**clean_environ(), "TRUNKLINE_HOME": str(remote)}
    config = load_config(remote, flags={"runtime.tool_sources": [str(folder / "tools")]}, environ=environ)
    shown = {
        "monitor.discovery_threshold": 1_000
    }  # the remote's tools are as many again, and all are to be seen here
    async with platform(hub, config={"remotes.listen": f"127.0.0.1:{port}", **shown}) as running:
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            worker = await tasks.start(run_leaf_node, config, RemoteToolsWorker, stop)
            pair = Pair(running, Home.of(config).path, worker.context.bus.link.settings, stop)
            await pair.says("laptop__work key=hello seconds=0", "done hello")
            yield pair
            stop.set()


async def test_a_block_uses_a_remote_only_if_its_file_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that does not stand there neither sees the remote's tools nor can call them."""
    async with pair(tmp_path, monkeypatch) as running:
        file = running.registry.folder / "laptop.toml"
        file.write_text(file.read_text().replace('blocks = ["main"]', "blocks = []"))
        await running.says("laptop__work key=refused seconds=0", "whose tools the block main may not use")
        file.write_text(file.read_text().replace("blocks = []", 'blocks = ["main"]'))
        await running.says("laptop__work key=again seconds=0", "done again")
        effects = (running.remote / "effects").read_text()
        assert "refused" not in effects


async def test_policies_reach_the_tools_of_a_remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that the owner denies at the hub never reaches the remote."""
    async with pair(tmp_path, monkeypatch) as running:
        deny = (
            '{"subject": "block:main", "resource": "tool:remote:laptop:*", "action": "*", "effect": "deny"}'
        )
        request = WriteManyMemory(files={"policies/not-there.json": deny}, actor="owner")
        await running.hub.bus.call(MEMORY_WRITE_MANY, request)
        await running.says("laptop__work key=denied seconds=0", "was refused to the block main")
        assert "denied" not in (running.remote / "effects").read_text()


async def test_a_revoked_remote_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection ends, it is not admitted again, and its tools are gone, while the hub continues."""
    async with pair(tmp_path, monkeypatch) as running:
        running.registry.remove("laptop")
        await running.says("laptop__work key=late seconds=0", "There is no tool called 'laptop__work'")
        hub = running.hub.bus
        await _until_no_remote(hub)
        await anyio.sleep(2.5)  # it tries to come in again each second
        await _until_no_remote(hub)
        assert (await running.hub.say("hello")).ended.code is None


async def _until_no_remote(hub: Bus) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await hub.call(REMOTE_LIST_TOOLS, ListTools(block=""), timeout=0.5, remote="laptop")
            except NoResponders:
                return
            except BusError:
                pass
            await anyio.sleep(0.05)


ALLOWED_IN = ("trunkline.cmd.remote.laptop.", "trunkline.ctl.tools.", "_INBOX_remote-laptop.")
MARK = b"a mark"
ALLOWED_OUT = ("_INBOX.tools.", "_INBOX.operator.")


async def test_a_remote_can_only_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker that controls the remote, its own server included, reads and publishes nothing on other subjects.

    Each of some four hundred subjects is published on one side and subscribed to on the other, in both directions.
    """
    async with pair(tmp_path, monkeypatch) as running:
        hub, leaf = await _hub_client(running), await _client(running.leaf, "_INBOX_evil")
        subjects = sorted(
            {*published(), "_INBOX.tools.a.1", "_INBOX.monitor.a.1", "trunkline.cmd.remote.desk.call"}
        )
        assert len(subjects) > 200
        wide = [one for one in subscribed() if "*" in one or ">" in one]
        received_by_leaf = await _received(leaf, (*subjects, *wide))
        received_by_hub = await _received(hub, (*subjects, *wide))
        await _passed(hub, "trunkline.cmd.remote.laptop.call", received_by_leaf)
        await _passed(leaf, "_INBOX.tools.a.1", received_by_hub)
        await anyio.sleep(0.5)  # so that the servers have told each other of the others, too
        for subject in subjects:
            await hub.publish(subject, b"from hub")
            await leaf.publish(subject, b"from leaf", reply="trunkline.turn.inbox.forged")
        await _passed(hub, "trunkline.cmd.remote.laptop.call", received_by_leaf)
        await _passed(leaf, "_INBOX.tools.a.1", received_by_hub)
        got_in = {subject for subject, data in received_by_leaf if data == b"from hub"}
        got_out = {subject for subject, data in received_by_hub if data == b"from leaf"}
        assert "trunkline.cmd.remote.laptop.call" in got_in, "the attempt itself must reach something"
        assert "_INBOX.tools.a.1" in got_out, "the attempt itself must reach something"
        assert {one for one in got_in if not one.startswith(ALLOWED_IN)} == set()
        assert {one for one in got_out if not one.startswith(ALLOWED_OUT)} == set()
        answer = await leaf.request("$JS.API.INFO", b"", timeout=30.0)
        assert json.loads(answer.data)["domain"] == "laptop"
        await hub.close()
        await leaf.close()


async def _passed(client: Client, subject: str, received: list[tuple[str, bytes]]) -> None:
    """Publish a permitted message until it arrives; all earlier messages have arrived by then, or never do."""
    before = received.count((subject, MARK))
    with anyio.fail_after(60):
        while received.count((subject, MARK)) == before:
            await client.publish(subject, MARK)
            await client.flush()
            await anyio.sleep(0.05)


async def _received(client: Client, subjects: tuple[str, ...]) -> list[tuple[str, bytes]]:
    received: list[tuple[str, bytes]] = []

    async def note(message: nats.aio.msg.Msg) -> None:
        received.append((message.subject, message.data))

    for subject in subjects:
        await client.subscribe(subject, cb=note)
    await client.flush()
    return received


async def _hub_client(running: Pair) -> Client:
    return await _client(running.hub.instance.bus, "_INBOX_raw")


async def _client(settings: BusSettings, inbox: str) -> Client:
    return await nats.connect(
        settings.url, user=settings.user, password=settings.password, inbox_prefix=inbox
    )


@pytest.mark.kill
@pytest.mark.namespace
@needs_namespaces
async def test_outcomes_from_a_disconnection_arrive(tmp_path: Path) -> None:
    """Calls are running when the line breaks. Both sides are killed and restarted during the outage.

    A new call is told that the host is unreachable; other work continues. When the line is restored every result
    arrives, each call has run once, and the remote is used as before, without a new enrolment.
    """
    outcome = await run(Order(offline=8.0, calls=2), tmp_path, print)
    assert outcome.wrong == []
    assert outcome.answered == 2
    assert outcome.doubled == []
    assert "is unreachable" in outcome.reported
    assert "was not run" in outcome.reported
    assert outcome.afterwards == "done after"


@pytest.mark.kill
@pytest.mark.namespace
@needs_namespaces
async def test_waiting_for_a_disconnected_host_ends(tmp_path: Path) -> None:
    """The remote is killed in mid-call: when it is back, the call is reported as unknown and not run again."""
    from .two_hosts import hosts

    async with hosts(tmp_path) as both, both.talker() as talker:
        sent = await talker.send("/tool laptop__work key=cut seconds=30")
        await both.happened("begun cut")
        both.remote.end()
        await both.start_remote()
        answer = await talker.answer(sent)
        assert "unknown" in answer.text
        assert both.effects().count("begun cut") == 1
        assert "ended cut" not in both.effects()
