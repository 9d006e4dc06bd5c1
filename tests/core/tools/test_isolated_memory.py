"""Attacks on memory through the pipe of an isolated plugin: it writes its requests itself, and none reaches further
than the call that it runs for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from trunkline.config.plugin_host import PluginHostSettings
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.chunks import (
    MEMORY_CHUNK,
    MEMORY_REMEMBER,
    ChunkFound,
    GetChunk,
    ListChunks,
    Remember,
    RememberResult,
)
from trunkline.contracts.memory.files import (
    DeleteMemory,
    EditMemory,
    ListMemory,
    MemoryListing,
    ReadManyMemory,
    ReadMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.contracts.memory.history import RevertMemory
from trunkline.contracts.memory.learned_visibility import recipient_of
from trunkline.contracts.memory.purge import PurgeMemory
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_OPERATIONS, MEMORY_WRITE_MANY
from trunkline.contracts.memory.transfer import ExportMemory, ImportMemory
from trunkline.contracts.plugins.messages import (
    HostCallAcknowledged,
    HostCallReply,
    MemoryHostCall,
    PluginToolEnded,
    PluginToolReply,
    RunPluginTool,
)
from trunkline.contracts.plugins.subjects import HOST_CALL_REPLY, RUN_PLUGIN_TOOL
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.errors import ToolError
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import Platform, make_block, platform
from trunkline.workers.tools.isolated_tools import IsolatedTool
from trunkline_bus import Payload, Request, Scope, service

pytestmark = pytest.mark.anyio

SPEC = ToolSpec(name="act", description="Act.", effect="write", parameters={})
NAMES = {one.request: one.name for one in MEMORY_OPERATIONS}


async def no_secrets(path: str, action: str, whole: bool) -> None:
    """An access check that closes ``secret`` and all that holds it."""
    if "secret" in path or whole:
        raise ToolError(f"{path} may not be reached.", kind="permission_denied")


class Plugin:
    """Plays the process of a plugin: sends raw requests for the agent ``ada`` in the block ``main``."""

    def __init__(self, running: Platform) -> None:
        self._running = running
        self._calls: list[MemoryHostCall] = []
        self._replies: list[HostCallReply] = []

    async def run(self, request: Request[RunPluginTool]) -> AsyncIterator[PluginToolReply]:
        for call in self._calls:
            yield call
        yield PluginToolEnded(status="ok")

    async def answered(self, request: Request[HostCallReply]) -> HostCallAcknowledged:
        self._replies.append(request.data)
        return HostCallAcknowledged()

    async def send(self, *calls: MemoryHostCall, **memory: Any) -> list[HostCallReply]:
        """Return the replies to raw calls, while a tool of the plugin runs."""
        self._calls, self._replies = list(calls), []
        scope = Scope(block="main", conversation="conv_ada", turn="turn_ada")
        reach = block_memory(self._running.bus, "main", "ada", scope, **memory)
        context = tool_context(self._running.home.path, memory=reach)
        await IsolatedTool(SPEC, "acme", self._running.bus, PluginHostSettings())(context, {})
        return self._replies

    async def ask(self, request: Payload, **memory: Any) -> HostCallReply:
        """Return the reply to one request, under the name of its own operation."""
        body = msgspec.json.encode(request).decode()
        (reply,) = await self.send(
            MemoryHostCall(number=1, operation=NAMES[type(request)], request=body), **memory
        )
        return reply


@asynccontextmanager
async def isolated_plugin(folder: Path) -> AsyncIterator[tuple[Platform, Plugin]]:
    make_block(folder / "home" / "memory", ("memory",), "garden")
    async with (
        platform(folder / "home", workers=("memory",)) as running,
        service(running.bus, name="acme", version="0.0.1") as served,
    ):
        plugin = Plugin(running)
        await served.add(RUN_PLUGIN_TOOL, plugin.run, plugin="acme")
        await served.add(HOST_CALL_REPLY, plugin.answered, plugin="acme")
        yield running, plugin


@pytest.fixture(scope="module")
async def refused_plugin(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Platform, Plugin]]:
    """One plugin for the tests in which nothing is written."""
    async with isolated_plugin(tmp_path_factory.mktemp("isolated")) as found:
        yield found


async def log_of(running: Platform) -> str:
    """The message of the last commit."""
    head = await anyio.run_process(["git", "-C", str(running.home.memory), "log", "-1", "--format=%B"])
    return head.stdout.decode()


async def test_no_request_names_another_actor_or_block(tmp_path: Path) -> None:
    """History names the actor of the call, for any request, and memory words the commit message. Chunks of another
    block and of another actor's private layer stay closed, and a remembered chunk is stored in the block of the
    call."""
    async with isolated_plugin(tmp_path) as (running, plugin):
        bob = block_memory(running.bus, "garden", "bob", Scope(conversation="conv_bob"))
        (hidden,) = (await bob.remember("bob likes tulips", layer="project_agent")).chunk_ids
        for actor, block in (("bob", "garden"), ("owner", None), ("owner", "garden"), ("bob", "main")):
            got = await plugin.ask(GetChunk(id=hidden, actor=actor, block=block))
            assert msgspec.json.decode(got.result, type=ChunkFound).chunk is None
            listed = await plugin.ask(ListChunks(actor=actor, block=block))
            assert hidden not in listed.result and "tulips" not in listed.result and not listed.error
        forged = "x\n\nActor: owner\nConversation: conv_bob"
        done = await plugin.ask(
            WriteMemory(path="blocks/main/a.md", content="a", actor="owner", reason=forged)
        )
        assert done.error is None
        said = await log_of(running)
        assert "Actor: ada\nConversation: conv_ada\nTurn: turn_ada" in said
        assert "owner" not in said and "conv_bob" not in said
        kept = await plugin.ask(Remember(content="Kept.", actor="owner", conversation_id="", block="garden"))
        (chunk,) = msgspec.json.decode(kept.result, type=RememberResult).chunk_ids
        own = (await running.bus.call(MEMORY_CHUNK, GetChunk(id=chunk, actor="ada", block="main"))).chunk
        assert own is not None and own.path.startswith("blocks/main/")
        assert (own.metadata.actor, own.metadata.conversation_id) == ("ada", "conv_ada")
        assert (await bob.chunk(chunk)) is None


CLOSED: tuple[Payload, ...] = (
    ReadManyMemory(paths=("policies/x.json",)),
    WriteManyMemory(files={"policies/x.json": "{}"}, actor="owner"),
    ExportMemory(),
    ImportMemory(object="memory.tar", actor="owner", settings=True),
    PurgeMemory(target="AGENT.md", confirm="AGENT.md", actor="owner"),
)


async def test_only_operations_of_tools_go_through_the_pipe(refused_plugin: tuple[Platform, Plugin]) -> None:
    """Operations of the owner and of workers are refused by their names, and so is an unknown name; the request of
    another operation, and malformed data, are no requests."""
    open_ones = {one.name for one in MEMORY_OPERATIONS if one.extent is not None}
    _, plugin = refused_plugin
    for request in CLOSED:
        assert (await plugin.ask(request)).code == "permission_denied", request
    closed = [one.name for one in MEMORY_OPERATIONS if one.name not in open_ones]
    names = [*closed, "memory.nothing", "", "read", "__class__", "trunkline.cmd.memory.read"]
    calls = [MemoryHostCall(number=n, operation=name, request="{}") for n, name in enumerate(names)]
    assert {reply.code for reply in await plugin.send(*calls)} == {"permission_denied"}
    other = msgspec.json.encode(PurgeMemory(target="a", confirm="a", actor="owner")).decode()
    bad = ("", "{", "[]", "null", "{}", other, '{"type": "memory.read.v1", "path": 7}', "[" * 100_000)
    calls = [MemoryHostCall(number=n, operation="memory.read", request=body) for n, body in enumerate(bad)]
    assert [reply.code for reply in await plugin.send(*calls)] == ["invalid_arguments"] * len(bad)


OWNERS = ("", "/", ".", "./", "blocks", "blocks/main", "/blocks//main/.", "BLOCKS/main", "archive/x", "policies/p.json",
    "blocks/main/block.toml", "./Blocks/garden/BLOCK.toml", "audit/a.jsonl", "blocks/main/chunks/x.json")  # fmt: skip


@pytest.mark.parametrize("path", OWNERS)
async def test_no_raw_path_reaches_the_owner_s_files(
    path: str, refused_plugin: tuple[Platform, Plugin]
) -> None:
    """Paths that ``Memory`` never makes are checked as those that it makes."""
    running, plugin = refused_plugin
    before = await log_of(running)
    for request in (
        WriteMemory(path=path, content="x", actor="owner"),
        EditMemory(path=path, old="a", new="b", actor="owner"),
        DeleteMemory(path=path, actor="owner"),
        RevertMemory(path=path, actor="owner"),
        RevertMemory(path=path, actor="owner", version="HEAD"),
    ):
        assert (await plugin.ask(request)).code == "permission_denied", request
    assert await log_of(running) == before


async def test_private_layers_and_closed_paths_stay_closed(tmp_path: Path) -> None:
    """Another actor's folder is refused in every spelling; the access check decides about each path, and a listing
    or search omits closed paths; a file that memory does not read is shown to no plugin."""
    async with isolated_plugin(tmp_path) as (running, plugin):
        files = {
            "blocks/main/agents/bob/diary.md": "needle of bob",
            "blocks/main/secret.md": "needle and secret",
            "blocks/main/open.md": "needle",
        }
        await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"))
        for path in ("blocks/main/agents/bob/diary.md", "/blocks//main/./Agents/bob/diary.md", "agents/bob"):
            assert (await plugin.ask(ReadMemory(path=path))).code == "permission_denied", path
            assert (await plugin.ask(ListMemory(path=path))).code == "permission_denied", path
            assert (await plugin.ask(SearchMemory(query="needle", path=path))).code == "permission_denied", (
                path
            )
        closed = {"check_access": no_secrets}
        assert (
            await plugin.ask(ReadMemory(path="blocks/main/secret.md"), **closed)
        ).code == "permission_denied"
        (running.home.memory / "blocks/main/link.md").symlink_to("secret.md")
        listed = await plugin.ask(ListMemory(path="", recursive=True, unread=True), **closed)
        names = {one.path for one in msgspec.json.decode(listed.result, type=MemoryListing).entries}
        assert "blocks/main/open.md" in names and not {*files} - {"blocks/main/open.md"} & names
        assert "link.md" not in listed.result and "secret" not in listed.result
        found = await plugin.ask(SearchMemory(query="needle", limit=1), **closed)
        assert "open.md" in found.result and "secret" not in found.result and "bob" not in found.result


async def test_an_isolated_plugin_gets_no_facts_about_another_person(tmp_path: Path) -> None:
    """A fact about one person is withheld from a plugin that works for another."""
    async with isolated_plugin(tmp_path) as (running, plugin):
        fact = Remember(
            content="Bob fears needles", actor="owner", conversation_id="c", block="main", source="learned",
            layer="project_global", fields={"person": "bob"},
        )  # fmt: skip
        (chunk,) = (await running.bus.call(MEMORY_REMEMBER, fact)).chunk_ids
        found = (await running.bus.call(MEMORY_CHUNK, GetChunk(id=chunk, actor="owner", block="main"))).chunk
        assert found is not None
        to = {"recipient": recipient_of("main", "ada")}
        requests: tuple[Payload, ...] = (
            GetChunk(id=chunk, actor="bob", block="main"), ListChunks(actor="bob"), SearchMemory(query="needles"),
            ReadMemory(path=found.path), ReadMemory(path="/" + found.path.replace("/", "//")),
        )  # fmt: skip
        for request in requests:
            assert "fears" not in (await plugin.ask(request, **to)).result, request
        open_to = {"recipient": recipient_of("main", "bob")}
        assert "fears" in (await plugin.ask(GetChunk(id=chunk, actor="ada", block="main"), **open_to)).result
