"""How a process is asked to stop: the first signal drains, a second one leaves at once."""

import logging
import signal

import anyio

log = logging.getLogger(__name__)

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def stop_on_signals(
    stop: anyio.Event,
    leave: anyio.CancelScope,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Set ``stop`` on the first of SIGINT, SIGTERM and SIGHUP, and cancel ``leave`` on the second."""
    with anyio.open_signal_receiver(*STOPPING) as received:
        task_status.started()
        async for number in received:
            if stop.is_set():
                log.warning("%s again: leaving at once", number.name)
                leave.cancel()
                return
            log.info("%s: draining; again to leave at once", number.name)
            stop.set()
