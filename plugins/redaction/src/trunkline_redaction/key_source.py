"""The key of the placeholders: random, the same in all monitors and after restarts."""

import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trunkline import LifespanContext
from trunkline.api.bus import Bus, BusError, SequenceConflict
from trunkline.api.model import REDACTION_BUCKET, RedactionKey

log = logging.getLogger(__name__)

ENTRY = "placeholders"
KEY_BYTES = 32


class KeySource:
    """Holds the key. Until the bus gave it, and without a bus, it is a random key of this process: then placeholders
    differ from those of other processes, which costs prompt caches and nothing else.
    """

    def __init__(self) -> None:
        self.key = secrets.token_bytes(KEY_BYTES)

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Take the key from the bus, or put a new one there."""
        try:
            self.key = bytes.fromhex((await _shared_key(context.bus, self.key)).key)
        except (BusError, ValueError) as error:
            log.warning("the key of placeholders cannot be shared with other monitors: %s", error)
        yield


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
    except SequenceConflict:  # another monitor was first
        return await _shared_key(bus, new)
    return key
