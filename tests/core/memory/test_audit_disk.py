"""The audit log on a full disk: calls continue, the fault is reported, and no line is lost once there is room again."""

import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from trunkline.testing.platform import platform
from trunkline.testing.tool_calls import call_tool
from trunkline.workers.memory import log_writer

pytestmark = pytest.mark.anyio

MEGABYTES = 8


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A home whose memory lies on a small disk."""
    memory = tmp_path / "home/memory"
    memory.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(memory)]
    done = subprocess.run(mount, check=False, capture_output=True)
    if done.returncode != 0:
        pytest.skip("needs the right to mount a small file system (root)")
    yield tmp_path / "home"
    subprocess.run(["umount", "--lazy", str(memory)], check=True)


@pytest.mark.namespace
async def test_a_full_disk_blocks_no_call_and_loses_no_audit_line(
    small: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines wait on their stream until there is room."""
    monkeypatch.setattr(log_writer, "COMMIT_INTERVAL", 0.2)
    caplog.set_level(logging.ERROR)
    async with platform(small, workers=("memory", "tools", "gateway")) as running:
        big = small / "memory/.git/big"
        with big.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(64 * 1024))
        outcome = await call_tool(running.bus, "write_file", {"path": "a.md", "content": "x"})
        assert outcome.status == "ok" and (running.home.workspace("main") / "a.md").read_text() == "x"
        await until(lambda: "audit log cannot be written into memory now" in caplog.text)
        assert lines(small) == 0
        big.unlink()
        await until(lambda: lines(small) == 2)


def lines(home: Path) -> int:
    """Return the number of memory's lines about the call: its decision, and its outcome."""
    days = (home / "memory/audit").glob("*.jsonl")
    return sum(line.count('"write_file"') for file in days for line in file.read_text().splitlines())


async def until(due: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not due():  # noqa: ASYNC110  another task writes it
            await anyio.sleep(0.1)
