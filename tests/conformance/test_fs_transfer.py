"""FS-1: an agent's memory is moved to another machine, and continues there."""

import json
from pathlib import Path

import pytest

from .conftest import OpenPlatform
from .processes import git, run_program

pytestmark = pytest.mark.anyio


async def test_FS_1_PA_T18_a_memory_continues_on_another_machine(
    open_platform: OpenPlatform, environ: dict[str, str], tmp_path: Path
) -> None:
    """The memory is exported while the platform runs, and imported into the new root of another machine: documents,
    conversations that can be continued, history, and preferences in force; gaps are reported."""
    async with open_platform() as running:
        wrote = await running.client.say(
            'call:memory_write {"path": "garden.md", "content": "sun"} ;; '
            'call:memory_write {"path": "garden.md", "content": "water"} ;; '
            'call:memory_write {"path": "/preferences.toml", "content": "model = \\"openai/kept\\"\\n"} ;; say:done'
        )
        exported = await running.client.say("call:memory_export {} ;; quote")
        archive = running.workspace / json.loads(exported.results()[0])["path"]
        versions = git(running.platform.home.memory, "log", "--format=%H", "--", "blocks/main/garden.md")
    there = {**environ, "TRUNKLINE_HOME": str(tmp_path / "machine")}
    done = run_program(there, "memory", "import", str(archive), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.get("conflicts", []) == [] and report["commits"] > 0
    memory = tmp_path / "machine/memory"
    assert (memory / "blocks/main/garden.md").read_text() == "water"
    assert git(memory, "log", "--format=%H", "--", "blocks/main/garden.md") == versions
    assert git(memory, "fsck", "--full", "--strict", "--no-dangling") == ""
    again = json.loads(run_program(there, "memory", "import", str(archive), "--json").stdout)
    assert again["version"] == report["version"]
    async with open_platform({"runtime.memory_root": str(memory)}) as other:
        reply = await other.client.say("roles", wrote.conversation)
        assert reply.text.startswith("system user assistant tool")
        assert other.provider.answer_requests[-1].body["model"] == "kept"
