"""Watched folders: what changes in them is in memory soon after, across restarts, and nothing is half-read."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
import samples

from trunkline.documents import folder_watcher
from trunkline.testing.platform import Platform, clean_environ, platform


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watcher, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(folder_watcher, "PAUSE_FACTOR", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two documents."""
    place = tmp_path / "notes"
    place.mkdir()
    (place / "one.md").write_text("one")
    (place / "report.pdf").write_bytes(samples.pdf(["Sow in May."]))
    return place


async def until(happened: Callable[[], bool]) -> None:
    """Wait for something on the disk."""
    with anyio.fail_after(30):
        while not happened():  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(0.05)


def move(source: Path, target: Path) -> None:
    """Rename a folder."""
    source.rename(target)


def memory_files(running: Platform) -> dict[str, str]:
    """Return memory's files of the folder."""
    place = running.home.memory / "blocks/main/documents/notes"
    return {file.name: file.read_text() for file in place.rglob("*") if file.is_file()}


@pytest.mark.anyio
async def test_a_watched_folder_is_kept_up(tmp_path: Path, folder: Path) -> None:
    """New, changed and deleted files are noticed while it runs, and those of the meantime after a restart."""
    settings = {"documents.watch": [{"folder": str(folder), "block": "main", "prune": True}]}
    async with platform(tmp_path / "home", workers=("memory", "tools"), config=settings) as running:
        await until(lambda: set(memory_files(running)) == {"one.md", "report.pdf.md"})
        (folder / "two.md").write_text("two")
        (folder / "report.pdf").write_bytes(samples.pdf(["Sow in April."]))
        await until(
            lambda: "two.md" in memory_files(running) and "April" in memory_files(running)["report.pdf.md"]
        )
        (folder / "one.md").unlink()
        await until(lambda: set(memory_files(running)) == {"two.md", "report.pdf.md"})
    (folder / "two.md").unlink()
    (folder / "three.md").write_text("three")
    async with platform(tmp_path / "home", workers=("memory", "tools"), config=settings) as running:
        await until(lambda: set(memory_files(running)) == {"three.md", "report.pdf.md"})


@pytest.mark.anyio
async def test_a_folder_that_disappears_removes_nothing_from_memory(tmp_path: Path, folder: Path) -> None:
    """An unplugged drive removes nothing from memory; once it is back, watching continues."""
    settings = {"documents.watch": [{"folder": str(folder), "block": "main", "prune": True}]}
    async with platform(tmp_path / "home", workers=("memory", "tools"), config=settings) as running:
        await until(lambda: len(memory_files(running)) == 2)
        move(folder, tmp_path / "away")
        await anyio.sleep(0.5)
        assert len(memory_files(running)) == 2
        (tmp_path / "away" / "new.md").write_text("new")
        move(tmp_path / "away", folder)
        await until(lambda: len(memory_files(running)) == 3)


@pytest.mark.anyio
async def test_a_file_that_is_still_written_is_waited_for(tmp_path: Path, folder: Path) -> None:
    """A file that grows is brought once it has stopped, in one piece."""
    settings = {"documents.watch": [{"folder": str(folder), "block": "main"}]}
    async with platform(tmp_path / "home", workers=("memory", "tools"), config=settings) as running:
        await until(lambda: len(memory_files(running)) == 2)
        with (folder / "slow.txt").open("w") as file:
            for number in range(40):
                file.write(f"{number}\n")
                file.flush()
                await anyio.sleep(0.01)
        await until(lambda: memory_files(running).get("slow.txt", "").endswith("39\n"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C interrupts, also where a shell started the tests in the background, deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_watching_by_hand(tmp_path: Path, folder: Path) -> None:
    """``trunkline memory watch`` lists the files that it adds, and Ctrl-C ends it."""
    argv = [sys.executable, "-m", "trunkline.cli.main", "memory", "watch", str(folder), "--json"]
    env = {**clean_environ(), "TRUNKLINE_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        reported = watch.stdout.readline()
        assert '"documents/notes/one.md"' in reported
        (folder / "two.md").write_text("two")
        assert '"documents/notes/two.md"' in watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        watch.wait(20)
