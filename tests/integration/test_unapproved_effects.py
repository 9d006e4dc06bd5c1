"""Every tool that comes with the platform, called as a page might talk a model into it: what happens unasked."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.contracts.memory.bus_transport import block_memory
from trunkline.contracts.tools.messages import ListTools, ToolOutcome, ToolSpec
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.testing.platform import Platform, platform
from trunkline.testing.tool_calls import assert_audited, call_tool
from trunkline_bus import new_id

pytestmark = pytest.mark.anyio

KEPT = "# What is kept\n"

SAMPLES: Mapping[str, Any] = {
    "path": "kept.md", "file_path": "kept.md", "source": "kept.md", "image_path": "kept.md", "document": "kept.md",
    "command": "echo x > made", "find": "kept", "old_content": "kept", "old_text": "kept", "replace": "gone",
    "url": "http://192.0.2.1/steal", "channel": "terminal",
}  # fmt: skip
"""What each argument is given, by its name; what is not named here gets something of its type."""

BY_TYPE: Mapping[str, Any] = {
    "string": "made", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {},
}  # fmt: skip

UNASKED = {"enter_plan_mode", "add_plan_step", "add_plan_file", "add_plan_risk", "todo_write", "todo_clear"}
"""What an agent may write of itself: its plan and its list, and that it only plans. Nothing else can be in them."""

LOOKS = {"git_status"}
"""A program that can only read, where nothing can be changed."""


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """A platform that asks, as new ones do, with a block that may run programs."""
    config = {"permissions.approvals": "some", "permissions.allow_shell": True}
    home = tmp_path_factory.mktemp("unasked")
    async with platform(home, config=config, workers=("memory", "tools", "gateway")) as found:
        workspace = found.home.workspace("main")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "kept.md").write_text(KEPT)
        await block_memory(found.bus, "main", "owner").write("kept.md", KEPT)
        yield found


def arguments(spec: ToolSpec) -> dict[str, Any]:
    """Arguments that the tool takes."""
    properties = spec.parameters.get("properties", {})
    return {
        name: SAMPLES.get(name, BY_TYPE[_type(properties[name])])
        for name in spec.parameters.get("required", ())
    }


def _type(schema: Mapping[str, Any]) -> str:
    options = [schema, *schema.get("anyOf", ())]
    return next((str(one["type"]) for one in options if isinstance(one.get("type"), str)), "string")


async def called(running: Platform, *effects: str) -> dict[str, ToolOutcome]:
    """Return the outcome of every tool with such an effect, each called in a separate conversation."""
    catalogue = await running.bus.call(LIST_TOOLS, ListTools(block="main"))
    found: dict[str, ToolOutcome] = {}

    async def one(spec: ToolSpec) -> None:
        found[spec.name] = await call_tool(
            running.bus, spec.name, arguments(spec), conversation=new_id("conv")
        )

    async with anyio.create_task_group() as tasks:
        for spec in catalogue.tools or ():
            if spec.effect in effects:
                tasks.start_soon(one, spec)
    return found


def picture(running: Platform) -> dict[str, bytes]:
    """Return all files of the workspaces and of memory, except those that an agent may write about itself, the audit
    log, and the conversations: a file that an agent gives a person is kept there, as its answer is."""
    own = ("plans", "todos", "policies", "audit", "conversations", ".git")
    memory = running.home.memory
    files = [path for path in memory.rglob("*") if not {*path.relative_to(memory).parts} & {*own}]
    files += running.home.workspace("main").rglob("*")
    return {str(path): path.read_bytes() for path in files if path.is_file()}


def history(memory: Path) -> str:
    """Which commits memory has, but those of the audit log and of conversations."""
    words = [
        "git",
        "log",
        "--format=%H",
        "--",
        ".",
        ":(exclude)audit",
        ":(exclude,glob)blocks/*/conversations/**",
    ]
    return subprocess.run(words, cwd=memory, check=True, capture_output=True, text=True).stdout


async def test_PA_T21_read_only_tools_change_nothing(running: Platform) -> None:
    """For every tool declared read-only: no file and no history changes."""
    before = picture(running), history(running.home.memory)
    outcomes = await called(running, "read")
    assert len(outcomes) > 25
    assert (picture(running), history(running.home.memory)) == before
    asked = {name for name, outcome in outcomes.items() if outcome.status == "approval"}
    assert {"fetch_webpage", "web_crawler"} <= asked, "a host that the model chose is asked about"


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="bubblewrap is not installed (apt install bubblewrap)"
)
async def test_PA_T21_nothing_that_writes_sends_or_runs_does_so_unasked(running: Platform) -> None:
    """All other tools need approval, or refuse an invalid call; the exceptions are an agent's own plans and lists."""
    before = picture(running)
    outcomes = await called(running, "write", "send", "exec")
    assert len(outcomes) > 35
    assert {name for name, outcome in outcomes.items() if outcome.status == "ok"} <= UNASKED | LOOKS
    asked = {name for name, outcome in outcomes.items() if outcome.status == "approval"}
    assert asked >= {
        "execute_command", "git_commit", "write_file", "memory_write", "delete_file", "remember",
        "send_channel_message", "update_founder_info", "start_background_task", "clear_documents",
    }, outcomes  # fmt: skip
    for name in {*outcomes} - asked - UNASKED - LOOKS:
        assert outcomes[name].status == "error" and len(outcomes[name].output) > 20, (name, outcomes[name])
    assert picture(running) == before
    await assert_audited(running.bus, {outcome.call: outcome.status for outcome in outcomes.values()})
