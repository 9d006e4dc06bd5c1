"""The last words of a process: the traceback of a fatal signal or a stall, in a file that the next start reads.

Python's ``faulthandler`` writes the traceback in C, so it is written even when the interpreter lock is held or the
stack is broken. A process has one watchdog. Commands that run workers use it; tests and programs that embed a platform
need not.
"""

import contextlib
import faulthandler
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NoReturn, TextIO

import anyio

from trunkline._util.private_folders import make_private
from trunkline.config import Config
from trunkline.plugins.activity_log import activity_log_folder
from trunkline.plugins.quarantine import EXIT_MESSAGE, last_words_path

RESET_SECONDS = 1.0
"""Seconds between two resets of the stall timer by the event loop."""


@asynccontextmanager
async def run_watchdog(config: Config) -> AsyncIterator[None]:
    """Write last words within the context, and end the process when its event loop stalls.

    The process ends after ``[plugins] stall_timeout`` seconds: by then its workers have lost their leases, and other
    workers cannot see the reason.
    """
    path = last_words_path(activity_log_folder(config.home), os.getpid())
    if faulthandler.is_enabled():  # PYTHONFAULTHANDLER or pytest uses it already
        yield
        return
    try:
        make_private(path.parent)
        file = path.open("w")
    except OSError:
        yield
        return
    with file:
        faulthandler.enable(file)
        leave = os._exit
        os._exit = _exit_with_last_words(leave, file)  # type: ignore[assignment]
        try:
            async with anyio.create_task_group() as tasks:
                if stall := config.settings.plugins.stall_timeout:
                    tasks.start_soon(_keep_resetting, stall, file.fileno())
                yield
                tasks.cancel_scope.cancel()
        finally:
            os._exit = leave
            faulthandler.cancel_dump_traceback_later()
            faulthandler.disable()
            with contextlib.suppress(OSError):
                path.unlink()


def _exit_with_last_words(leave: Callable[[int], NoReturn], file: TextIO) -> Callable[[int], NoReturn]:
    """Return ``os._exit`` extended with last words, which show the caller."""
    process = os.getpid()

    def exit_with_report(status: int) -> NoReturn:
        if os.getpid() == process:  # a forked child exits without last words
            file.write(f"{EXIT_MESSAGE} ({status})\n\nCurrent thread:\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=False)
        leave(status)

    return exit_with_report


async def _keep_resetting(stall: float, file: int) -> None:
    while True:
        faulthandler.dump_traceback_later(stall, exit=True, file=file)
        await anyio.sleep(RESET_SECONDS)
