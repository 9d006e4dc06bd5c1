"""The Docker backend on a real engine, with an image made here: the contract of sandboxes, and its own features."""

import sys
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from containers import becomes, guardian_of, image_name, needs_busybox

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.errors import ToolError
from trunkline.testing.sandbox_suite import SandboxSuite
from trunkline_sandbox import usage
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

pytestmark = needs_busybox


def docker(home: Path, **settings: object) -> Docker:
    return Docker(SandboxSettings(backend="docker", image=image_name(), **settings), home)  # type: ignore[arg-type]


@pytest.mark.usefixtures("image")
class TestContract(SandboxSuite):
    """The contract of every sandbox, each program in a new container."""

    grace = 15.0
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else None
    python_files = {"/usr": Path("/usr"), "/lib": Path("/usr/lib"), "/lib64": Path("/usr/lib64")}
    flood = 50_000_000  # the engine copies it three times

    def sandbox(self, home: Path) -> Docker:
        return docker(home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
async def test_containers_are_kept_ready_and_used_once(workspace: Path, tmp_path: Path) -> None:
    """As many as configured wait; each serves one program of its own workspace; a newly protected file counts at
    once; panic and the end leave none."""
    home, sandbox = tmp_path / "home", docker(tmp_path / "home", warm_containers=2)
    other = tmp_path / "other"
    other.mkdir()

    async def says(folder: Path, script: str) -> bytes:
        return (await sandbox.run(("sh", "-c", script), workspace=folder, env={})).stdout

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.serve)
        first = (await says(workspace, "hostname; echo a > /tmp/left")).decode().strip()
        (waiting,) = await becomes(1, home, first)
        second = (await says(workspace, "hostname; ls /tmp")).decode().strip()
        assert waiting.startswith(second)
        assert first != second
        await becomes(1, home, second)
        (other / "theirs").touch()
        assert await says(other, "ls") == b"theirs\n"
        await becomes(2, home)
        (workspace / ".env").write_text("a secret")
        assert await says(workspace, "cat .env") == b""
        await becomes(2, home)
        assert await docker(home).end_all() == 2
        await becomes(0, home)
        assert await says(other, "ls") == b"theirs\n"
        await becomes(1, home)
        tasks.cancel_scope.cancel()
    await becomes(0, home)


CRASHES = """
import anyio, pathlib, sys
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

async def main():
    sandbox = Docker(SandboxSettings(image=sys.argv[1]), pathlib.Path(sys.argv[2]))
    argv = ("sh", "-c", "while :; do echo x >> beat; sleep 0.1; done")
    await sandbox.run(argv, workspace=pathlib.Path(sys.argv[3]), env={})

anyio.run(main)
"""


@pytest.mark.anyio
@pytest.mark.kill
async def test_containers_of_a_killed_worker_are_removed(image: str, workspace: Path, tmp_path: Path) -> None:
    """After SIGKILL its guardian removes its container, and no other. If the guardian was killed too, the next
    worker removes it."""
    home = tmp_path / "home"
    command = [sys.executable, "-c", CRASHES, image, str(home), str(workspace)]
    workers = [await anyio.open_process(command, stdout=None, stderr=None) for _ in range(2)]
    try:
        before = await becomes(2, home)
        workers[0].kill()
        (left,) = await becomes(1, home)
        assert left in before
        guardian_of(left).kill()
        workers[1].kill()
        await workers[1].wait()
        await anyio.sleep(2.0)
        assert await becomes(1, home) == [left]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(docker(home).serve)
            await becomes(0, home)
            tasks.cancel_scope.cancel()
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                worker.kill()
            await worker.aclose()
    await becomes(0, home)


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
async def test_a_missing_engine_or_image_is_reported_with_a_hint(tmp_path: Path) -> None:
    """No engine, or no image: a sentence that says what to do, and panic is not kept from its work."""
    assert await docker(tmp_path).unavailable() is None
    absent = Docker(SandboxSettings(image="no-such-image:1"), tmp_path)
    assert "docker pull no-such-image:1" in (await absent.unavailable() or "")
    nowhere = Docker(SandboxSettings(), tmp_path, host=f"unix://{tmp_path}/nothing")
    assert "apt install docker.io" in (await nowhere.unavailable() or "")
    assert "unix://" in (
        await Docker(SandboxSettings(), tmp_path, host="tcp://127.0.0.1:1").unavailable() or ""
    )
    assert await nowhere.end_all() == 0
    with pytest.raises(ToolError, match="could not be created"):
        await nowhere.run(("true",), workspace=tmp_path, env={})


FILLS = "i=0; while :; do i=$((i+1)); dd if=/dev/zero of=file-$i bs=1048576 count=8 2>/dev/null; done"


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("before", [0, 150], ids=["empty", "too large already"])
async def test_a_workspace_is_not_filled_beyond_its_bound(
    workspace: Path, tmp_path: Path, before: int
) -> None:
    """The program is ended with the reason; no container is left. A workspace that is too large can be cleaned up."""
    home, sandbox = tmp_path / "home", docker(tmp_path / "home", warm_containers=0, workspace_mb=100)
    (workspace / "old").write_bytes(bytes(before * 2**20))
    found = await sandbox.run(("sh", "-c", FILLS), workspace=workspace, env={})
    assert (found.killed, found.exit_code) == ("disk", None)
    held = usage.disk_bytes(workspace, None, lambda: False)
    assert held < (max(100, before + 64) + 400) * 2**20
    done = await sandbox.run(("sh", "-c", "rm file-*; echo x > small"), workspace=workspace, env={})
    assert (done.killed, done.exit_code) == ("", 0)
    await becomes(0, home)


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
async def test_a_program_that_may_not_write_is_not_watched(workspace: Path, tmp_path: Path) -> None:
    """Writes of another program into the workspace do not count for it."""
    sandbox = docker(tmp_path / "home", warm_containers=0, workspace_mb=64)
    (workspace / "old").write_bytes(bytes(100 * 2**20))
    limits = SandboxLimits(writable=False, timeout=60.0)
    found = await sandbox.run(("sh", "-c", "sleep 1; ls"), workspace=workspace, env={}, limits=limits)
    assert (found.stdout, found.killed) == (b"old\n", "")
