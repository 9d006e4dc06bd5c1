"""Limits that the kernel does not enforce on a program: memory without a control group, and the workspace's disk."""

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.contracts.sandbox.sandbox import SandboxResult
from trunkline_sandbox.bubblewrap import cgroups
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.settings import SandboxSettings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

Run = Callable[..., Awaitable[SandboxResult]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a program, without a control group unless ``grouped``. Root's programs would be refused then, because
    their number is not bounded; their memory and disk are watched like any other's."""
    (tmp_path / "work").mkdir()

    async def ran(
        program: str, *, grouped: bool = False, memory: int = 256, **settings: Any
    ) -> SandboxResult:
        if not grouped:
            monkeypatch.setattr("trunkline_sandbox.bubblewrap.cgroups.find_root", lambda: None)
            monkeypatch.setattr("trunkline_sandbox.bubblewrap.limits.os.geteuid", lambda: 1_000)
        sandbox = Bubblewrap(SandboxSettings(**settings), tmp_path / "home")
        words = ("/usr/bin/python3", "-c", program)
        limits = SandboxLimits(timeout=60.0, memory=memory)
        return await sandbox.run(words, workspace=tmp_path / "work", env={}, limits=limits)

    return ran


MAPPED = """
import mmap
held = [mmap.mmap(-1, 2**20) for _ in range(2_000)]
for one in held:
    for at in range(0, 2**20, 4096):
        one[at] = 1
print("all of it")
"""
"""Anonymous memory that is shared, of which each process's own limit knows nothing."""

IN_MEMFD = """
import os
held = [os.memfd_create(str(n)) for n in range(200)]
for one in held:
    for _ in range(10):
        os.write(one, b"x" * 2**20)
print("all of it")
"""

IN_FOLDERS = """
for folder in ("/dev/shm", "/tmp"):
    with open(folder + "/big", "wb") as file:
        try:
            for _ in range(2_000):
                file.write(b"x" * 2**20)
        except OSError:
            pass
held = bytearray(200 * 2**20)
for at in range(0, len(held), 4096):
    held[at] = 1
import time
time.sleep(20)
print("all of it")
"""

BY_MANY = """
import os, time
for _ in range(20):
    if os.fork() == 0:
        held = bytearray(50 * 2**20)
        for at in range(0, len(held), 4096):
            held[at] = 1
        time.sleep(30)
        os._exit(0)
time.sleep(20)
print("all of it")
"""


@pytest.mark.parametrize("program", [MAPPED, IN_FOLDERS, BY_MANY], ids=["shared", "folders", "many"])
async def test_memory_is_bounded_without_a_group(run: Run, program: str) -> None:
    """This holds for any kind of allocation, by any number of processes."""
    found = await run(program)
    assert found.killed == "memory" and b"all of it" not in found.stdout


async def test_uncountable_memory_cannot_be_allocated(run: Run) -> None:
    """Without a group there are no files in memory that no folder shows."""
    found = await run(IN_MEMFD)
    assert b"all of it" not in found.stdout and b"not implemented" in found.stderr


async def test_a_program_within_its_limits_is_not_ended(run: Run) -> None:
    """A program within its bounds ends by itself, also one that maps a large file sparsely."""
    program = "import mmap; one = mmap.mmap(-1, 2**32); one[0] = 1; open('a', 'w').write('x'); print('fine')"
    found = await run(program)
    assert (found.stdout, found.killed) == (b"fine\n", ""), found.stderr


ONE_FILE = """
with open("big", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
"""

MANY_FILES = """
import os
for folder in range(1_000):
    os.mkdir(str(folder))
    for number in range(1_000):
        open(f"{folder}/{number}", "w").write("x")
"""

REMOVED = """
import os
held = []
while True:
    held.append(open("gone", "wb"))
    os.unlink("gone")
    for _ in range(32):
        held[-1].write(b"x" * 2**20)
"""

SPARSE = """
import time
for number in range(20):
    with open(f"sparse-{number}", "wb") as file:
        file.truncate(2**29)
time.sleep(2)
print("fine")
"""


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("program", [ONE_FILE, MANY_FILES, REMOVED], ids=["one", "many", "removed"])
async def test_a_workspace_is_not_filled_beyond_its_bound(run: Run, program: str, grouped: bool) -> None:
    """The cases are one large file, many small ones, and unlinked files."""
    if grouped and cgroups.find_root() is None:
        pytest.skip("no control group can be created")
    # In a control group the files of a workspace count as memory, too, if the workspace is on a tmpfs.
    found = await run(program, grouped=grouped, workspace_mb=100, memory=4_096)
    assert found.killed == "disk"


async def test_a_sparse_file_counts_by_its_blocks(run: Run) -> None:
    """Its length is no disk."""
    found = await run(SPARSE, workspace_mb=100)
    assert (found.stdout, found.killed) == (b"fine\n", ""), found.stderr


async def test_a_full_workspace_can_be_cleared_up(run: Run, tmp_path: Path) -> None:
    """A program that removes the excess is not ended, nor one that only reads."""
    (tmp_path / "work/old").write_bytes(bytes(150 * 2**20))
    found = await run("import os, time; time.sleep(1); os.unlink('old'); print('fine')", workspace_mb=100)
    assert (found.stdout, found.killed) == (b"fine\n", ""), found.stderr
