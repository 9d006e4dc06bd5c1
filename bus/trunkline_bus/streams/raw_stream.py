"""The messages of a stream as bytes, and the erasing of single messages: overwritten on the server's disk, not only
unlisted.

``delete`` and ``purge`` of the typed access free room; the server leaves the bytes in its files until it writes there
again. Who must be sure that a text is gone erases.
"""

from collections.abc import AsyncIterator

from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import StreamError
from trunkline_bus.streams.jetstream import records, request_api
from trunkline_bus.streams.jetstream_protocol import NO_MESSAGE, StoredRecord

_ERASE_SECONDS = 30.0
_NOT_THERE = 10057
"""The server cannot delete what is not there."""


class RawStream:
    """One stream by its name."""

    def __init__(self, link: NatsConnection, name: str) -> None:
        self.name = name
        self._link = link

    def records(self, filter: str = ">") -> AsyncIterator[StoredRecord]:
        """All stored messages whose subject matches, oldest first. Raises ``StreamError`` kinds."""
        return records(self._link, self.name, filter)

    async def erase(self, seq: int) -> None:
        """Overwrite a message and remove it; one that is gone stays gone. Raises ``StreamError`` kinds."""
        try:
            await request_api(
                self._link, f"STREAM.MSG.DELETE.{self.name}", {"seq": seq}, timeout=_ERASE_SECONDS
            )
        except StreamError as error:
            if error.code not in (NO_MESSAGE, _NOT_THERE):
                raise
