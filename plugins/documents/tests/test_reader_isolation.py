"""Readers that misbehave: each costs its own file and nothing else."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import anyio
import pytest
from misbehaving_reader import Bad

from trunkline.api.documents import UnreadableDocument
from trunkline.config.settings import DocumentsSettings
from trunkline.documents.reader_pool import reader_pool

pytestmark = pytest.mark.anyio


async def ends(command: str) -> None:
    """Wait until no process has this command line."""
    with anyio.fail_after(60):
        while command in (await anyio.run_process(["ps", "-eo", "args"])).stdout.decode():  # noqa: ASYNC110
            await anyio.sleep(0.05)


def landlock_works() -> bool:
    """Report whether this kernel has Landlock, with every required right."""
    return bool(ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6)


def written(folder: Path) -> bool:
    """Report whether a file in the folder has content."""
    return any(file.stat().st_size for file in folder.iterdir())


async def done(deed: str, **bounds: Any) -> str:
    """Return the result of one action, and check that the next file is read."""
    async with reader_pool(
        DocumentsSettings(**{"read_timeout": 10, "read_memory_mb": 256, **bounds})
    ) as pool:
        for this in (deed, "fine"):
            with TemporaryFile() as file:
                file.write(this.encode())
                file.seek(0)
                try:
                    text = (await pool.read(Bad(), file, "a.bad")).sections[0].text
                except UnreadableDocument as error:
                    text = error.sentence
            if this == deed:
                outcome = text
    assert text == "fine"
    return outcome


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("swell", "it needs more than 256 MB of memory"),
        ("crash", "it crashes its reader, or needs more than 256 MB of memory (SIGABRT)"),
        ("leave", "it crashes its reader, or needs more than 256 MB of memory (status 7)"),
        ("raise_error", "it is broken (ValueError: half of it is missing)"),
        ("dive", "it is broken: it is nested too deeply"),
        ("flood", "it holds more than 16 million characters"),
        ("nothing", "it contains no text"),
        ("print_much", "quiet"),
        ("half_letters", "a?bc"),
    ],
)
async def test_a_bad_reader_is_reported_and_survived(deed: str, reason: str) -> None:
    """For any failure of the process, the reason is one sentence and the next file is read."""
    assert await done(deed) == reason


@pytest.mark.parametrize("deed", ["hang", "spin", "child"])
async def test_a_reader_that_does_not_end_is_ended(deed: str) -> None:
    """Asleep, busy, or waiting for a program: killed with all it started when the time is over."""
    assert await done(deed, read_timeout=3) == "reading it took longer than 3 s"
    await ends("sleep 3600.5")


async def test_a_reader_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a byte, wherever it may."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    await done("write")
    assert not written(tmp_path)


@pytest.mark.skipif(sys.platform != "linux" or not landlock_works(), reason="needs Landlock (Linux 5.13)")
@pytest.mark.parametrize("deed", ["write", "cut", "remove", "make", "rename", "kill"])
async def test_a_reader_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str) -> None:
    """Files are neither made, cut, renamed nor removed, and no other process is signalled."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Path(tmp_path, "held").write_text("held")  # noqa: ASYNC240
    assert "it is broken (Permission" in await done(deed)
    assert [(file.name, file.read_text()) for file in sorted(Path(tmp_path).iterdir())] == [("held", "held")]  # noqa: ASYNC240


@pytest.mark.skipif(sys.platform != "linux", reason="needs network namespaces of Linux")
async def test_a_reader_has_no_network() -> None:
    """On a system where a process can give up its network, the reader has none."""
    reported = await done("call_out")
    if "refused" in reported:
        pytest.skip("this system lets no process give up its network")
    assert "unreachable" in reported or "Permission denied" in reported


async def test_a_reader_sees_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment holds what finds programs and nothing that was meant for us."""
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    assert "OPENAI_API_KEY" not in await done("secrets")


async def test_cancelling_ends_the_process() -> None:
    """A cancelled caller leaves no process."""
    async with reader_pool(DocumentsSettings(read_timeout=60, read_memory_mb=256)) as pool:
        with TemporaryFile() as file, anyio.move_on_after(1.0) as scope:
            file.write(b"child")
            file.seek(0)
            await pool.read(Bad(), file, "a.bad")
    assert scope.cancelled_caught
    await ends("sleep 3600.5")


async def test_a_reader_that_cannot_be_pickled_is_named() -> None:
    """An object with an open file gets an error that names it, instead of pickle's."""
    reader = Bad()
    reader.lock = open(os.devnull)  # type: ignore[attr-defined]  # noqa: SIM115, PTH123, ASYNC230
    async with reader_pool(DocumentsSettings()) as pool:
        with (
            pytest.raises(UnreadableDocument, match="the reader bad cannot travel"),
            TemporaryFile() as file,
        ):
            await pool.read(reader, file, "a.bad")
    reader.lock.close()  # type: ignore[attr-defined]


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    """A killed platform leaves no reader behind, not even one that hangs."""
    program = (
        "import sys, time; from tempfile import TemporaryFile; sys.path.insert(0, sys.argv[1])\n"
        "from misbehaving_reader import Bad\n"
        "from trunkline.config.settings import DocumentsSettings\n"
        "from trunkline.documents.reader_pool import ReaderProcess\n"
        "file = TemporaryFile(); file.write(b'hang'); file.seek(0)\n"
        "process = ReaderProcess(DocumentsSettings())\n"
        "print(process._process.pid, flush=True)\n"
        "process.read(Bad(), file, 'a.bad')\n"
    )
    here = str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": here}
    with subprocess.Popen(
        [sys.executable, "-c", program, here], stdout=subprocess.PIPE, env=env, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.5)
        parent.kill()
    deadline = time.monotonic() + 60
    while _is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
