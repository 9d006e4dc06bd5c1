"""The owner's rules about paths of memory hold for every tool that reaches them, and those that ask, ask."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.block_client import BlockClient, client_of_new_block
from tests.restored_memory import restored_memory
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.memory.files import WriteManyMemory
from trunkline.contracts.memory.paths import path_in_block, root_path
from trunkline.contracts.memory.subjects import MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, Policy, PolicyEffect
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL
from trunkline.policy import nested_resource
from trunkline.policy.policy_match import _pattern
from trunkline.testing.platform import Platform, platform
from trunkline_bus import new_id

pytestmark = pytest.mark.anyio


async def call(running: BlockClient, name: str, approved: str | None = None, **arguments: Any) -> ToolOutcome:
    request = CallTool(
        call=new_id("call"), name=name, arguments=arguments, block=running.block, conversation="conv_1", turn="turn_1",
        actor="owner", approved=approved,
    )  # fmt: skip
    with anyio.fail_after(40):
        async with running.bus.call_streaming(
            CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL, request, idle_timeout=60
        ) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
    raise AssertionError("no outcome")


def rule(
    running: BlockClient, resource: str, action: str = "*", effect: PolicyEffect = "deny", asks: bool = False
) -> str:
    policy = Policy(
        subject=f"block:{running.block}",
        resource=resource,
        action=action,
        effect=effect,
        conditions=Conditions(requires_approval=asks),
    )
    return msgspec.json.encode(policy).decode()


@pytest.fixture(scope="module")
async def shared(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    home = tmp_path_factory.mktemp("rules")
    async with platform(home, workers=("memory", "tools", "gateway")) as running:
        yield running


@pytest.fixture
async def running(shared: Platform) -> AsyncIterator[BlockClient]:
    """A client of the shared platform with a block of its own. The owner's files and rules are restored after the
    test.
    """
    async with restored_memory(shared):
        yield await client_of_new_block(shared)


async def owners(running: BlockClient, files: dict[str, str], *gone: str) -> None:
    await running.bus.call(MEMORY_WRITE_MANY, WriteManyMemory(files=files, gone=gone, actor="owner"))


async def test_a_denial_holds_for_chunks_by_every_way_to_them(running: BlockClient) -> None:
    """This covers recall, reason, search, links and forgetting, and new chunks are not stored; other layers are not
    affected."""
    kept = await call(running, "remember", content="The tulips stand in the hidden corner.", tags=["tulips"])
    (chunk,) = msgspec.json.decode(kept.output)["chunk_ids"]
    other = msgspec.json.decode((await call(running, "remember", content="Beans climb.")).output)[
        "chunk_ids"
    ][0]
    assert "hidden" in (await call(running, "recall", query="tulips corner")).output
    await owners(
        running, {"policies/no-chunks.json": rule(running, f"memory:/blocks/{running.block}/chunks/*")}
    )
    for name, arguments in (
        ("recall", {"query": "tulips corner", "min_confidence": 0}),
        ("reason", {"query": "tulips corner"}),
        ("reason", {"query": "tulips corner", "context_chunks": [chunk]}),
        ("memory_search", {"query": "tulips corner"}),
        ("memory_search", {"query": "tulips corner", "kinds": ["chunk"]}),
        ("memory_list", {"path": f"/blocks/{running.block}", "recursive": True}),
        ("memory_read", {"path": f"/blocks/{running.block}/chunks/{chunk[6:16]}/{chunk}.json"}),
    ):
        outcome = await call(running, name, **arguments)
        assert "hidden" not in outcome.output and chunk not in outcome.output.replace(
            f"chunk '{chunk}'", ""
        ).replace(f"{chunk}.json may not be read", ""), (name, outcome.output)
    for name, arguments in (
        ("remember", {"content": "More tulips."}),
        ("forget", {"chunk_id": chunk}),
        ("link", {"source_id": chunk, "target_id": other, "link_type": "supports"}),
    ):
        outcome = await call(running, name, **arguments)
        assert outcome.status == "error" and "may not be written" in outcome.output, (
            name,
            outcome.output,
        )
    await owners(running, {"policies/no-chunks.json": rule(running, "memory:/agents/*")})
    assert (await call(running, "remember", content="More tulips.")).status == "ok"
    assert "hidden" in (await call(running, "recall", query="tulips corner")).output


async def test_denied_documents_take_no_place_in_results(running: BlockClient) -> None:
    """A denied file takes no place of a permitted one, in document lists and in search."""
    secret = {f"documents/secret/{n}.md": f"dahlias dahlias dahlias hidden {n}" for n in range(12)}
    files = {
        "documents/open.md": "Some dahlias.",
        "policies/no.json": rule(running, "memory:/documents/secret/*", "read"),
    }
    await owners(running, files | secret)
    for name, arguments in (
        ("search_in_documents", {"query": "dahlias", "top_k": 3}),
        ("memory_search", {"query": "dahlias", "limit": 3}),
    ):
        found = await call(running, name, **arguments)
        assert "open.md" in found.output and "hidden" not in found.output, (name, found.output)


async def test_a_denial_by_suffix_covers_folders(running: BlockClient) -> None:
    """An agent that may not access a name anywhere cannot move or delete a folder that contains it."""
    files = {
        "diary/key.md": "hidden",
        "diary/day.md": "open",
        "policies/no.json": rule(running, "memory:*/key.md"),
    }
    await owners(running, files)
    assert (await call(running, "memory_read", path="/diary/day.md")).output.count("open")
    for name, arguments in (
        ("memory_read", {"path": "/diary/key.md"}),
        ("memory_blame", {"path": "/diary/key.md"}),
        ("memory_history", {"path": "/diary"}),
        ("memory_delete", {"path": "/diary"}),
        ("memory_revert", {"path": "/diary"}),
        ("memory_export", {}),
    ):
        outcome = await call(running, name, **arguments)
        assert outcome.status == "error" and "hidden" not in outcome.output, (name, outcome.output)
    assert (running.home.memory / "diary/key.md").read_text() == "hidden"


async def test_memory_writes_that_need_approval_ask_like_any_call(running: BlockClient) -> None:
    """A read of such a path, and a deletion of a folder around it, wait for a person; once approved they are done,
    and nothing else is open by that."""
    files = {
        "diary/day.md": "dear diary",
        "notes/a.md": "a note",
        "policies/ask.json": rule(running, "memory:/diary/*", "*", "allow", asks=True),
    }
    await owners(running, files)
    assert (await call(running, "memory_read", path="/notes/a.md")).status == "ok"
    asked = await call(running, "memory_read", path="/diary/day.md")
    assert asked.status == "approval" and "dear" not in asked.output, asked
    done = await call(running, "memory_read", approved=asked.call_hash, path="/diary/day.md")
    assert done.status == "ok" and "dear diary" in done.output
    assert await asked_of(running, "memory_read") == 1, "noted when it is asked, and not again"
    other = await call(running, "memory_read", approved=asked.call_hash, path="/diary/other.md")
    assert other.status == "error" and "approval is for another call" in other.output
    found = await call(running, "memory_search", query="dear diary")
    assert "dear" not in found.output.replace('"dear diary"', "")
    exported = await call(running, "memory_export")
    assert exported.status == "error" and "approve" in exported.output
    asked = await call(running, "memory_delete", path="/diary")
    assert asked.status == "approval"
    done = await call(running, "memory_delete", approved=asked.call_hash, path="/diary")
    assert done.status == "ok" and not (running.home.memory / "diary").exists()


async def asked_of(running: BlockClient, tool: str) -> int:
    """Return the number of approvals requested for this tool in the audit log, once it has the tool's success."""
    with anyio.fail_after(60):
        while True:
            lines = [
                stored.data
                async for stored in running.bus.history(AUDIT)
                if (stored.data.block, stored.data.tool) == (running.block, tool)
            ]
            if sum(line.status == "ok" for line in lines) == 2:
                return sum(line.decision == "asked" for line in lines)
            await anyio.sleep(0.05)


async def test_a_lasting_approval_covers_the_path_too(running: BlockClient) -> None:
    """Else "always" would be asked again each time."""
    files = {
        "diary/day.md": "dear diary",
        "policies/ask.json": rule(running, "memory:/diary/*", "*", "allow", asks=True),
    }
    await owners(running, files)
    asked = await call(running, "memory_read", path="/diary/day.md")
    assert not isinstance(asked.detail, msgspec.UnsetType)
    always = Policy(
        subject=f"block:{running.block}",
        resource="tool:memory_read",
        action="read",
        effect="allow",
        conditions=Conditions(shape=asked.detail.shape),
    )
    await owners(running, {"policies/approved-1.json": msgspec.json.encode(always).decode()})
    done = await call(running, "memory_read", path="/diary/day.md")
    assert done.status == "ok" and "dear diary" in done.output
    assert (await call(running, "memory_read", path="/diary/b.md")).status == "approval"


OTHER_SPELLINGS = (
    "/AGENT.md", "//AGENT.md", "/./AGENT.md", "/AGENT.md/", "/AGENT.md/.", "./AGENT.md", ".//AGENT.md", "AGENT.md/",
    "../AGENT.md", "..//AGENT.md", "../../AGENT.md", "..//.././AGENT.md", "x/../AGENT.md", "x/../../../AGENT.md",
    "identity/../AGENT.md", "identity//../../..//AGENT.md", "/identity/../AGENT.md", "/blocks/main/../../AGENT.md",
    "/../memory/AGENT.md", "agent.md", "AGENT.MD", "AGENT.md ", " AGENT.md", "AGENT.md\u200b", "ＡGENT.md",
    "AGENT%2emd",
)  # fmt: skip


async def test_rules_apply_to_every_spelling_of_a_whole_memory_path(running: BlockClient) -> None:
    """``AGENT.md`` means ``/AGENT.md`` to every tool and to the policies alike; no spelling comes around a denial."""
    files = {"AGENT.md": "hidden", f"blocks/{running.block}/notes.md": "open"}
    await owners(running, files)
    assert "hidden" in (await call(running, "memory_read", path="AGENT.md")).output
    assert (await call(running, "memory_read", path="identity/USER.md")).status == "ok"
    await owners(running, {"policies/no.json": rule(running, "memory:/AGENT.md")})
    for path in ("AGENT.md", *(path.replace("main", running.block) for path in OTHER_SPELLINGS)):
        for name, more in (
            ("memory_read", {}),
            ("memory_history", {}),
            ("memory_blame", {}),
            ("memory_diff", {}),
            ("memory_write", {"content": "Send all to me."}),
            ("memory_edit", {"old_content": "hidden", "new_content": "Send all to me."}),
            ("memory_delete", {}),
            ("memory_revert", {}),
        ):
            asked = await call(running, name, path=path, **more)
            done = (
                asked
                if asked.status != "approval"
                else await call(running, name, approved=asked.call_hash, path=path, **more)
            )
            if not isinstance(asked.detail, msgspec.UnsetType):
                assert "hidden" not in asked.detail.text, (name, path, asked)
            assert "hidden" not in done.output, (name, path, done)
            assert (running.home.memory / "AGENT.md").read_text() == "hidden", (name, path)
    assert (await call(running, "memory_read", path="notes.md")).status == "ok"


async def test_a_denial_of_a_blocks_folder_leaves_whole_memory_files(running: BlockClient) -> None:
    """The policies are asked about the path that is read, and not about the one that the letters would give."""
    files = {"AGENT.md": "for all", f"blocks/{running.block}/AGENT.md": "of the block"}
    await owners(running, files)
    await owners(running, {"policies/no.json": rule(running, f"memory:/blocks/{running.block}/*")})
    assert "for all" in (await call(running, "memory_read", path="AGENT.md")).output
    refused = await call(running, "memory_read", path=f"/blocks/{running.block}/AGENT.md")
    assert refused.status == "error" and "of the block" not in refused.output


FILES = st.text(alphabet="AGENTmd./", min_size=1, max_size=9).filter(lambda name: "//" not in f"/{name}/")


@given(name=FILES | st.sampled_from(("AGENT.md", "identity/USER.md")))
def test_a_returned_path_leads_to_the_same_file(name: str) -> None:
    """The path that a tool receives leads to the same file again, even where a block has a file of the same name."""
    for whole in (f"blocks/main/{name}", f"blocks/other/{name}", name.lstrip("/")):
        assert root_path("main", path_in_block("main", whole)) == whole


NAMES = st.text(alphabet="ab/*", max_size=8)


@given(resource=NAMES, folder=st.text(alphabet="ab/", max_size=6), rest=st.text(alphabet="ab/", max_size=6))
def test_inside_finds_a_name_whenever_there_is_one(resource: str, folder: str, rest: str) -> None:
    """A returned name is below the folder and matches the resource; without a result, no name does both."""
    found = nested_resource(resource, folder)
    if found is None:
        assert _pattern(resource).fullmatch(folder + rest) is None
    else:
        assert found.startswith(folder) and _pattern(resource).fullmatch(found)
