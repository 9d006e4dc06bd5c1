"""The backend Docker on a real engine, with an image made here: the contract of sandboxes, and what is its own."""

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from trunkline.errors import ToolError
from trunkline.testing.sandbox_suite import SandboxSuite
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

pytestmark = pytest.mark.skipif(
    not Path("/bin/busybox").exists(),
    reason="an image is made of /bin/busybox, which is not here (busybox-static)",
)

IMAGE = "trunkline-sandbox-test:latest"


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """An image with nothing but busybox."""
    from docker.errors import DockerException
    from testcontainers.core.docker_client import DockerClient

    try:
        client = DockerClient().client
        client.ping()
    except DockerException as error:
        pytest.skip(f"no Docker engine: {error}")
    client.api.import_image_from_data(_root(), repository="trunkline-sandbox-test", tag="latest")
    yield IMAGE
    client.images.remove(IMAGE, force=True)


def _root() -> bytes:
    names = subprocess.run(
        ["/bin/busybox", "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for folder in ("bin", "usr", "usr/bin", "etc", "tmp", "workspace", "var", "run"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add("/bin/busybox", "bin/busybox")
        for name in names:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if name != "busybox":
                tar.addfile(link)
    return held.getvalue()


def docker(home: Path, **settings: object) -> Docker:
    return Docker(SandboxSettings(backend="docker", image=IMAGE, **settings), home)  # type: ignore[arg-type]


@pytest.mark.usefixtures("image")
class TestContract(SandboxSuite):
    """What every sandbox does, each program in a container made for it."""

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


def engine() -> object:
    """The engine as its own library sees it."""
    from testcontainers.core.docker_client import DockerClient

    return DockerClient().client


def of_home(home: Path) -> list[str]:
    """The containers of a home, in whatever state."""
    from trunkline_sandbox.marks import HOME_LABEL, home_mark

    wanted = {"label": f"{HOME_LABEL}={home_mark(home)}"}
    return [one["Id"] for one in engine().api.containers(all=True, filters=wanted)]  # type: ignore[attr-defined]


async def becomes(expected: int, home: Path, used: str = "") -> list[str]:
    """Wait until there are so many containers of the home, and none of them is ``used``."""
    with anyio.fail_after(30):
        while True:
            found = await anyio.to_thread.run_sync(of_home, home)
            if len(found) == expected and not (used and any(one.startswith(used) for one in found)):
                return found
            await anyio.sleep(0.1)


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
async def test_containers_are_kept_ready_and_used_once(workspace: Path, tmp_path: Path) -> None:
    """As many as configured wait; each serves one program of its own workspace; a file that became protected counts
    at once; panic and the end leave none."""
    home, sandbox = tmp_path / "home", docker(tmp_path / "home", warm=2)
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
async def test_what_a_killed_worker_left_is_removed_by_the_next(
    image: str, workspace: Path, tmp_path: Path
) -> None:
    """After SIGKILL its container may run on; the next worker ends it, and none of a worker that lives."""
    home = tmp_path / "home"
    command = [sys.executable, "-c", CRASHES, image, str(home), str(workspace)]
    workers = [await anyio.open_process(command, stdout=None, stderr=None) for _ in range(2)]
    try:
        await becomes(2, home)
        workers[0].kill()
        await workers[0].wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(docker(home).serve)
            await becomes(1, home)
            await anyio.sleep(0.5)
            await becomes(1, home)
            tasks.cancel_scope.cancel()
        assert await docker(home).end_all() == 1
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                worker.kill()
            await worker.aclose()
    await becomes(0, home)


@pytest.mark.anyio
@pytest.mark.usefixtures("image")
async def test_it_says_what_is_missing(tmp_path: Path) -> None:
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
    with pytest.raises(ToolError, match="could not be made"):
        await nowhere.run(("true",), workspace=tmp_path, env={})
