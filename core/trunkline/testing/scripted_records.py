"""Records of a channel in memory, for tests of a channel without a bus. They outlive the channel, not the test."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import msgspec

from trunkline.contracts.channels.records import ChannelRecord, RecordChanged

T = TypeVar("T", bound=msgspec.Struct)


class ScriptedRecords:
    """``ChannelRecords`` in memory. ``before_write`` is called with the key before each write and may raise, as if the
    process ended there. A record expires when its ``ttl`` has passed on the clock of the event loop.
    """

    def __init__(self) -> None:
        self._stored: dict[str, tuple[bytes, int, float]] = {}
        self._revision = 0
        self.before_write: Callable[[str], None] = lambda key: None

    async def get(self, key: str, kind: type[T]) -> ChannelRecord[T] | None:
        await anyio.lowlevel.checkpoint()
        found = self._current(key)
        return ChannelRecord(key, msgspec.json.decode(found[0], type=kind), found[1]) if found else None

    async def put(
        self, key: str, value: msgspec.Struct, *, revision: int | None = None, ttl: float | None = None
    ) -> int:
        await anyio.lowlevel.checkpoint()
        self._check(key, revision)
        self._revision += 1
        ends = anyio.current_time() + ttl if ttl is not None else float("inf")
        self._stored[key] = (msgspec.json.encode(value), self._revision, ends)
        return self._revision

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        await anyio.lowlevel.checkpoint()
        self._check(key, revision)
        self._stored.pop(key, None)

    async def list(self, prefix: str, kind: type[T]) -> list[ChannelRecord[T]]:
        keys = [key for key in self._stored if key.startswith(f"{prefix}.")]
        return [record for key in keys if (record := await self.get(key, kind)) is not None]

    def _check(self, key: str, revision: int | None) -> None:
        self.before_write(key)
        found = self._current(key)
        if revision is not None and revision != (found[1] if found else 0):
            raise RecordChanged(f"Another process changed the record {key} of this channel.")

    def _current(self, key: str) -> tuple[bytes, int, float] | None:
        found = self._stored.get(key)
        return found if found is not None and found[2] > anyio.current_time() else None
