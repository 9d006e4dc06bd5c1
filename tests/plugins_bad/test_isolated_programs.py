"""A plugin in a process of its own runs programs by its call: in the tools worker's sandbox, and no further."""

import shutil
from pathlib import Path

import pytest

from .test_isolation import call, offered, running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

HOST = '''
from pathlib import Path
import trunkline
from trunkline import ToolContext

@trunkline.tool(effect="exec")
async def script(context: ToolContext, text: str, stdin: str = "", placed: bool = True, network: bool = False) -> str:
    """Run a script of the shell."""
    ran = await context.sandbox.run(
        ("sh", "-c", text), workspace=context.workspace if placed else None, env={"GIVEN": "yes"},
        stdin=stdin.encode(), limits=trunkline.SandboxLimits(timeout=5.0, network=network),
    )
    return f"{ran.exit_code} {ran.killed} {ran.dropped} {ran.stdout.decode()}"

@trunkline.tool(effect="read")
async def peep(context: ToolContext, text: str) -> str:
    """Say that it reads, and run a script."""
    ran = await context.sandbox.run(("sh", "-c", text), workspace=context.workspace, env={})
    return ran.stdout.decode()

@trunkline.tool(effect="exec")
async def overreach(context: ToolContext, how: str) -> str:
    """Ask for more."""
    asked = {
        "start": lambda: context.sandbox.start(("true",), workspace=None, env={}),
        "elsewhere": lambda: context.sandbox.run(("ls",), workspace=Path("/etc"), env={}),
        "readable": lambda: context.sandbox.run(("ls",), workspace=None, env={}, read_only={"/x": Path("/etc")}),
        "input": lambda: context.sandbox.run(("cat",), workspace=None, env={}, stdin=b"x" * 1_000_000),
    }
    await asked[how]()
    return "it was done"

@trunkline.hookimpl
def trunkline_tools():
    return [script, peep, overreach]
'''


async def test_an_isolated_plugin_runs_programs_within_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input, output, environment, workspace and limits are those of any program; what would be read or held with the
    worker's rights is refused; and so is a network that the block does not have."""
    async with running(tmp_path, monkeypatch, HOST, **{"permissions.allow_shell": True}) as found:
        await offered(found, "script", "overreach")
        said = await call(found, "script", text="cat; pwd; echo $GIVEN; echo kept > file", stdin="in ")
        assert said.output == "0  0 in /workspace\nyes\n", said
        assert (found.home.workspace("main") / "file").read_text() == "kept\n"
        assert (await call(found, "script", text="ls -A", placed=False)).output == "0  0 "
        assert (await call(found, "script", text="sleep 30")).output.startswith("None timeout")
        flood = (await call(found, "script", text="head -c 500000 /dev/zero | tr '\\0' x")).output
        assert flood.startswith("0  470000 xxx") and len(flood) < 31_000
        assert "may not use a network here" in (await call(found, "script", text="true", network=True)).output
        for how, why in (
            ("start", "only run programs to their end"),
            ("elsewhere", "or in none"),
            ("readable", "only the workspace"),
            ("input", "is too large"),
        ):
            refused = await call(found, "overreach", how=how)
            assert refused.status == "error" and why in refused.output


async def test_a_read_only_tools_programs_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls need no approval, and a block that may run no programs may use it."""
    async with running(tmp_path, monkeypatch, HOST, **{"permissions.allow_shell": False}) as found:
        await offered(found, "peep")
        workspace = found.home.workspace("main")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / "kept").write_text("here")
        said = await call(found, "peep", text="cat kept; rm -f kept; touch made")
        assert (said.status, said.output, sorted(each.name for each in workspace.iterdir())) == (
            "ok",
            "here",
            ["kept"],
        )


async def test_without_a_sandbox_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal is the tools worker's own."""
    config = {"permissions.allow_shell": True, "plugins.disabled": ["sandbox"]}
    async with running(tmp_path, monkeypatch, HOST, **config) as found:
        await offered(found, "script")
        assert "No sandbox plugin is installed" in (await call(found, "script", text="true")).output
