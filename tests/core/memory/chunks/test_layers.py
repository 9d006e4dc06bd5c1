"""Layers: who reads and writes which chunks, over the bus (RLM-F20, F21, T14)."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.chunks import ListChunks, Remember
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_CHUNKS, MEMORY_REMEMBER, MEMORY_WRITE_MANY
from trunkline.errors import ToolError
from trunkline.testing.platform import Platform, make_block, platform
from trunkline_bus import RemoteFault, Scope, new_id

pytestmark = pytest.mark.anyio


class Blocks:
    """Two new blocks of a platform. ``block`` is the one that actors work in unless a test says ``garden``."""

    def __init__(self, running: Platform) -> None:
        self.bus, self.memory = running.bus, running.home.memory
        self.block, self.garden = new_id().lower(), new_id().lower()
        for block in (self.block, self.garden):
            make_block(self.memory, ("memory",), block)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    async with platform(tmp_path_factory.mktemp("layers"), workers=("memory",)) as found:
        yield found


@pytest.fixture
def running(shared: Platform) -> Blocks:
    """Blocks of the shared platform."""
    return Blocks(shared)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Blocks]:
    """Blocks of a platform of its own, for a test that writes what all blocks read."""
    async with platform(tmp_path / "home", workers=("memory",)) as found:
        yield Blocks(found)


def memory_of(running: Blocks, actor: str, block: str = "") -> Memory:
    """The memory that an actor's tools are given."""
    return block_memory(running.bus, block or running.block, actor, Scope(conversation=f"conv_{actor}"))


async def put(running: Blocks, files: dict[str, str]) -> None:
    """Write files as the owner does."""
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, actor="owner"))


async def test_rlm_t14_many_agents_at_once(running: Blocks) -> None:
    """RLM-T14: 12 agents put 75 chunks each at the same time: 900 valid ones, none torn, each in its own layer."""
    agents = [f"agent{number}" for number in range(12)]

    async def work(actor: str) -> None:
        memory = memory_of(running, actor)
        for number in range(75):
            await memory.remember(f"{actor} saw tree {number}", layer="project_agent", tags=[actor])

    async with anyio.create_task_group() as group:
        for actor in agents:
            group.start_soon(work, actor)
    for actor in agents:
        seen = await memory_of(running, actor).chunks(limit=1_000)
        assert len(seen) == 75
        assert {chunk.layer for chunk in seen} == {"project_agent"}
        assert {chunk.content for chunk in seen} == {f"{actor} saw tree {number}" for number in range(75)}
    assert len(list((running.memory / "blocks" / running.block / "agents").rglob("chunk-*.json"))) == 900


async def test_rlm_t14_a_private_layer_is_invisible_to_others(running: Blocks) -> None:
    """RLM-T14: another agent finds the chunk by no way that its tools have: neither chunks nor files."""
    ada, bob = memory_of(running, "ada"), memory_of(running, "bob")
    (chunk,) = (await ada.remember("Ada hides the zebra", layer="project_agent", tags=["zoo"])).chunk_ids
    held = await ada.chunk(chunk)
    assert held is not None
    path = f"/{held.path}"
    assert await bob.chunk(chunk) is None
    assert (await bob.recall("zebra")).chunks == ()
    assert await bob.chunks(tags=["zoo"]) == ()
    assert [hit.path for hit in (await ada.search("zebra", path="/")).hits] == [
        held.path.removeprefix(f"blocks/{running.block}/")
    ]
    assert (await bob.search("zebra", path="/")).hits == ()
    assert not [entry.path for entry in await bob.list("/", recursive=True) if "ada" in entry.path]
    for ask in (
        bob.linked(chunk),
        bob.forget(chunk),
        bob.revise(chunk, content="x"),
        bob.link(chunk, chunk, "supports"),
        bob.read(path),
        bob.read(path.replace("/agents", "//./agents")),
        bob.write(path, "x"),
        bob.edit(path, "A", "B"),
        bob.delete(path),
        bob.delete("agents"),
        bob.delete("agents/ada"),
        bob.list("agents"),
        bob.history(path),
        bob.history("agents/ada"),
    ):
        with pytest.raises(ToolError):
            await ask
    assert await ada.chunk(chunk) is not None


async def test_rlm_t14_the_global_layer_is_shared_within_its_block(running: Blocks) -> None:
    """RLM-T14: what one agent puts into the block's layer the others read; other blocks do not."""
    (chunk,) = (await memory_of(running, "ada").remember("The shed is green")).chunk_ids
    held = await memory_of(running, "bob").chunk(chunk)
    assert held is not None
    assert held.layer == "project_global"
    assert await memory_of(running, "bob", running.garden).chunk(chunk) is None


async def test_rlm_t14_the_agents_layer_counts_before_the_global_one(alone: Blocks) -> None:
    """RLM-T14: of the same id in two layers the more private one is read, and it is listed once."""
    chunk = "chunk-2026-05-04-0000000a"
    text = '{"id": "%s", "content": "The shed is %s", "type": "fact"}'
    await put(
        alone,
        {
            f"chunks/2026-05-04/{chunk}.json": text % (chunk, "blue"),
            f"blocks/{alone.block}/chunks/2026-05-04/{chunk}.json": text % (chunk, "green"),
            f"blocks/{alone.block}/agents/ada/chunks/2026-05-04/{chunk}.json": text % (chunk, "red"),
        },
    )
    seen = {
        who: [one.content for one in await memory_of(alone, who, block).chunks()]
        for who, block in (("ada", alone.block), ("bob", alone.block), ("eve", alone.garden))
    }
    assert seen == {"ada": ["The shed is red"], "bob": ["The shed is green"], "eve": ["The shed is blue"]}
    assert (await memory_of(alone, "ada").recall("shed")).answer == "The shed is red"


async def test_writing_the_owners_layer_needs_permission(alone: Blocks) -> None:
    """RLM-F21: an agent writes the layer that all blocks share only when the block's policy permits it; the owner
    may."""
    ada = memory_of(alone, "ada")
    with pytest.raises(ToolError, match="user_global"):
        await ada.remember("The owner is Ada", layer="user_global")
    request = Remember(content="The owner is Ada", actor="owner", conversation_id="c", layer="user_global")
    (chunk,) = (await alone.bus.call(MEMORY_REMEMBER, request)).chunk_ids
    assert await memory_of(alone, "eve", alone.garden).chunk(chunk) is not None
    with pytest.raises(ToolError, match="user_global"):
        await ada.forget(chunk)
    await put(
        alone,
        {
            f"blocks/{alone.block}/block.toml": "[memory]\nallow_user_global_write = true\n",
        },
    )
    assert (await ada.remember("The owner likes tea", layer="user_global")).success
    await ada.forget(chunk)


async def test_a_policy_applies_from_the_next_request(running: Blocks) -> None:
    """RLM-F21: layers that may not be read or written are not; a policy that cannot be read closes all of them."""
    ada = memory_of(running, "ada")
    await ada.remember("The shed is green")
    await ada.remember("Ada hides it", layer="project_agent")
    block = f"blocks/{running.block}/block.toml"
    await put(
        running, {block: '[memory]\nread_layers = ["project_agent"]\nwrite_layers = ["project_agent"]\n'}
    )
    assert [one.content for one in await ada.chunks()] == ["Ada hides it"]
    assert (await ada.remember("more")).success
    with pytest.raises(ToolError, match="project_global"):
        await ada.remember("more", layer="project_global")
    await put(running, {block: "[memory]\nenabled = false\n"})
    assert await ada.chunks() == ()
    with pytest.raises(ToolError, match="off"):
        await ada.remember("more")
    for broken in ('[memory]\nread_layers = ["everything"]\n', "[memory]\nretention_days = 0\n", "[memory"):
        await put(running, {block: broken})
        with pytest.raises(ToolError, match="Nothing is remembered or read"):
            await ada.chunks()


async def test_agents_with_odd_names_have_layers_of_their_own(running: Blocks) -> None:
    """For any actor's name, its layer is one folder, and no other's."""
    for actor in ("../../x", "telegram:42", "Ada Lovelace", "..", "a/b"):
        memory = memory_of(running, actor)
        (chunk,) = (await memory.remember("private", layer="project_agent")).chunk_ids
        held = await memory.chunk(chunk)
        assert held is not None
        assert held.path.startswith(f"blocks/{running.block}/agents/")
        assert held.path.count("/") == 6
        request = ListChunks(actor=actor, block=running.block, layer="project_agent")
        assert len((await running.bus.call(MEMORY_CHUNKS, request)).chunks) == 1


@pytest.mark.parametrize("block", ["../x", "a/b", "", "Main"])
async def test_an_invalid_block_name_is_refused(running: Blocks, block: str) -> None:
    """Only a block's name leads to a block's layer."""
    request = Remember(content="x", actor="ada", conversation_id="c", block=block)
    with pytest.raises(RemoteFault):
        await running.bus.call(MEMORY_REMEMBER, request)


async def test_no_tool_bypasses_the_policy(running: Blocks) -> None:
    """RLM-F21: chunks are not written, changed or deleted as files, in any layer; they may be read as files."""
    ada = memory_of(running, "ada")
    (chunk,) = (await ada.remember("The shed is green")).chunk_ids
    held = await ada.chunk(chunk)
    assert held is not None
    assert "The shed is green" in (await ada.read(f"/{held.path}")).content
    for path in (
        f"/{held.path}",
        "/chunks/2026-05-04/chunk-2026-05-04-00000000.json",
        "//Chunks/./x.json",
        "chunks",
        "agents/ada/chunks/x.json",
    ):
        for ask in (ada.write(path, "x"), ada.edit(path, "a", "b"), ada.delete(path)):
            with pytest.raises(ToolError, match="kept as a chunk"):
                await ask
