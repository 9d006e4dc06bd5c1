"""The data outside of memory that a purge erases or reports: on the server, in the documents of conversations, and in
folders of the home.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec

from trunkline.contracts.documents.collections import DocumentCollections
from trunkline.contracts.memory.purge import Erased, RemainingCopy
from trunkline.contracts.memory.purger import Purge
from trunkline.contracts.retention import Retention
from trunkline.home.paths import Home
from trunkline.workers.memory.log_writer import LogWriter
from trunkline.workers.memory.purge.streams import StreamEraser
from trunkline.workers.memory.purge.unreachable_copies import unreachable_copies
from trunkline_bus import Bus

UNQUERIED = "It does not run in the memory worker, so it was not asked what it keeps. Look there yourself."


class ExternalData:
    """The data outside of one memory. ``unasked`` returns the plugins that a purge cannot query."""

    def __init__(
        self,
        bus: Bus,
        home: Home,
        retention: Retention,
        logs: LogWriter,
        collections: DocumentCollections,
        unasked: Callable[[], Iterable[str]],
    ) -> None:
        self._streams = StreamEraser(bus, retention)
        self._home = home
        self._retention = retention
        self._logs = logs
        self._collections = collections
        self._unasked = unasked

    async def prepare(self, purge: Purge) -> Purge:
        """Return the purge with the turns that the server knows. Raises Refusal if a turn is running, BusError,
        OSError.

        First copies the audit log and the cost ledger from their streams into memory, so that the purge loses none of
        their entries.
        """
        await self._streams.refuse_running(purge)
        await self._logs.write_pending()
        return msgspec.structs.replace(purge, turns=purge.turns | await self._streams.turns(purge))

    async def erase(self, purge: Purge) -> list[Erased]:
        """Erase the data of the conversations. Raises BusError."""
        erased = await self._streams.erase(purge)
        for conversation in sorted(purge.conversations):
            if count := await self._collections.clear(conversation):
                erased.append(Erased(where="documents of the conversation", count=count))
        return erased

    async def erase_orphans(self, purge: Purge) -> list[Erased]:
        """Erase what messages that were deleted have left. Takes up to two minutes. Raises BusError."""
        return await self._streams.erase_orphans(purge)

    @asynccontextmanager
    async def logs_paused(self) -> AsyncIterator[None]:
        """Add nothing to the files of the audit log and the cost ledger while the block runs."""
        async with self._logs.paused():
            yield

    async def remaining(self, purge: Purge) -> list[RemainingCopy]:
        """Return the data that the purge left. Raises BusError."""
        return [
            *await self._streams.remaining(purge),
            *(RemainingCopy(where=f"plugin {name}", what=UNQUERIED) for name in self._unasked()),
            *unreachable_copies(self._home, self._retention, datetime.now(UTC)),
        ]
