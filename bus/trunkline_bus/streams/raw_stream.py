"""The messages of a stream as bytes, and the erasure of single messages, which overwrites them on the server's disk.

``delete`` and ``purge`` of the typed access only free space: the bytes stay in the server's files until the server
overwrites them. Use ``erase`` if a text must not remain on the disk.
"""

from collections.abc import AsyncIterator

from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import StreamError
from trunkline_bus.streams.jetstream import records, request_api
from trunkline_bus.streams.jetstream_protocol import NOT_STORED, StoredRecord

_ERASE_SECONDS = 30.0


class RawStream:
    """A stream, by its name."""

    def __init__(self, link: NatsConnection, name: str) -> None:
        self.name = name
        self._link = link

    def records(self, filter: str = ">") -> AsyncIterator[StoredRecord]:
        """Yield all stored messages whose subject matches, the oldest first. Raises ``StreamError``."""
        return records(self._link, self.name, filter)

    async def erase(self, seq: int) -> None:
        """Overwrite a message and delete it. A message that does not exist is no error. Raises ``StreamError``
        kinds.
        """
        try:
            await request_api(
                self._link, f"STREAM.MSG.DELETE.{self.name}", {"seq": seq}, timeout=_ERASE_SECONDS
            )
        except StreamError as error:
            if error.code not in NOT_STORED:
                raise
