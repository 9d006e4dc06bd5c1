"""What the owner is told of background tasks that have ended, and of which nobody is told."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.buses import bus_at
from trunkline import LifespanContext
from trunkline.api.bus import Bus
from trunkline.api.sandbox import DetachedProgram, ExitRecord, ProgramSpec, programs_folder
from trunkline.api.testing import wait_until
from trunkline.api.text import Redactor
from trunkline.contracts.channels.subjects import TELL_OWNER
from trunkline.contracts.gateway.messages import CommandSucceeded, TellOwner
from trunkline_bus import Request, service
from trunkline_shell.program_notices import ProgramNotices
from trunkline_shell.settings import ShellSettings
from trunkline_shell.tasks import TaskStore

pytestmark = pytest.mark.anyio

TOKEN = "sk-proj-" + "Zx81Kq" * 8


def ended(
    home: Path, name: str, command: str = "true", *, ago: float = 60.0, killed: str = ""
) -> DetachedProgram:
    """A task that ended some seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    record = left(home, name, command, ago=ago + 1.0)
    record.write_exit(ExitRecord(at=at, exit_code=None if killed else 0, killed=killed))
    return record


def left(home: Path, name: str, command: str = "true", *, ago: float) -> DetachedProgram:
    """A task that was ordered some seconds ago, and whose supervisor is gone."""
    record = DetachedProgram(programs_folder(home, "main") / name)
    order = ProgramSpec(
        home=str(home), backend="none", argv=("sh", "-c", command), workspace=str(home), env={}, folder="",
        label="", seconds=60.0, memory=1, cpus=1.0, processes=1, network=False, writable=False,
        at=datetime.now(UTC) - timedelta(seconds=ago),
    )  # fmt: skip
    os.close(record.create(order))
    return record


@asynccontextmanager
async def telling(home: Path, bus: Bus, *more: str) -> AsyncIterator[list[TellOwner]]:
    """What the channel ``bell`` is told, while notices are handed to it and to others that do not run."""
    told: list[TellOwner] = []

    async def tell(request: Request[TellOwner]) -> CommandSucceeded:
        told.append(request.data)
        return CommandSucceeded()

    notices = ProgramNotices(TaskStore(home, ShellSettings()), (*more, "bell"), Redactor())
    async with service(bus, name="channels", version="1") as channels:
        await channels.add(TELL_OWNER, tell, channel="bell")
        async with notices(LifespanContext("tools", bus, "shell")):
            yield told


async def test_a_secret_in_a_command_is_not_told(tmp_path: Path) -> None:
    """Not even a part of one that is cut off."""
    ended(tmp_path, "00000001", f'curl -H "Authorization: Bearer {TOKEN}" https://a.example')
    ended(tmp_path, "00000002", f"echo {'x' * 170} {TOKEN}")
    async with bus_at(tmp_path / "bus") as bus, telling(tmp_path, bus) as told:
        await wait_until(lambda: len(told) == 2)
    assert "curl" in told[0].text and "a.example" in told[0].text
    assert all(TOKEN[:12] not in one.text for one in told), told


async def test_a_task_of_which_nobody_is_told_is_read_once(tmp_path: Path) -> None:
    """One that somebody ended, and those whose end is no news any more. The one that is told is none of them."""
    day = 86_400.0 + 100.0
    unsaid = [
        ended(tmp_path, "00000001", killed="cancelled"),
        ended(tmp_path, "00000002", ago=day),
        left(tmp_path, "00000003", ago=day),
    ]
    begun, news = left(tmp_path, "00000004", ago=0.0), ended(tmp_path, "00000005")
    lost = left(tmp_path, "00000006", ago=100.0)
    async with bus_at(tmp_path / "bus") as bus, telling(tmp_path, bus) as told:
        await wait_until(lambda: news.is_told and lost.is_told)
        assert all(record.is_told for record in unsaid) and not begun.is_told
    assert [one.notice for one in told] == ["program-main-00000005", "program-main-00000006"]
