"""The identities in memory, read again whenever memory reports a change of one of their files."""

import logging
from collections.abc import Callable, Mapping

import anyio

from trunkline.contracts.auth.identity import (
    IDENTITY_ENDING,
    IDENTITY_FOLDER,
    IdentityRecord,
    decode_identity,
)
from trunkline.contracts.memory.bus_transport import read_files
from trunkline.contracts.memory.files import ListMemory, MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED, MEMORY_LIST
from trunkline_bus import Bus, BusError, ReceivedMessage, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

TIMEOUT = 5.0
RELOAD_SECONDS = 60.0
"""Seconds after which the files are read again, in case an event of memory was lost."""

Identities = Mapping[str, IdentityRecord]


async def read_identities(bus: Bus) -> dict[str, IdentityRecord]:
    """Return all identities by id. A file that is no identity counts as no identity, and is logged. Raises BusError."""
    try:
        listing = await bus.call(
            MEMORY_LIST, ListMemory(path=IDENTITY_FOLDER), timeout=TIMEOUT, repeatable=True
        )
    except RemoteFault as fault:
        if fault.code == "not_found":
            return {}
        raise
    paths = [one.path for one in listing.entries if one.kind == "file" and one.path.endswith(IDENTITY_ENDING)]
    found: dict[str, IdentityRecord] = {}
    for file in await read_files(bus, tuple(paths), timeout=TIMEOUT):
        try:
            record = decode_identity(file.path, file.content)
        except ValueError as error:
            log.warning("%s is not an identity, so nobody may enter by it: %s", file.path, error)
        else:
            found[record.id] = record
    return found


class IdentityFiles:
    """The identities as memory has them. ``run`` keeps them current; ``changed`` is called after each read.

    ``records`` is None before the first read, and while memory does not answer after a change: then nobody but the
    owner may enter.
    """

    def __init__(self, bus: Bus, changed: Callable[[], None]) -> None:
        self._bus = bus
        self._changed = changed
        self._dirty = anyio.Event()
        self.records: Identities | None = None

    async def run(self) -> None:
        """Read the identities now and after each change, until cancelled."""
        await self._bus.subscribe(MEMORY_CHANGED, self._memory_changed, limit=1, part="files")
        undo = self._bus.on_reconnect(self._reconnected)
        backoff = Backoff(0.1, 1.0)
        try:
            while True:
                self._dirty = anyio.Event()
                try:
                    self.records = await read_identities(self._bus)
                except BusError as error:
                    log.debug("the identities cannot be read now: %s", error)
                    self.records = None
                    await backoff.sleep()
                    continue
                backoff.reset()
                self._changed()
                with anyio.move_on_after(RELOAD_SECONDS):
                    await self._dirty.wait()
        finally:
            undo()

    async def _memory_changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        if any(path.startswith(f"{IDENTITY_FOLDER}/") for path in message.data.paths):
            self._dirty.set()

    async def _reconnected(self) -> None:
        self._dirty.set()
