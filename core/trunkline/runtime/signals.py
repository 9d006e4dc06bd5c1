"""The signals that stop a process: the first one drains, a second one leaves at once.

What was given up may not keep a process: Python waits for its threads, asyncio for its tasks, both without end.
"""

import logging
import os
import signal
import sys
import threading
import time
from typing import NoReturn

import anyio

from trunkline.config import Config

log = logging.getLogger(__name__)

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

CLOSING = 15.0
"""Seconds that closing may take besides the drains."""

THREADS_END = 1.0
"""Seconds that threads have to end, all of them together, when everything else has."""


async def stop_on_signals(
    stop: anyio.Event,
    *,
    patience: float,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Set ``stop`` on the first of SIGINT, SIGTERM and SIGHUP, and end the process on the second.

    The process also ends ``patience`` seconds after the first, whatever still runs in it. Being killed loses nothing
    that was acknowledged, and the processes that it started die with it. To cancel everything instead would leave
    start-up and clean-up half done at places that nobody chose, with a traceback each.
    """
    with anyio.open_signal_receiver(*STOPPING) as received:
        task_status.started()
        async for number in received:
            if stop.is_set():
                log.warning("%s again: leaving at once", number.name)
                exit_immediately(128 + number)
            log.info("%s: draining; again to leave at once", number.name)
            _exit_after(patience, number)
            stop.set()


def stop_timeout(config: Config) -> float:
    """Return the seconds that a process may take to stop: what its drains are given, and some for the rest."""
    return config.settings.monitor.drain_timeout + config.settings.tools.drain_timeout + CLOSING


def exit_process(status: int) -> NoReturn:
    """End the process with this status. Threads of tools that were given up are not waited for."""
    deadline = time.monotonic() + THREADS_END
    for thread in _threads():
        thread.join(max(0.0, deadline - time.monotonic()))
    if _threads():
        exit_immediately(status)
    sys.exit(status)


def _threads() -> list[threading.Thread]:
    """The threads that Python would wait for."""
    main = threading.main_thread()
    return [thread for thread in threading.enumerate() if thread is not main and not thread.daemon]


def _exit_after(seconds: float, number: signal.Signals) -> None:
    timer = threading.Timer(
        seconds, exit_immediately, (128 + number,), {"why": f"{seconds:g} s after {number.name}"}
    )
    timer.daemon = True
    timer.start()


def exit_immediately(status: int, *, why: str = "") -> NoReturn:
    """End the process with this status, whatever runs in it."""
    if why:
        log.error("something here does not end; the process ends %s all the same", why)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
