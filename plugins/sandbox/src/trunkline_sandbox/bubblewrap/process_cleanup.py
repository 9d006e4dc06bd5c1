"""Finds and ends the programs of a home among all processes of this machine, whoever began them."""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trunkline_sandbox.labels import VARIABLE, home_id

WAIT_SECONDS = 1.5
"""Seconds for which their end is waited for."""


def end_all(home: Path) -> int:
    """Kill every bubblewrap of this home, the outer ones and those within; how many programs there were.

    What is killed is what was looked at, even when its number is given to another process meanwhile: handles are held.
    """
    handles = dict(_open_handles(home))
    within = {process for process in handles if _parent(process) in handles}
    try:
        # The outer ones first: one that sees its program end would tell that as the program's own doing.
        for process in (*(handles.keys() - within), *within):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handles[process], signal.SIGKILL)
        _wait([*handles.values()])
    finally:
        for handle in handles.values():
            os.close(handle)
    return len(handles) - len(within)


def end_orphans(home: Path) -> None:
    """Kill what a worker left that was killed while bubblewrap was still at work: the first process of a namespace,
    without the bubblewrap that made it. No program has begun in it, and none would."""
    handles = dict(_open_handles(home))
    try:
        for process, handle in handles.items():
            if _is_namespace_init(process) and _parent(process) not in handles:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        for handle in handles.values():
            os.close(handle)


def _is_namespace_init(process: int) -> bool:
    """Report whether it is the first one of a namespace within ours."""
    numbers = _status(process, "NSpid:")
    return len(numbers) > 1 and numbers[-1] == "1"


def _open_handles(home: Path) -> Iterator[tuple[int, int]]:
    wanted = home_id(home)
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            handle = os.pidfd_open(int(folder.name))
            if _is_ours(folder, wanted):
                yield int(folder.name), handle
            else:
                os.close(handle)


def _is_ours(folder: Path, name: str) -> bool:
    """Report whether the process is bubblewrap with the mark of the home; any program may write what it likes into
    its own command line, but none in a sandbox is bubblewrap.
    """
    with suppress(OSError):
        words = (folder / "cmdline").read_bytes().split(b"\0")
        marked = words[1:3] == [b"--setenv", VARIABLE.encode()] and words[3].split()[:1] == [name.encode()]
        return marked and Path(os.readlink(folder / "exe")).name == "bwrap"  # noqa: PTH115
    return False


def _parent(process: int) -> int:
    return int(next(iter(_status(process, "PPid:")), "0"))


def _status(process: int, name: str) -> list[str]:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(name):
                return line.split()[1:]
    return []


def _wait(handles: list[int]) -> None:
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    waiting = len(handles)
    while waiting:
        ended = poll.poll(WAIT_SECONDS * 1000)
        if not ended:
            return
        for handle, _ in ended:
            poll.unregister(handle)
            waiting -= 1
