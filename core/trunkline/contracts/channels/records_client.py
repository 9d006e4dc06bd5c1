"""The records of a channel in the bucket ``channels``, under the channel's name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from trunkline.contracts.channels.records import CHANNEL_BUCKET, ChannelRecord, RecordChanged
from trunkline.errors import Unavailable
from trunkline_bus import Bus, BusError, SequenceConflict

T = TypeVar("T", bound=msgspec.Struct)


class BusChannelRecords:
    """``ChannelRecords`` over the bus.

    Guarantees: as ``ChannelRecords``.

    Not guaranteed: as ``ChannelRecords``.
    """

    def __init__(self, bus: Bus, channel: str) -> None:
        self._bucket = bus.kv(CHANNEL_BUCKET)
        self._channel = channel

    async def get(self, key: str, kind: type[T]) -> ChannelRecord[T] | None:
        """Return a record. Raises as ``ChannelRecords.get`` does."""
        with _translated(key):
            entry = await self._bucket.get(self._full(key))
        if entry is None or entry.value is None:
            return None
        return ChannelRecord(key, msgspec.json.decode(entry.value, type=kind), entry.revision)

    async def put(
        self, key: str, value: msgspec.Struct, *, revision: int | None = None, ttl: float | None = None
    ) -> int:
        """Write a record. Raises as ``ChannelRecords.put`` does."""
        full, data = self._full(key), msgspec.Raw(msgspec.json.encode(value))
        with _translated(key):
            if revision is None:
                return await self._bucket.put(full, data, ttl)
            if revision == 0:
                return await self._bucket.create(full, data, ttl)
            return await self._bucket.update(full, data, revision, ttl)

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        """Delete a record. Raises as ``ChannelRecords.delete`` does."""
        with _translated(key):
            await self._bucket.delete(self._full(key), revision)

    async def list(self, prefix: str, kind: type[T]) -> list[ChannelRecord[T]]:
        """Return the records below a prefix. Raises as ``ChannelRecords.list`` does."""
        with _translated(prefix):
            entries = await self._bucket.entries(f"{self._full(prefix)}.>")
        start = len(self._channel) + 1
        return [
            ChannelRecord(entry.key[start:], msgspec.json.decode(entry.value, type=kind), entry.revision)
            for entry in entries
            if entry.value is not None
        ]

    def _full(self, key: str) -> str:
        return f"{self._channel}.{key}"


@contextmanager
def _translated(key: str) -> Iterator[None]:
    try:
        yield
    except SequenceConflict as conflict:
        raise RecordChanged(f"Another process changed the record {key} of this channel.") from conflict
    except BusError as error:
        raise Unavailable(f"The record {key} of this channel cannot be reached: {error}") from error
