"""Notes what was decided and done, without ever making anybody wait for it.

A line is given to a queue and stored on the stream from there. When it cannot be stored, that is said in the log and
the work goes on; while the queue is full the oldest lines are lost, and their number is said.
"""

import logging
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import anyio

from trunkline.config.settings import AuditDetail
from trunkline.messages.audit import AuditEntry
from trunkline.subjects import AUDIT
from trunkline_bus import Bus, BusError, new_id

log = logging.getLogger(__name__)

MOST_WAITING = 10_000
PAUSE = 5.0
"""Seconds before what could not be stored is tried again."""

STANDARD_LENGTH, VERBOSE_LENGTH = 200, 10_000
"""Characters of each argument, and of the result when the detail is verbose."""


class AuditLog:
    """Takes lines at any time; ``keep`` stores them, for ever."""

    def __init__(self, bus: Bus, detail: AuditDetail) -> None:
        self._bus = bus
        self._detail = detail
        self._waiting: deque[AuditEntry] = deque()
        self._some = anyio.Event()
        self._lost = 0

    def note(self, **fields: Any) -> None:
        """Add a line; the fields are those of ``AuditEntry`` but ``id`` and ``at``. Returns at once."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append(entry(**fields))
        self._some.set()

    def content(self, arguments: Mapping[str, Any] | str, output: str = "") -> dict[str, Any]:
        """What a line says of arguments and result, as the detail wants it."""
        if self._detail == "minimal":
            return {}
        most = VERBOSE_LENGTH if self._detail == "verbose" else STANDARD_LENGTH
        given = arguments if isinstance(arguments, Mapping) else {"": arguments}
        told = {name: _cut(str(value), most) for name, value in given.items()}
        return {"arguments": told, "output": _cut(output, most) if self._detail == "verbose" else ""}

    async def keep(self) -> None:
        """Store what is noted, until cancelled; then what still waits, for a moment."""
        try:
            while True:
                await self._some.wait()
                self._some = anyio.Event()
                while not await self._store():  # noqa: ASYNC110 - a disk has no event to wait for
                    await anyio.sleep(PAUSE)
        finally:
            with anyio.move_on_after(2.0, shield=True):
                await self._store()

    async def _store(self) -> bool:
        while self._waiting:
            line = self._waiting[0]
            try:
                await self._bus.append(AUDIT, line, msg_id=line.id, block=line.block)
            except BusError as error:
                log.error("the audit log cannot be kept now (%d lines wait): %s", len(self._waiting), error)
                return False
            if self._waiting and self._waiting[0] is line:
                self._waiting.popleft()
        if self._lost:
            log.error("%d lines of the audit log were lost: they could not be kept in time", self._lost)
            self._lost = 0
        return True


def entry(**fields: Any) -> AuditEntry:
    """A line, with an id and the time."""
    return AuditEntry(id=new_id("audit"), at=datetime.now(UTC), **fields)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
