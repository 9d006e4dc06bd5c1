"""Other people's servers, mounted in a platform and used: the npm reference servers and two of PyPI, in the sandbox."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_TOOL
from trunkline.testing.platform import Platform, platform
from trunkline_bus import new_id
from trunkline_mcp.host import read_statuses

from .conformance import suite
from .mcp_servers import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

PYTHON = [
    str(Path(place).resolve()) for place in {sys.prefix, sys.base_prefix} if not place.startswith("/usr")
]
"""Where the servers of PyPI and their Python lie; the sandbox shows the system and nothing else."""


@pytest.fixture(scope="module", autouse=True)
def sandbox() -> None:
    bwrap = shutil.which("bwrap")
    words = [bwrap or "", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true"]
    if bwrap is None or subprocess.run(words, capture_output=True, timeout=20).returncode != 0:
        pytest.skip("skipped: bubblewrap does not work here, and no server runs without a sandbox")


async def result(running: Platform, name: str, **arguments: Any) -> str:
    request = CallTool(
        call=new_id("call"), name=name, arguments=arguments, block="main", conversation="conv_1", turn="turn_1",
        actor="owner",
    )  # fmt: skip
    async with running.bus.call_streaming(CALL_TOOL, request, idle_timeout=60) as replies:
        outcome = [reply async for reply in replies][-1]
    assert isinstance(outcome, ToolOutcome)
    assert outcome.status == "ok", outcome.output
    return outcome.output


async def all_ready(home: Path, *names: str) -> dict[str, str]:
    """The protocols of servers once they are connected."""

    def there() -> Any:
        statuses = read_statuses(home)
        return {*names} <= {name for name, one in statuses.items() if one.state == "ready"} and statuses

    try:
        statuses = await until(there, 100)
    except TimeoutError:
        pytest.fail(f"not connected: {read_statuses(home)}")
    return {name: statuses[name].protocol for name in names}


async def test_the_servers_of_pypi_are_mounted_and_used(tmp_path):
    """They speak 2026-07-28; git works on the one folder that it was given. Ours have tools of the same names."""
    repository = tmp_path / "repository"
    await anyio.run_process(["git", "init", "-q", str(repository)])
    (repository / "new.txt").write_text("new\n")
    servers = {
        "git": {
            "command": f"{sys.prefix}/bin/mcp-server-git", "readable": PYTHON, "folder": str(repository),
            "start_timeout": 90,
        },
        "time": {"command": f"{sys.prefix}/bin/mcp-server-time", "readable": PYTHON, "start_timeout": 90},
    }  # fmt: skip
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with platform(tmp_path, workers=("memory", "tools")) as running:
        protocols = await all_ready(tmp_path, "git", "time")
        assert protocols == {"git": "2026-07-28", "time": "2026-07-28"}
        status = await result(running, "git__git_status", repo_path="/workspace")
        assert "new.txt" in status
        assert "UTC" in await result(running, "time__get_current_time", timezone="UTC")


async def test_the_reference_servers_of_npm_are_mounted_and_used(tmp_path):
    """They use protocol version 2025-11-25; the files that they write are in their one folder on this machine."""
    try:
        place = suite.packages()
    except suite.Missing as error:
        pytest.skip(f"skipped: {error}")
    data = tmp_path / "data"
    data.mkdir()

    def server(name: str, *words: str, **more: Any) -> dict[str, Any]:
        script = place / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
        shown = [str(place.resolve())]
        return {
            "command": str(suite.node()), "args": [str(script), *words], "readable": shown, "start_timeout": 90, **more
        }  # fmt: skip

    servers = {
        "everything": server("everything"),
        "filesystem": server("filesystem", "/workspace", folder=str(data)),
        "memory": server("memory", env={"MEMORY_FILE_PATH": "/workspace/graph.jsonl"}),
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with platform(tmp_path, workers=("memory", "tools")) as running:
        protocols = await all_ready(tmp_path, *servers)
        assert {*protocols.values()} == {"2025-11-25"}
        assert "Echo: hello" in await result(running, "echo", message="hello")
        await result(running, "filesystem__write_file", path="/workspace/a.txt", content="by a server")
        assert (data / "a.txt").read_text() == "by a server"
        entity = {"name": "beans", "entityType": "plant", "observations": ["stand behind the shed"]}
        await result(running, "create_entities", entities=[entity])
        assert "behind the shed" in await result(running, "search_nodes", query="beans")
        assert "behind the shed" in (tmp_path / "mcp/data/memory/graph.jsonl").read_text()


async def test_a_sandboxed_server_sees_no_files_of_the_owner(tmp_path):
    """CC-T14: no file of the home, no network: what its entry does not name is not there."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("skipped: no python3 of the system")
    shown = tmp_path / "shown"
    shown.mkdir()
    shutil.copy(Path(__file__).with_name("spy_server.py"), shown)
    (tmp_path / "token").write_text("t0ken-of-the-home")
    entry = {
        "command": python,
        "args": [str(shown / "spy_server.py"), str(tmp_path / "token")],
        "readable": [str(shown)],
        "start_timeout": 60,
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"spy": entry}}))
    async with platform(tmp_path, workers=("memory", "tools")) as running:
        await all_ready(tmp_path, "spy")
        seen = await result(running, "spy")
        assert "t0ken" not in seen and "FileNotFoundError" in seen
        assert "no way out" in seen
