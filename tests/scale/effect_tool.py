"""A tool with an effect outside: the worker of each call, and the correctness of the model's results."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from trunkline.contracts.turns.journal_messages import ToolFinished, ToolPlanned
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.platform import PlatformClient

PLUGIN = '''
"""A tool that takes its time and leaves a line: what it was sent for, and who went."""
import os
import time
import trunkline

@trunkline.tool(effect="write")
def job(file: str, mark: str, seconds: float) -> str:
    """Run a job."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, f"{mark} {os.getpid()}\\n".encode())
    finally:
        os.close(handle)
    time.sleep(seconds)
    return f"done {mark}"

@trunkline.hookimpl
def trunkline_tools():
    return [job]
'''


def job(file: Path, mark: str, seconds: float) -> str:
    """The line of a program that sends for it."""
    return f"call:job {json.dumps({'file': str(file), 'mark': mark, 'seconds': seconds})}"


def runners(file: Path) -> Counter[int]:
    """Return the number of calls that each process ran."""
    return Counter(int(pid) for _, pid in _lines(file))


@dataclass(slots=True)
class JobCounts:
    """``twice``: run more than once; ``untrue``: reported as done and not run; ``unknown``: reported as unknown."""

    ran: int = 0
    twice: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """Every promise that was not kept."""
        return [*(f"run twice: {mark}" for mark in self.twice), *(f"not run: {mark}" for mark in self.untrue)]


async def job_counts(talker: PlatformClient, file: Path) -> JobCounts:
    """Compare the executed calls with the outcomes that the models received."""
    done = Counter(mark for mark, _ in _lines(file))
    found = JobCounts(ran=done.total(), twice=[mark for mark, count in done.items() if count > 1])
    calls: dict[str, str] = {}
    async for record in talker.bus.history(JOURNAL):
        for entry in record.data.entries:
            if isinstance(entry, ToolPlanned):
                calls[entry.call.id] = str(entry.call.arguments.get("mark"))
            elif isinstance(entry, ToolFinished):
                mark = calls[entry.call_id]
                if entry.outcome.status == "ok" and not done[mark]:
                    found.untrue.append(mark)
                elif entry.outcome.status != "ok":
                    found.unknown.append(f"{mark}: {entry.outcome.status} {entry.outcome.output}")
    return found


def _lines(file: Path) -> list[list[str]]:
    """Mark and process of each; a line that is not whole yet is left out."""
    text = file.read_text() if file.exists() else ""
    return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
