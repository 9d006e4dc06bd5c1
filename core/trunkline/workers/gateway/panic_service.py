"""PanicService: stops everything from the gateway. Only the owner's terminal releases the stop."""

import logging

import anyio.to_thread

from trunkline.errors import StorageError
from trunkline.home.kill_switch import KillSwitch, PanicRecord
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.panic_broadcast import PanicReplies, broadcast_panic
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

EVERY_BLOCK = "all"
"""The block of entries of the audit log that are about no single block."""


class PanicService:
    """Engages the kill switch of this home, and that of every other host over the bus.

    Guarantees: the stop stays until the owner releases it at the terminal. This process has no way to release it, and
    its NATS user may not send the release.
    """

    def __init__(self, bus: Bus, kill_switch: KillSwitch, audit: AuditLog) -> None:
        self._bus = bus
        self._kill_switch = kill_switch
        self._audit = audit

    def read(self) -> PanicRecord | None:
        """Return who stopped everything, and when; None if nothing is stopped. Raises nothing."""
        return self._kill_switch.read()

    async def stop(self, by: str) -> PanicReplies:
        """Stop every program, turn and model call, and return which workers have reported that they stopped.

        The bus need not answer, because the kill switch is a file. If that cannot be written, the workers are told
        nevertheless. Raises StorageError if neither reached any worker.
        """
        unwritten: StorageError | None = None
        try:
            await anyio.to_thread.run_sync(self._kill_switch.engage, by)
        except StorageError as error:
            log.error("%s", error)
            unwritten = error
        try:
            replies = await broadcast_panic(self._bus, by)
        except BusError as error:
            log.warning("panic cannot be announced on the bus: %s", error)
            replies = PanicReplies()
        if unwritten is not None and not replies.stopped:
            raise unwritten
        await self._audit.record(
            event="panic",
            block=EVERY_BLOCK,
            actor=by,
            by=(by,),
            why="Everything was stopped.",
            status="stopped",
        )
        return replies
