"""The key of the placeholders: random, the same in all processes that ask vendors, and after restarts."""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from trunkline import LifespanContext
from trunkline.api.bus import Bus, BusError, SequenceConflict
from trunkline.api.model import REDACTION_BUCKET, RedactionKey

log = logging.getLogger(__name__)

ENTRY = "placeholders"
KEY_BYTES = 32


RETRY_SECONDS = 5.0
"""Seconds between two attempts to read the key from the bus."""


class KeySource:
    """Holds the key. Until the bus gave it, and without a bus, it is a random key of this process: then placeholders
    differ from those of other processes, which costs prompt caches. ``is_shared`` is True when the bus gave the key.
    """

    def __init__(self) -> None:
        self.key = secrets.token_bytes(KEY_BYTES)
        self.is_shared = False

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Take the key from the bus, or put a new one there. If the bus does not answer, ask it again until it does."""
        async with anyio.create_task_group() as tasks:
            try:
                await self._take(context.bus)
            except (BusError, ValueError) as error:
                log.warning("the key of placeholders cannot be shared with other processes yet: %s", error)
                tasks.start_soon(self._take_later, context.bus)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def _take(self, bus: Bus) -> None:
        self.key = bytes.fromhex((await _shared_key(bus, self.key)).key)
        self.is_shared = True

    async def _take_later(self, bus: Bus) -> None:
        while not self.is_shared:
            await anyio.sleep(RETRY_SECONDS)
            try:
                await self._take(bus)
            except (BusError, ValueError) as error:
                log.debug("the key of placeholders cannot be shared yet: %s", error)


async def _shared_key(bus: Bus, new: bytes) -> RedactionKey:
    """Return the key on the bus, which is ``new`` if there was none. It is stored again, so that it does not expire."""
    bucket = bus.kv(REDACTION_BUCKET)
    entry = await bucket.get(ENTRY)
    key = RedactionKey(key=new.hex()) if entry is None or entry.value is None else entry.value
    try:
        if entry is None:
            await bucket.create(ENTRY, key)
        else:
            await bucket.update(ENTRY, key, entry.revision)
    except SequenceConflict:  # another process was first
        return await _shared_key(bus, new)
    return key
