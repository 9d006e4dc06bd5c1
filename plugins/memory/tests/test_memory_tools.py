"""The memory tools on a real memory worker, and each of them against the contract of tools."""

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trunkline import Tool, ToolContext, ToolError
from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.memory.files import MemoryFile
from trunkline.contracts.memory.history import MemoryBlame, MemoryReverted
from trunkline.contracts.memory.search import MemoryHits
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.testing.contexts import tool_context
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_suite import ToolSuite
from trunkline_memory import chunk_tools, read_tools, transfer_tools, write_tools


async def used(tool: Tool, context: ToolContext, **arguments: Any) -> Any:
    return json.loads(await tool(context, arguments))


@pytest.mark.anyio
async def test_written_text_is_read_back_unchanged(context: ToolContext, running: Platform) -> None:
    """A written file is in the block's folder of memory, and read back the same."""
    written = await used(write_tools.memory_write, context, path="notes/a.md", content="Grüße\r\n\tx")
    read = await used(read_tools.memory_read, context, path="notes/a.md")
    assert set(read) == {"path", "content", "modified_at"}
    assert read["content"] == "Grüße\r\n\tx"
    assert len(written["hash"]) == 40
    assert (
        running.home.memory / "blocks" / context.block / "notes/a.md"
    ).read_bytes() == "Grüße\r\n\tx".encode()


@pytest.mark.anyio
async def test_the_whole_memory_is_reached_from_its_root(context: ToolContext) -> None:
    """A path that begins with / is relative to the whole memory, also in results."""
    read = await used(read_tools.memory_read, context, path="/AGENT.md")
    assert read["path"] == "/AGENT.md"
    names = {entry["path"] for entry in await used(read_tools.memory_list, context, path="/")}
    assert {"/AGENT.md", "/identity", "/preferences.toml"} <= names


@pytest.mark.anyio
async def test_editing_replaces_the_first_occurrence(context: ToolContext) -> None:
    """Only the first; a text that is not there is refused and nothing changes (PA-T3)."""
    await used(write_tools.memory_write, context, path="a.md", content="one one")
    await used(write_tools.memory_edit, context, path="a.md", old_content="one", new_content="two")
    with pytest.raises(ToolError, match="not in"):
        await used(write_tools.memory_edit, context, path="a.md", old_content="three", new_content="x")
    assert (await used(read_tools.memory_read, context, path="a.md"))["content"] == "two one"


@pytest.mark.anyio
async def test_missing_files_are_an_error_for_the_model(context: ToolContext) -> None:
    """Reading or deleting a missing file names the file."""
    for tool in (read_tools.memory_read, write_tools.memory_delete):
        with pytest.raises(ToolError, match="nope"):
            await used(tool, context, path="nope.md")


@pytest.mark.anyio
async def test_search_finds_texts_and_names(context: ToolContext) -> None:
    """Content by words, files by name; each hit says where."""
    await used(
        write_tools.memory_write,
        context,
        path="garden.md",
        content="# Garden\nThe climbing frame is green.\n",
    )
    (hit,) = (await used(read_tools.memory_search, context, query="climbing frames", path=""))["hits"]
    assert (hit["path"], hit["line"], hit["content"]) == ("garden.md", 2, "The climbing frame is green.")
    (named,) = (await used(read_tools.memory_search, context, query="gard", type="filename"))["hits"]
    assert named["path"] == "garden.md"


@pytest.mark.anyio
async def test_search_filters_and_explains_its_hits(context: ToolContext) -> None:
    """The filters are kind, tags, conversation, time and confidence, as in the command; each hit names its signals,
    and the answer states whether meaning was searched."""
    await used(write_tools.memory_write, context, path="apples.md", content="The apples are red.\n")
    keep = {"content": "Anna's apples are green", "tags": ["Fruit"]}
    sure, unsure = [
        (await used(chunk_tools.remember, context, **keep, confidence=share))["chunk_ids"][0]
        for share in (0.9, 0.2)
    ]

    async def ids(**more: Any) -> set[str]:
        found = await used(read_tools.memory_search, context, query="apples", **more)
        return {hit.get("id") or hit["path"] for hit in found["hits"]}

    assert await ids() == {"apples.md", sure, unsure}
    assert await ids(kinds=["chunk", "fact"]) == {sure, unsure} == await ids(tags=["fruit"])
    assert await ids(kinds=["file"]) == {"apples.md"}
    assert await ids(min_confidence=0.5) == {"apples.md", sure}
    assert await ids(conversation_id="conv_test") == {sure, unsure}
    assert await ids(conversation_id="conv_other") == await ids(speaker="nobody") == set()
    assert await ids(since="2020-01-01", until="2021-01-01T00:00:00Z") == set()
    assert await ids(since="2020-01-01", tags=["fruit"]) == {sure, unsure}
    found = await used(read_tools.memory_search, context, query="green apples fruit")
    assert found["searched"].startswith("Words alone")
    assert {"words", "tags", "confidence"} <= {why.split()[0] for why in found["hits"][0]["why"]}
    assert any(why.startswith("words") and "green" in why for why in found["hits"][0]["why"])


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["since", "until"])
async def test_a_search_refuses_a_time_outside_the_calendar(context: ToolContext, name: str) -> None:
    """UTC has the years 1 to 9999."""
    with pytest.raises(ToolError, match="years 1 to 9999") as caught:
        await used(read_tools.memory_search, context, query="x", **{name: "9999-12-31T23:00:00-05:00"})
    assert caught.value.kind == "invalid_arguments"


@pytest.mark.anyio
async def test_an_invalid_search_names_its_problem(context: ToolContext) -> None:
    """An invalid time or an invalid kind gets one sentence for the model."""
    for wrong, said in (({"since": "soon"}, "2026-05-01"), ({"kinds": ["thought"]}, "thought")):
        with pytest.raises(ToolError, match=said):
            await used(read_tools.memory_search, context, query="x", **wrong)
    with pytest.raises(ToolError, match="kind"):
        await context.memory.search("x", kind="smell")  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_an_empty_folder_lists_nothing(context: ToolContext) -> None:
    """A block that has written nothing yet has its settings; a folder that is not there is empty, and no error."""
    assert [entry["path"] for entry in await used(read_tools.memory_list, context)] == ["block.toml"]


@pytest.mark.anyio
async def test_history_has_the_states_before(context: ToolContext) -> None:
    """Newest first, with the text before, who changed it, and the text at each commit (PA-T6)."""
    for text in ("one", "two", "three"):
        await used(write_tools.memory_write, context, path="a.md", content=text)
    changes = await used(read_tools.memory_history, context, path="a.md")
    assert [change["previous"] for change in changes] == ["two", "one", None]
    assert {change["author"] for change in changes} == {"agent"}
    first = await used(read_tools.memory_history, context, path="a.md", commit=changes[-1]["hash"])
    assert first["content"] == "one"
    assert len(await used(read_tools.memory_history, context, path="a.md", limit=2)) == 2


@pytest.mark.anyio
async def test_a_line_is_blamed_and_its_change_reverted(context: ToolContext) -> None:
    """Blame gives the author and the turn of a line; then one step back, and back to a commit."""
    first = await used(write_tools.memory_write, context, path="a.md", content="one\ntwo\n")
    await used(write_tools.memory_edit, context, path="a.md", old_content="two", new_content="2")
    spans = await used(read_tools.memory_blame, context, path="a.md", first=2)
    assert [(span["line"], span["lines"], span["author"], span["turn"]) for span in spans] == [
        (2, ["2"], "agent", "turn_test")
    ]
    done = await used(write_tools.memory_revert, context, path="a.md")
    assert (done["paths"], done["undone"]) == (["a.md"], spans[0]["hash"])
    await used(write_tools.memory_write, context, path="a.md", content="other")
    await used(write_tools.memory_revert, context, path="a.md", to=first["hash"])
    assert (await used(read_tools.memory_read, context, path="a.md"))["content"] == "one\ntwo\n"
    then = await used(read_tools.memory_read, context, path="a.md", commit=spans[0]["hash"])
    assert then["content"] == "one\n2\n"


@pytest.mark.anyio
async def test_a_change_that_expects_an_older_state_is_refused(context: ToolContext) -> None:
    """With the commit that a caller knows, writing, editing and deleting detect a concurrent change."""
    known = (await used(write_tools.memory_write, context, path="a.md", content="one", expected=""))["hash"]
    await used(write_tools.memory_write, context, path="a.md", content="two", expected=known)
    for tool, arguments in (
        (write_tools.memory_write, {"content": "x"}),
        (write_tools.memory_edit, {"old_content": "two", "new_content": "x"}),
        (write_tools.memory_delete, {}),
    ):
        with pytest.raises(ToolError, match="changed since"):
            await used(tool, context, path="a.md", expected=known, **arguments)
    with pytest.raises(ToolError, match="exists already"):
        await used(write_tools.memory_write, context, path="a.md", content="x", expected="")


@pytest.mark.anyio
async def test_export_writes_into_the_workspace(context: ToolContext) -> None:
    """The archive has the files and their history."""
    await used(write_tools.memory_write, context, path="a.md", content="kept")
    made = await used(transfer_tools.memory_export, context)
    with tarfile.open(context.workspace / made["path"]) as tar:
        names = tar.getnames()
        held = tar.extractfile(f"memory/blocks/{context.block}/a.md")
        assert held is not None
        assert held.read() == b"kept"
    assert "README.txt" in names
    assert any(name.endswith(".pack") for name in names)


@pytest.mark.anyio
async def test_an_export_is_imported(main_context: ToolContext, tmp_path: Path) -> None:
    """Files lost since the export are restored, a second import changes nothing, and a block's limits are unchanged
    (C37)."""
    await used(write_tools.memory_write, main_context, path="a.md", content="kept")
    made = await used(transfer_tools.memory_export, main_context)
    async with platform(tmp_path / "other", workers=("memory",)) as other:
        there = tool_context(main_context.workspace, memory=block_memory(other.bus, "main", "agent"))
        tried = await used(transfer_tools.memory_import, there, path=made["path"], dry_run=True)
        assert not (other.home.memory / "blocks/main/a.md").exists() and tried["added"] >= 1
        done = await used(transfer_tools.memory_import, there, path=made["path"])
        assert (other.home.memory / "blocks/main/a.md").read_text() == "kept" and done["conflicts"] == []
        assert (await used(transfer_tools.memory_import, there, path=made["path"]))["added"] == 0
        (main_context.workspace / "noise.tar").write_bytes(b"noise")
        with pytest.raises(ToolError, match="format of the archive is unknown"):
            await used(transfer_tools.memory_import, there, path="noise.tar")
        with pytest.raises(ToolError, match="'nowhere\\.tar' cannot be read: no such file"):
            await used(transfer_tools.memory_import, there, path="nowhere.tar")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["../x", "/../x", "~/x", ".git/config", "/.git/HEAD", "a/../../x", "//etc/x\0"]
)
async def test_paths_out_of_memory_are_refused(main_context: ToolContext, path: str) -> None:
    """No tool reads or writes outside of memory (PA-T2)."""
    with pytest.raises(ToolError):
        await used(read_tools.memory_read, main_context, path=path)
    with pytest.raises(ToolError):
        await used(write_tools.memory_write, main_context, path=path, content="x")


@pytest.mark.anyio
async def test_an_unavailable_memory_is_an_error_for_the_model(tmp_path: Path) -> None:
    """Without a memory worker a tool fails with a text that names the cause, and does not hang."""
    async with platform(tmp_path / "home", workers=("tools",)) as without:
        lost = block_memory(without.bus, "main", "agent", timeout=0.2)
        with pytest.raises(ToolError, match="available"):
            await used(read_tools.memory_read, tool_context(tmp_path, memory=lost), path="a.md")


class _MemorySuite(ToolSuite):
    """The contract, with a memory that answers from this process."""

    other_paths = ("path",)

    def context(self, workspace: Path) -> ToolContext:
        return tool_context(workspace, memory=_FakeMemory())


class _FakeMemory:
    """A memory of one file."""

    async def read(self, path: str, version: str | None = None) -> Any:
        return MemoryFile(path=path, content="one", hash="0" * 40, modified_at=datetime.now(UTC))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        return "1" * 40

    async def edit(self, path: str, old: str, new: str, *, expected: str | None = None) -> str:
        return "1" * 40

    async def delete(self, path: str, *, expected: str | None = None) -> str:
        return "1" * 40

    async def search(self, query: str, **narrowed: Any) -> MemoryHits:
        return MemoryHits()

    async def list(self, path: str = "", *, recursive: bool = False) -> Any:
        return ()

    async def history(self, path: str, *, limit: int = 50) -> Any:
        return ()

    async def blame(
        self, path: str, version: str | None = None, *, first: int = 1, last: int | None = None
    ) -> Any:
        return MemoryBlame(path=path, version="1" * 40)

    async def revert(self, path: str, version: str | None = None, *, to: str | None = None) -> Any:
        return MemoryReverted(paths=(path,), version="1" * 40, undone="0" * 40)

    async def import_archive(self, source: Path, *, kind: str | None = None, dry_run: bool = False) -> Any:
        assert source.name == "all.tar"
        return MemoryImport(system="trunkline", version="1" * 40)

    async def export(self, target: Path) -> int:
        return 0


TestMemoryRead = _MemorySuite.of(read_tools.memory_read, path="a.md")
TestMemorySearch = _MemorySuite.of(read_tools.memory_search, query="x", path="/", type="content", limit=3)
TestMemoryList = _MemorySuite.of(read_tools.memory_list, path="", recursive=True)
TestMemoryHistory = _MemorySuite.of(read_tools.memory_history, path="a.md", limit=2)
TestMemoryWrite = _MemorySuite.of(write_tools.memory_write, path="a.md", content="x")
TestMemoryEdit = _MemorySuite.of(write_tools.memory_edit, path="a.md", old_content="one", new_content="two")
TestMemoryDelete = _MemorySuite.of(write_tools.memory_delete, path="a.md")
TestMemoryRevert = _MemorySuite.of(write_tools.memory_revert, path="a.md")
TestMemoryBlame = _MemorySuite.of(read_tools.memory_blame, path="a.md")


class TestMemoryImport(_MemorySuite):
    other_paths = ()

    def tool(self) -> Tool:
        return transfer_tools.memory_import

    def arguments(self, workspace: Path) -> dict[str, Any]:
        (workspace / "all.tar").write_bytes(b"x")
        return {"path": "all.tar"}


TestMemoryExport = _MemorySuite.of(transfer_tools.memory_export)


async def no_change_is_possible(context: ToolContext, path: str) -> None:
    for change in (
        lambda: context.memory.write(path, "tools = []"),
        lambda: context.memory.edit(path, "a", "b"),
        lambda: context.memory.delete(path),
        lambda: context.memory.revert(path),
    ):
        with pytest.raises(ToolError, match="only the owner can change it"):
            await change()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    [
        "block.toml",
        "./block.toml",
        "/blocks/main/block.toml",
        "/blocks/other/Block.TOML",
        "/blocks//main/./block.toml",
    ],
)
async def test_an_agent_cannot_lift_its_own_limits(path: str, main_context: ToolContext) -> None:
    """A block's permissions are in its block.toml; no tool writes, edits or deletes it (conflict C37)."""
    await no_change_is_possible(main_context, path)


@pytest.mark.anyio
@pytest.mark.parametrize("folder", ["/blocks", "/blocks/main", "/archive/main_2026", "/BLOCKS/other/"])
async def test_an_agent_cannot_take_a_block_away_with_its_limits(
    folder: str, main_context: ToolContext
) -> None:
    """Deleting the folder around the configuration would lift the limits too."""
    with pytest.raises(ToolError, match="only the owner can change it"):
        await main_context.memory.delete(folder)
    with pytest.raises(ToolError, match="only the owner can change it"):
        await main_context.memory.revert(folder)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["/audit/purges.jsonl", "//Audit/purges.jsonl", "/audit", "/policies/x.json"]
)
async def test_an_agent_cannot_change_the_owners_files(path: str, main_context: ToolContext) -> None:
    """These are the policies, and the records that keep purged text from being imported (C37, C43)."""
    await no_change_is_possible(main_context, path)


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["", "/", "./", "//"])
async def test_an_agent_cannot_revert_the_whole_memory(path: str, main_context: ToolContext) -> None:
    """Reverting a whole commit could change the owner's files, so a path must be named."""
    with pytest.raises(ToolError, match="Name the file"):
        await main_context.memory.revert(path)
