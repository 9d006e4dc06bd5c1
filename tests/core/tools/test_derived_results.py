"""A tool says whether its result only repeats what memory holds, and its outcome carries it to the conversation."""

from typing import Any

import pytest

from trunkline.contracts.memory.files import WriteMemory
from trunkline.contracts.memory.subjects import MEMORY_WRITE
from trunkline.contracts.tools.messages import ListTools
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.testing.platform import platform
from trunkline.testing.tool_calls import call_tool
from trunkline_git_store.index.evidence import DERIVED_TOOLS

pytestmark = pytest.mark.anyio

ELSEWHERE = {
    "ask_human": "a person",
    "auth_check": "policies and identities, which only the owner writes",
    "auth_export": "policies and identities, which only the owner writes",
    "auth_list_identities": "identities, which only the owner writes",
    "auth_whoami": "the identity of the turn",
    "background_task_output": "a program",
    "background_task_status": "a program",
    "describe_image": "a picture of the workspace",
    "execute_command": "a program",
    "fetch_webpage": "a page",
    "file_info": "the workspace",
    "find_files": "the workspace",
    "get_current_time": "the clock",
    "workflow_approval": "the word approved",
    "workflow_wait": "the clock",
    "git": "a program",
    "git_commit": "a program",
    "git_status": "a program",
    "list_background_tasks": "programs",
    "list_directory": "the workspace",
    "preview_change": "the workspace",
    "read_document": "the workspace",
    "read_file": "the workspace",
    "run_build": "a program",
    "run_lint": "a program",
    "run_test": "a program",
    "search_files": "the workspace",
    "send_file": "the workspace",
    "start_background_task": "a program",
    "summarize_document": "the workspace",
    "system_info": "the machine",
    "wait_background_task": "a program",
    "web_crawler": "pages",
    "web_search": "pages",
}
"""Tools that read or run something else than memory, and what."""

BY_THE_CALL = {"search_in_documents", "ingest_document"}
"""Tools whose result is derived in some calls only: they say so while they run."""


async def test_every_read_tool_declares_whether_it_reads_memory() -> None:
    """A bundled read tool declares its result as derived, or is named above with its source. The names that classify
    old messages are names of such tools."""
    async with platform() as running:
        reported = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
        specs = {spec.name: spec for spec in reported.tools or ()}
        specs.pop("roll_dice", None)  # an example of the documentation, where that is installed
        others = {
            name for name, spec in specs.items() if spec.effect in ("read", "exec") and not spec.derived
        }
        assert others == {*ELSEWHERE, "search_in_documents"}
        assert {name for name in DERIVED_TOOLS if not specs[name].derived} <= BY_THE_CALL


CALLS: list[tuple[str, dict[str, Any], bool]] = [
    ("read_file", {"path": "page.md"}, False),
    ("memory_read", {"path": "/documents/kept.md"}, True),
    ("memory_read", {"path": "nowhere.md"}, True),
    ("memory_write", {"path": "a.md", "content": "x"}, False),
    ("todo_write", {"todos": [{"content": "Call Ada", "status": "pending"}]}, True),
    ("list_skills", {}, True),
    ("ingest_document", {"path": "page.md"}, False),
    ("search_in_documents", {"query": "rhubarb"}, False),
    ("search_in_documents", {"query": "tulips"}, True),
    ("ingest_document", {"path": "page.md", "remember": True}, True),
    ("search_in_documents", {"query": "rhubarb"}, True),
]


async def test_outcomes_declare_derived_results() -> None:
    """This holds for a failure too, and for a tool that returns documents of the conversation or, in another call,
    of memory."""
    async with platform() as running:
        workspace = running.home.workspace("main")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "page.md").write_text("Rhubarb grows in the shade.\n")
        kept = WriteMemory(path="documents/kept.md", content="Tulips like the sun.\n", actor="owner")
        await running.bus.call(MEMORY_WRITE, kept)
        for name, arguments, derived in CALLS:
            outcome = await call_tool(running.bus, name, arguments)
            assert outcome.derived is derived, (name, arguments, outcome.output)
