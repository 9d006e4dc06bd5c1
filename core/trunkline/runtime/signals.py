"""The signals that stop a process: the first one drains, a second one exits at once.

Abandoned work must not keep the process alive: Python waits for its threads and asyncio for its tasks without
limit.
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
"""Seconds that closing may take besides draining."""

THREADS_END = 1.0
"""Seconds that all threads together have to end when everything else has ended."""


async def stop_on_signals(
    stop: anyio.Event,
    *,
    timeout: float,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Set ``stop`` on the first of SIGINT, SIGTERM and SIGHUP, and exit on the second.

    The process also exits ``timeout`` seconds after the first signal, even if work still runs. An immediate exit loses
    no acknowledged message, and child processes end with this process. Tasks are not cancelled instead, because
    cancellation would interrupt start-up and clean-up at arbitrary places, with a traceback each.
    """
    with anyio.open_signal_receiver(*STOPPING) as received:
        task_status.started()
        async for number in received:
            if stop.is_set():
                log.warning("%s again: leaving at once", number.name)
                exit_immediately(128 + number)
            log.info("%s: draining; a second signal exits at once", number.name)
            _exit_after(timeout, number)
            stop.set()


def stop_timeout(config: Config) -> float:
    """Return the seconds that a process may take to stop: the drain timeouts and CLOSING."""
    return config.settings.monitor.drain_timeout + config.settings.tools.drain_timeout + CLOSING


def exit_process(status: int) -> NoReturn:
    """Exit with this status. Waits at most THREADS_END seconds for threads, such as those of abandoned tools."""
    deadline = time.monotonic() + THREADS_END
    for thread in _threads():
        thread.join(max(0.0, deadline - time.monotonic()))
    if _threads():
        exit_immediately(status)
    sys.exit(status)


def _threads() -> list[threading.Thread]:
    """Return the threads that Python would wait for at exit."""
    main = threading.main_thread()
    return [thread for thread in threading.enumerate() if thread is not main and not thread.daemon]


def _exit_after(seconds: float, number: signal.Signals) -> None:
    timer = threading.Timer(
        seconds, exit_immediately, (128 + number,), {"why": f"{seconds:g} s after {number.name}"}
    )
    timer.daemon = True
    timer.start()


def exit_immediately(status: int, *, why: str = "") -> NoReturn:
    """Exit with this status at once, even if threads or tasks still run."""
    if why:
        log.error("a thread or task does not end; the process exits %s", why)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
