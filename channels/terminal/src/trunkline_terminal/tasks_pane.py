"""The pane with the background tasks of this machine. Reads their records; starts and ends none."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread

from trunkline.api.sandbox import DetachedProgram, list_programs, programs_folder
from trunkline_terminal import text_format
from trunkline_terminal.screen import Screen

REFRESH_SECONDS = 1.0

MOST_SHOWN = 20
"""The largest number of tasks that are listed: those that run, then the latest ones."""


class TasksPane:
    """The pane. ``home`` is the home folder whose tasks are shown, None for none."""

    def __init__(self, screen: Screen, home: Path | None) -> None:
        self._screen, self._home = screen, home
        self._open = False
        self._drawn = False
        self._changed = anyio.Event()

    async def run(self) -> None:
        """Keep the open pane true, until cancelled. Without this there is no pane."""
        self._drawn = True
        while True:
            self._screen.pane(await self.lines() if self._open else ())
            wait = REFRESH_SECONDS if self._open else float("inf")
            with anyio.move_on_after(wait):
                await self._changed.wait()
            self._changed = anyio.Event()

    async def toggle(self) -> bool:
        """Open or close the pane. Returns False where there is no pane."""
        if self._drawn:
            self._open = not self._open
            self._changed.set()
        return self._drawn

    async def lines(self) -> list[str]:
        """The tasks with their state, below a title."""
        tasks = await anyio.to_thread.run_sync(self._read)
        running = sum(state == "running" for _, state, _ in tasks)
        title = f"Background tasks: {running} running, {len(tasks) - running} ended."
        more = len(tasks) - MOST_SHOWN
        lines = [title if tasks else "There are no background tasks on this machine."]
        lines += [line for _, _, line in tasks[:MOST_SHOWN]]
        return [*lines, f"… and {more} more: trunkline tasks list"] if more > 0 else lines

    def _read(self) -> list[tuple[float, str, str]]:
        """Return the beginning, the state and the line of each task: what runs comes first, then the latest."""
        if self._home is None:
            return []
        found = [
            (_began(record), record.status(), block, record)
            for block in _blocks(self._home)
            for record in list_programs(programs_folder(self._home, block))
        ]
        found.sort(key=lambda one: (one[1] != "running", -one[0]))
        return [(began, state, _line(block, record, state, began)) for began, state, block, record in found]


def _blocks(home: Path) -> Iterator[str]:
    try:
        yield from sorted(entry.name for entry in (home / "tasks").iterdir() if entry.is_dir())
    except OSError:  # no task was ever started
        return


def _began(record: DetachedProgram) -> float:
    order = record.spec()
    return order.at.timestamp() if order else 0.0


def _line(block: str, record: DetachedProgram, state: str, began: float) -> str:
    order, ending = record.spec(), record.exit_record()
    command = " ".join(order.argv) if order else "(unknown)"
    until = ending.at.timestamp() if ending else datetime.now(UTC).timestamp()
    if ending is not None:
        state = ending.killed or (f"exit {ending.exit_code}" if ending.exit_code is not None else "failed")
    took = text_format.format_duration(max(until - began, 0.0)) if order else ""
    return f"  {record.name}  {block}  {state}  {took}  {text_format.shorten(command, 200)}"
