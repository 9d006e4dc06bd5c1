"""The bubblewrap backend: the contract of sandboxes, and its own features."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

import trunkline
from trunkline.errors import ToolError
from trunkline.home.kill_switch import KillSwitch
from trunkline.testing.sandbox_fixture import HEARTBEAT_SCRIPT
from trunkline.testing.sandbox_suite import SandboxSuite
from trunkline_sandbox.bubblewrap import process_cleanup
from trunkline_sandbox.bubblewrap.backend import MASKER_PROGRAM, Bubblewrap
from trunkline_sandbox.bubblewrap.probe import with_remedy
from trunkline_sandbox.settings import SandboxSettings


class TestContract(SandboxSuite):
    """The contract of every sandbox."""

    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else None

    def sandbox(self, home: Path) -> Bubblewrap:
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed (apt install bubblewrap)")
        return Bubblewrap(SandboxSettings(), home)


needs_it = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
CRASHES = """
import anyio, pathlib, sys
from trunkline_sandbox.bubblewrap.backend import MASKER_PROGRAM, Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

async def main():
    sandbox = Bubblewrap(SandboxSettings(), pathlib.Path(sys.argv[1]) / "home")
    await sandbox.run(("sh", "-c", sys.argv[2]), workspace=pathlib.Path(sys.argv[1]), env={})

anyio.run(main)
"""


@needs_it
@pytest.mark.anyio
@pytest.mark.kill
async def test_a_killed_worker_leaves_nothing_running(tmp_path: Path) -> None:
    """Its programs and their child processes are killed with it."""
    worker = await anyio.open_process(
        [sys.executable, "-c", CRASHES, str(tmp_path), f"{HEARTBEAT_SCRIPT} sleep 60"],
        stdout=None,
        stderr=None,
    )
    suite = TestContract()
    try:
        await suite.wait_beating(tmp_path)
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.aclose()
    await suite.assert_stopped(tmp_path)


@needs_it
@pytest.mark.anyio
async def test_without_control_groups_each_process_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory of each process, and the share of the processors, where this machine lets us make no groups. Root is
    refused then: the kernel does not bound how many processes it begins."""
    monkeypatch.setattr("trunkline_sandbox.bubblewrap.cgroups.find_root", lambda: None)
    sandbox = Bubblewrap(SandboxSettings(), tmp_path / "home")
    if os.geteuid() == 0:
        assert "as an ordinary user" in (await sandbox.unavailable() or "")
        return
    ran = await sandbox.run(
        (
            "python3",
            "-c",
            "import os; print(len(os.sched_getaffinity(0))); x = bytearray(10**9); print('all of it')",
        ),
        workspace=tmp_path,
        env={},
    )
    assert ran.stdout == b"1\n"
    assert b"MemoryError" in ran.stderr


@needs_it
@pytest.mark.anyio
async def test_no_program_starts_during_panic(tmp_path: Path) -> None:
    """This holds without any worker; after the release programs start again."""
    sandbox = Bubblewrap(SandboxSettings(), tmp_path)
    KillSwitch(tmp_path).engage("a test")
    with pytest.raises(ToolError, match="trunkline panic --release"):
        await sandbox.run(("true",), workspace=tmp_path, env={})
    KillSwitch(tmp_path).release()
    assert (await sandbox.run(("true",), workspace=tmp_path, env={})).exit_code == 0


@pytest.mark.anyio
async def test_a_missing_bubblewrap_is_reported_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without bubblewrap, and where the machine keeps users from making namespaces."""
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox = Bubblewrap(SandboxSettings(), tmp_path)
    assert "apt install bubblewrap" in (await sandbox.unavailable() or "")
    with pytest.raises(ToolError, match="apt install bubblewrap"):
        await sandbox.run(("true",), workspace=tmp_path, env={})
    assert "sysctl" in with_remedy("bwrap: setting up uid map: Permission denied")
    assert "systempaths" in with_remedy("bwrap: Can't mount proc on /newroot/proc: Operation not permitted")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [("auto", ["bubblewrap", "docker"]), ("bubblewrap", ["bubblewrap"]), ("docker", ["docker"])],
)
def test_a_backend_that_is_named_is_not_replaced(wanted: str, names: list[str], tmp_path: Path) -> None:
    """Only ``auto`` falls back on the other one."""
    from trunkline_sandbox.plugin import trunkline_sandboxes

    class Given:
        home = tmp_path

        def section(self, kind: type) -> SandboxSettings:
            return SandboxSettings(backend=wanted)  # type: ignore[arg-type]

    found: list[trunkline.Sandbox] = list(trunkline_sandboxes(Given()))  # type: ignore[arg-type]
    assert [one.name for one in found] == names


@needs_it
@pytest.mark.anyio
async def test_a_running_program_cannot_redirect_a_mask(tmp_path: Path) -> None:
    """Programs that swap folders for links while others begin make no file outside, and see no secret."""
    secret = tmp_path / "workspace" / "inner" / "id_rsa"
    secret.parent.mkdir(parents=True)
    secret.write_text("a-secret")
    sandbox = Bubblewrap(SandboxSettings(), tmp_path / "home")
    swap = "mv inner kept; ln -s ../../oldroot/tmp inner; rm inner; mv kept inner; "
    swap += "mkdir own; : > own/x.env; rm -r own; ln -s ../../oldroot/tmp own; rm own"
    swap = f"i=0; while [ $i -lt 120 ]; do {swap}; i=$((i+1)); done"
    before = set(os.listdir("/tmp"))  # noqa: PTH208
    said: list[bytes] = []

    async def look() -> None:
        for _ in range(10):
            with suppress(ToolError):
                ran = await sandbox.run(
                    ("sh", "-c", "cat inner/id_rsa kept/id_rsa"), workspace=tmp_path / "workspace", env={}
                )
                said.append(ran.stdout)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await sandbox.run(("sh", "-c", swap), workspace=tmp_path / "workspace", env={})
    assert b"a-secret" not in b"".join(said)
    assert not {"id_rsa", "x.env"} & (set(os.listdir("/tmp")) - before)  # noqa: PTH208


@needs_it
@pytest.mark.anyio
async def test_protected_files_may_lie_deep(tmp_path: Path) -> None:
    """Each folder above one is mounted once, at any depth."""
    workspace = tmp_path / "workspace"
    for number in range(5):
        inner = workspace.joinpath(*["folder"] * 20, str(number))
        inner.mkdir(parents=True)
        (inner / "id_rsa").write_text("a-secret")
    sandbox = Bubblewrap(SandboxSettings(), tmp_path / "home")
    script = "grep -r a-secret . || wc -l < /proc/self/mountinfo"
    ran = await sandbox.run(("sh", "-c", script), workspace=workspace, env={})
    assert 0 < int(ran.stdout) < 200


@needs_it
@pytest.mark.anyio
async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    """The start is cancelled at any moment."""
    sandbox = Bubblewrap(SandboxSettings(), tmp_path / "home")
    for wait in range(30):
        with anyio.move_on_after(wait / 1000):
            await sandbox.run(("true",), workspace=tmp_path, env={})
    with anyio.fail_after(60):
        while dict(process_cleanup._open_handles(tmp_path / "home")):  # noqa: ASYNC110  the kernel takes its time
            await anyio.sleep(0.05)


GOING = """
import os, shutil, sys
sys.path.insert(0, sys.argv[1])
import file_masker

os.chdir(sys.argv[2])
open("empty", "w").close()
for name in ("a/id_rsa", "b/id_rsa", "c/d/id_rsa"):
    os.makedirs(os.path.dirname("work/" + name))
    open("work/" + name, "w").write("a-secret")

class Paths:
    def is_protected(parts):
        if parts[0] in ("a", "d"):  # at the worst moment: it was found, and is not hidden yet
            os.remove("work/a/id_rsa") if parts[0] == "a" else shutil.rmtree("work/c")
        return parts[1] == "id_rsa"

    def is_bare(folder):
        return False

    def hides_password(folder, name):
        return False

file_masker.WorkspaceMasker(os.open("empty", os.O_PATH), Paths, "").mask(os.open("work", os.O_RDONLY))
print(open("work/b/id_rsa").read() or "hidden")
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
@pytest.mark.namespace
def test_protected_files_removed_during_the_start_stop_no_program(tmp_path: Path) -> None:
    """A file or folder that is removed between its detection and its masking causes no error; the others are masked."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "/usr/bin/python3", "-c", GOING]
    done = subprocess.run(
        [*command, str(MASKER_PROGRAM.parent), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare failed" in done.stderr:
        pytest.skip("no namespaces can be made here")
    assert (done.returncode, done.stdout) == (0, "hidden\n"), done.stderr
