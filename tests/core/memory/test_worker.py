"""The memory worker on a real bus: its endpoints, its events, its rules, and its refusals to start."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import trunkline
from trunkline.api.bus import Refusal
from trunkline.contracts.conversations.branch import FindBranches
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    FindConversation,
    ForkedFrom,
    ListConversations,
    LoadConversation,
    Message,
)
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.chunks import Remember
from trunkline.contracts.memory.files import (
    UNREADABLE,
    DeleteMemory,
    EditMemory,
    ListMemory,
    MoveMemory,
    ReadManyMemory,
    ReadMemory,
    WriteManyMemory,
    WriteMemory,
)
from trunkline.contracts.memory.history import BlameMemory, DiffMemory, MemoryHistory, RevertMemory
from trunkline.contracts.memory.initial_files import INITIAL_FILES
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.store import Change, MemoryRule
from trunkline.contracts.memory.subjects import (
    MEMORY_APPEND_CONVERSATION,
    MEMORY_BLAME,
    MEMORY_CHANGED,
    MEMORY_DELETE,
    MEMORY_DIFF,
    MEMORY_EDIT,
    MEMORY_EXPORT,
    MEMORY_FIND_BRANCHES,
    MEMORY_FIND_CONVERSATION,
    MEMORY_HISTORY,
    MEMORY_LIST,
    MEMORY_LIST_CONVERSATIONS,
    MEMORY_LOAD_CONVERSATION,
    MEMORY_MOVE,
    MEMORY_READ,
    MEMORY_READ_MANY,
    MEMORY_REMEMBER,
    MEMORY_REVERT,
    MEMORY_SEARCH,
    MEMORY_WRITE,
    MEMORY_WRITE_MANY,
)
from trunkline.contracts.memory.text_edit import read_text, update_text
from trunkline.contracts.memory.transfer import ExportMemory
from trunkline.contracts.workers.subjects import EXPORT_STORE
from trunkline.errors import ToolError, TrunklineError
from trunkline.plugins import Plugins
from trunkline.testing.platform import Platform, platform
from trunkline_bus import Bus, Endpoint, RemoteFault, Scope, new_id
from trunkline_git_store.store import GitMemoryStore

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def running(anyio_backend: str) -> AsyncIterator[Platform]:
    """One memory for the tests that write only below a folder or in a block of their own."""
    async with platform(workers=("memory",)) as found:
        yield found


@pytest.fixture
def bus(running: Platform) -> Bus:
    return running.bus


@pytest.fixture
def folder() -> str:
    """A folder that no other test uses. It does not exist yet."""
    return new_id().lower()


@pytest.fixture
async def garden(bus: Bus) -> AsyncIterator[str]:
    """The name of a block that no other test uses. It does not exist yet, and is deleted at the end."""
    block = new_id().lower()
    yield block
    if await block_memory(bus, block, "owner").list():
        await bus.call(MEMORY_DELETE, DeleteMemory(path=f"blocks/{block}", actor="owner"))


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Platform]:
    """A memory that no other test uses."""
    async with platform(tmp_path / "home", workers=("memory",)) as found:
        yield found


async def write(bus: Bus, path: str, content: str, **more: Any) -> str:
    """Write one file; returns the version."""
    request = WriteMemory(path=path, content=content, actor="agent", **more)
    return (await bus.call(MEMORY_WRITE, request)).version


async def test_every_endpoint_answers(bus: Bus, folder: str) -> None:
    """Write, read, edit, move, list, search, history and delete, as a caller on the bus sees them."""
    here, there = f"{folder}/a.md", f"{folder}/b/c.md"
    version = await write(bus, here, "one needle")
    file = await bus.call(MEMORY_READ, ReadMemory(path=here))
    assert file.content == "one needle"
    edited = await bus.call(MEMORY_EDIT, EditMemory(path=here, old="one", new="two", actor="agent"))
    assert edited.paths == (here,)
    assert (await bus.call(MEMORY_READ, ReadMemory(path=here, version=version))).content == "one needle"
    await bus.call(MEMORY_MOVE, MoveMemory(source=here, target=there, actor="agent"))
    listing = await bus.call(MEMORY_LIST, ListMemory(path=f"{folder}/b"))
    assert [entry.path for entry in listing.entries] == [there]
    hits = (await bus.call(MEMORY_SEARCH, SearchMemory(query="needle"))).hits
    assert [(hit.path, hit.content) for hit in hits] == [(there, "two needle")]
    changes = (await bus.call(MEMORY_HISTORY, MemoryHistory(path=here))).changes
    assert [change.previous for change in changes] == ["two needle", "one needle", None]
    blamed = await bus.call(MEMORY_BLAME, BlameMemory(path=there))
    assert [span.author for span in blamed.spans] == ["agent"]
    assert "+two needle" in (await bus.call(MEMORY_DIFF, DiffMemory(path=there, old=version))).text
    undone = await bus.call(MEMORY_REVERT, RevertMemory(path=there, actor="agent"))
    assert undone.paths == (there,)
    await bus.call(MEMORY_REVERT, RevertMemory(path=there, version=undone.version, actor="agent"))
    await bus.call(MEMORY_DELETE, DeleteMemory(path=f"{folder}/b", actor="agent"))
    with pytest.raises(RemoteFault) as fault:
        await bus.call(MEMORY_READ, ReadMemory(path=there))
    assert fault.value.code == "not_found"


async def test_many_files_at_once(bus: Bus, folder: str) -> None:
    """Several files in one commit; those that are absent are left out when read."""
    a, b, c = (f"{folder}/{name}.md" for name in "abc")
    changed = await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={a: "1", b: "2"}, actor="agent"))
    assert changed.paths == (a, b)
    files = (await bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=(b, f"{folder}/none.md", a)))).files
    assert [(file.path, file.content) for file in files] == [(b, "2"), (a, "1")]
    with pytest.raises(RemoteFault):
        await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={c: "1", "../d": "2"}, actor="agent"))
    assert (await bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=(c,)))).files == ()


async def test_many_files_change_together_or_not_at_all(bus: Bus, folder: str) -> None:
    """Writes, deletions and expectations are one commit; a hash that does not match refuses all of them."""
    a, b, c = (f"{folder}/{name}.md" for name in "abc")
    await bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files={a: "1", b: "2"}, actor="agent"))
    [one] = (await bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=(a,)))).files
    request = WriteManyMemory(files={c: "3"}, gone=(b,), expected={a: one.hash, c: ""}, actor="x")
    changed = await bus.call(MEMORY_WRITE_MANY, request)
    assert sorted(changed.paths) == [b, c]
    with pytest.raises(RemoteFault) as fault:  # c is there now
        await bus.call(MEMORY_WRITE_MANY, msgspec.structs.replace(request, gone=(a,)))
    assert fault.value.code == "write_conflict"
    paths = (a, b, c)
    left = (await bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=paths))).files
    assert [file.path for file in left] == [a, c]


async def test_a_binary_file_does_not_block_others(own: Platform) -> None:
    """A file that is not text is returned as unreadable, and the other files are returned with their content."""
    (own.home.memory / "bad.toml").write_bytes(b"\xff\xfe[[[")
    (own.home.memory / "good.toml").write_text("a = 1")
    files = (await own.bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=("bad.toml", "good.toml")))).files
    assert [(file.path, file.content) for file in files] == [("bad.toml", UNREADABLE), ("good.toml", "a = 1")]
    with pytest.raises(RemoteFault, match="invalid_path"):
        await own.bus.call(MEMORY_READ_MANY, ReadManyMemory(paths=("../bad.toml",)))


async def test_refusals_reach_the_caller_with_their_code(bus: Bus, folder: str) -> None:
    """Invalid path, not found and write conflict are faults with a sentence, and nothing changed."""
    for code, attempt in (
        ("invalid_path", bus.call(MEMORY_READ, ReadMemory(path="../x"))),
        ("not_found", bus.call(MEMORY_READ, ReadMemory(path=f"{folder}/x"))),
        ("write_conflict", write(bus, "AGENT.md", "x", expected="")),
    ):
        with pytest.raises(RemoteFault) as fault:
            await attempt
        assert fault.value.code == code
        assert fault.value.message.endswith((".", "decide."))


async def test_large_files_travel(bus: Bus, folder: str) -> None:
    """PA-T1 over the bus: more than 1 MB is written, read and found in history."""
    text = "line of text\n" * 150_000
    await write(bus, f"{folder}/large.md", text)
    assert (await bus.call(MEMORY_READ, ReadMemory(path=f"{folder}/large.md"), timeout=30)).content == text


async def test_conversations_over_the_bus(bus: Bus) -> None:
    """Append, load, list and find; the turn of the request is named in history."""
    messages = tuple(Message(id=f"m{number}", role="user", content=f"text {number}") for number in range(3))
    append = AppendConversation(
        block="main", conversation="c1", messages=messages, actor="gateway", turn="t1"
    )
    assert (await bus.call(MEMORY_APPEND_CONVERSATION, append)).count == 3
    load = LoadConversation(block="main", conversation="c1", after=1)
    assert (await bus.call(MEMORY_LOAD_CONVERSATION, load)).messages == messages[1:]
    page = await bus.call(MEMORY_LIST_CONVERSATIONS, ListConversations())
    assert [(one.id, one.message_count) for one in page.conversations] == [("c1", 3)]
    found = await bus.call(MEMORY_FIND_CONVERSATION, FindConversation(conversation="c1"))
    assert found.summary == page.conversations[0]


async def test_branches_are_found_by_what_conversations_share(bus: Bus, garden: str) -> None:
    """A conversation, its forks and their forks part where their messages differ, in the order of time; the same place
    is shown from each of them. Another block's conversation is never of the family, whatever its header says."""

    async def store(name: str, *messages: str, origin: str = "", block: str = garden) -> None:
        ids = [Message(id=id, turn=id, role="user", content=id, created_at=at(id)) for id in messages]
        forked = ForkedFrom(conversation=origin, turn="t", step=0) if origin else None
        append = AppendConversation(
            block=block, conversation=name, messages=tuple(ids), actor="gateway", forked_from=forked
        )
        await bus.call(MEMORY_APPEND_CONVERSATION, append)

    def at(id: str) -> datetime:
        return datetime(2026, 1, int(id[1:]), tzinfo=UTC)

    async def branches(name: str, block: str = garden) -> list[tuple[str, list[tuple[str, str]]]]:
        found = await bus.call(MEMORY_FIND_BRANCHES, FindBranches(block=block, conversation=name))
        return [
            (point.message, [(one.conversation, one.turn) for one in point.branches])
            for point in found.points
        ]

    await write(bus, f"blocks/{garden}/block.toml", "")
    await store("b1", "m1", "m2", "m3")
    assert await branches("b1") == [] == await branches("unknown")
    await store("b2", "m1", "m4", "m5", origin="b1")
    await store("b3", "m1", "m4", "m6", origin="b2")
    await store("b4", "m7", origin="b1")
    await store("b5", "m8", origin="b1", block="main")
    first, second = [("b1", "m1"), ("b4", "m7")], [("b1", "m2"), ("b2", "m4")]
    assert await branches("b1") == [("m1", first), ("m2", second)]
    assert await branches("b4") == [("m7", first)]
    assert await branches("b2") == [
        ("m1", [("b2", "m1"), ("b4", "m7")]),
        ("m4", second),
        ("m5", [("b2", "m5"), ("b3", "m6")]),
    ]
    assert (await branches("b3"))[1] == ("m4", [("b1", "m2"), ("b3", "m4")])
    assert await branches("b5", "main") == [] == await branches("b1", "main")
    await store("b6", "m1", "m9", origin="gone")
    await store("b7", "m1", "m10", origin="gone")
    assert await branches("b6") == [("m9", [("b6", "m9"), ("b7", "m10")])], (
        "the first is gone, its forks are not"
    )


async def test_changes_are_published(bus: Bus, folder: str) -> None:
    """MEMORY_CHANGED names paths, version and actor of each commit."""
    async with bus.listen(MEMORY_CHANGED) as changes:
        version = await write(bus, f"{folder}/a.md", "x")
        with anyio.fail_after(60):
            reported = await anext(changes)
    assert (reported.data.paths, reported.data.version, reported.data.actor) == (
        (f"{folder}/a.md",),
        version,
        "agent",
    )


async def test_the_scope_of_a_request_is_in_history(running: Platform, folder: str) -> None:
    """A tool's write names the conversation and turn it was made in."""
    memory = block_memory(running.bus, "main", "agent", Scope(conversation="conv_1", turn="turn_1"))
    await memory.write(f"{folder}/a.md", "x")
    head = await anyio.run_process(["git", "-C", str(running.home.memory), "log", "-1", "--format=%B"])
    assert head.stdout.decode().split("\n\n")[1].split("\n")[:3] == [
        "Actor: agent", "Conversation: conv_1", "Turn: turn_1",
    ]  # fmt: skip


async def test_an_export_is_stored_in_the_bucket(own: Platform) -> None:
    """The reply names the object, its size and the number of files."""
    await write(own.bus, "a.md", "x")
    done = await own.bus.call(MEMORY_EXPORT, ExportMemory(), timeout=60)
    data = await own.bus.objects(EXPORT_STORE).get(done.object)
    assert data is not None
    assert (len(data), done.files) == (done.size, len(INITIAL_FILES) + 2), "a.md, and the block"


class Rules:
    """A plugin with rules for memory."""

    def __init__(self, *rules: MemoryRule) -> None:
        self._rules = rules

    @trunkline.hookimpl
    def trunkline_memory_rules(self) -> tuple[MemoryRule, ...]:
        return self._rules


def redact(change: Change) -> Change:
    """Takes a word out of everything."""
    files = {path: data and data.replace(b"secret", b"[gone]") for path, data in change.files.items()}
    return Change(files, actor=change.actor, reason=change.reason, scope=change.scope)


def refuse(change: Change) -> Change:
    """Refuses one path, and breaks on another."""
    if "no.md" in change.files:
        raise Refusal("write_failure", "No.")
    if "broken.md" in change.files:
        raise ZeroDivisionError
    return change


def refuse_all(change: Change) -> Change:
    """Refuses everything."""
    raise Refusal("write_failure", "Nothing may be written.")


async def test_a_rule_that_refuses_all_does_not_stop_memory(tmp_path: Path) -> None:
    """Memory starts and is read; only changes are refused."""
    async with platform(tmp_path / "home", plugins=[Rules(refuse_all)], workers=("memory",)) as running:
        assert (await running.bus.call(MEMORY_READ, ReadMemory(path="AGENT.md"))).content
        with pytest.raises(RemoteFault, match="Nothing may be written"):
            await write(running.bus, "a.md", "x")


async def test_rules_see_every_change(tmp_path: Path) -> None:
    """Rules may change or refuse writes, edits, moves and messages; a failing rule refuses."""
    async with platform(tmp_path / "home", plugins=[Rules(redact, refuse)], workers=("memory",)) as running:
        bus = running.bus
        await write(bus, "a.md", "my secret")
        assert (await bus.call(MEMORY_READ, ReadMemory(path="a.md"))).content == "my [gone]"
        message = Message(id="m", role="user", content="my secret")
        for count in (1, 2):
            said = (message, Message(id=f"n{count}", role="user", content="secret too"))
            append = AppendConversation(block="main", conversation="c", messages=said, actor="gateway")
            await bus.call(MEMORY_APPEND_CONVERSATION, append)
        loaded = await bus.call(MEMORY_LOAD_CONVERSATION, LoadConversation(block="main", conversation="c"))
        assert [one.content for one in loaded.messages] == ["my [gone]", "[gone] too", "[gone] too"]
        for path in ("no.md", "broken.md"):
            with pytest.raises(RemoteFault) as fault:
                await write(bus, path, "x")
            assert fault.value.code == "write_failure"
            with pytest.raises(RemoteFault):
                await bus.call(MEMORY_MOVE, MoveMemory(source="a.md", target=path, actor="agent"))
        assert (await bus.call(MEMORY_READ, ReadMemory(path="a.md"))).content == "my [gone]"


class Ranked:
    """A plugin that ranks by path, backwards."""

    @trunkline.hookimpl
    def trunkline_rank(self, query: SearchMemory, hits: Any) -> Any:
        return sorted(hits, key=lambda hit: hit.path, reverse=True)


async def test_a_plugin_ranks_hits(tmp_path: Path) -> None:
    """The order that a plugin decides is the order that the caller gets."""
    async with platform(tmp_path / "home", plugins=[Ranked()], workers=("memory",)) as running:
        for path in ("b.md", "a.md", "c.md"):
            await write(running.bus, path, "zither")
        hits = (await running.bus.call(MEMORY_SEARCH, SearchMemory(query="zither"))).hits
        assert [hit.path for hit in hits] == ["c.md", "b.md", "a.md"]


class Elsewhere:
    """A plugin with a store of its own."""

    @trunkline.hookimpl
    def trunkline_memory_stores(self) -> list[GitMemoryStore]:
        class Marked(GitMemoryStore):
            async def export(self, target: Path, *, derived: bool = False) -> int:
                raise Refusal("write_failure", "This store exports nothing.")

        return [Marked()]


async def test_a_plugins_store_is_used_when_it_is_named(tmp_path: Path) -> None:
    """Only ``[memory] store`` puts another store in the place of the built-in one; an unknown name stops the start."""
    async with platform(tmp_path / "one", plugins=[Elsewhere()], workers=("memory",)) as running:
        assert (await running.bus.call(MEMORY_EXPORT, ExportMemory(), timeout=60)).files == len(
            INITIAL_FILES
        ) + 1
        offered = Plugins.load(running.config, extra=[Elsewhere()]).memory_stores()
    named = {"memory.store": next(owned.owner for owned in offered if "Elsewhere" in owned.owner)}
    async with platform(
        tmp_path / "one", plugins=[Elsewhere()], config=named, workers=("memory",)
    ) as running:
        with pytest.raises(RemoteFault, match="exports nothing"):
            await running.bus.call(MEMORY_EXPORT, ExportMemory(), timeout=60)
    with pytest.raises(TrunklineError, match="nobody is not installed"):
        async with platform(tmp_path / "two", config={"memory.store": "nobody"}, workers=("memory",)):
            pass


async def test_a_memory_that_cannot_start_stops_the_platform(tmp_path: Path) -> None:
    """ARCH-9: the sentence names the phase and the place."""
    (tmp_path / "home/memory").mkdir(parents=True)
    (tmp_path / "home/memory/.git").write_text("gitdir: elsewhere")
    with pytest.raises(TrunklineError, match=r"Memory cannot start \(version history\)"):
        async with platform(tmp_path / "home", workers=("memory",)):
            pass


@pytest.mark.parametrize("emptied", [False, True], ids=["never there", "deleted"])
async def test_no_request_creates_a_block_by_mistake(
    bus: Bus, folder: str, garden: str, emptied: bool
) -> None:
    """A write into a missing or deleted block is refused, and no folder of it is created."""
    if emptied:
        await write(bus, f"blocks/{garden}/block.toml", "")
        await write(bus, f"blocks/{garden}/a.md", "x")
        await bus.call(MEMORY_DELETE, DeleteMemory(path=f"blocks/{garden}", actor="owner"))
    await write(bus, f"{folder}/a.md", "x")
    said = Message(id="1", role="user", content="hi", created_at=datetime.now(UTC))
    late: list[tuple[Endpoint[Any, Any], Any]] = [
        (MEMORY_WRITE, WriteMemory(path=f"blocks/{garden}/a.md", content="x", actor="agent")),
        (
            MEMORY_WRITE_MANY,
            WriteManyMemory(files={f"{folder}/b.md": "x", f"blocks/{garden}/a/b.md": "x"}, actor="learner"),
        ),
        (MEMORY_MOVE, MoveMemory(source=f"{folder}/a.md", target=f"blocks/{garden}/a.md", actor="agent")),
        (MEMORY_REMEMBER, Remember(content="x", actor="learner", conversation_id="c", block=garden)),
        (
            MEMORY_APPEND_CONVERSATION,
            AppendConversation(block=garden, conversation="c", messages=(said,), actor="agent"),
        ),
    ]
    for endpoint, request in late:
        with pytest.raises(RemoteFault, match=f"no block called '{garden}'") as refused:
            await bus.call(endpoint, request)
        assert refused.value.code == "not_found", endpoint.name
    entries = (await bus.call(MEMORY_LIST, ListMemory(path="blocks"))).entries
    assert [entry.path for entry in entries] == ["blocks/main"]


async def test_client_paths_are_relative_to_the_block(bus: Bus, garden: str) -> None:
    """Paths are the block's own; those of the whole memory begin with a slash, both ways."""
    memory = block_memory(bus, garden, "agent")
    assert await memory.list() == ()
    with pytest.raises(ToolError, match=f"no block called '{garden}'"):
        await memory.write("plan.md", "thimble")
    assert await memory.list() == ()
    await write(bus, f"blocks/{garden}/block.toml", "")
    await memory.write("plan.md", "thimble")
    assert [entry.path for entry in await memory.list()] == ["block.toml", "plan.md"]
    assert {entry.path for entry in await memory.list("/")} >= {"/AGENT.md", "/blocks"}
    assert [hit.path for hit in (await memory.search("thimble")).hits] == ["plan.md"]
    found = await block_memory(bus, "main", "agent").search("thimble", path="/")
    assert [hit.path for hit in found.hits] == [f"/blocks/{garden}/plan.md"]
    for path in ("", "/", "."):
        with pytest.raises(ToolError):
            await memory.delete(path)


async def test_updates_at_the_same_time_lose_nothing(bus: Bus, folder: str) -> None:
    """``update_text`` reads again and calls the function again when another writer was faster."""
    memory, log = block_memory(bus, "main", "agent"), f"{folder}/log.md"
    assert await read_text(memory, log) == ""
    async with anyio.create_task_group() as tasks:
        for word in ("a", "b", "c"):
            tasks.start_soon(update_text, memory, log, lambda text, word=word: f"{text}{word}\n")
    assert sorted((await read_text(memory, log)).split()) == ["a", "b", "c"]
    before = await memory.history(log)
    assert await update_text(memory, log, str) == await read_text(memory, log)
    assert await memory.history(log) == before  # what stays as it is makes no commit


async def test_an_update_that_is_refused_is_not_tried_again(bus: Bus, folder: str) -> None:
    """A refusal without a concurrent write is returned at once, and the function's exception is raised."""
    memory = block_memory(bus, "main", "agent")
    calls: list[str] = []

    def edit(text: str) -> str:
        calls.append(text)
        return "x"

    with pytest.raises(ToolError):
        await update_text(memory, "../../outside.md", edit)
    assert calls == [""]
    with pytest.raises(ZeroDivisionError):
        await update_text(memory, f"{folder}/log.md", lambda text: str(1 / 0))
