"""A typed key-value bucket in the standard NATS layout: values are JSON of one struct, revisions are sequences."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from trunkline_bus.async_iterator import StepIterator
from trunkline_bus.connection.nats_connection import NatsConnection
from trunkline_bus.errors import DecodeError, SubjectError
from trunkline_bus.ids import new_id
from trunkline_bus.streams.jetstream import ExpectedSequence, last_record, publish_to_stream, records
from trunkline_bus.streams.jetstream_protocol import EXPECTED_LAST, MSG_ID, TTL, StoredRecord
from trunkline_bus.streams.ordered_consumer import read_ordered
from trunkline_bus.streams.specs import BucketSpec
from trunkline_bus.streams.topology import apply_spec

T = TypeVar("T")

_KEY = re.compile(r"[-/_=A-Za-z0-9]+(\.[-/_=A-Za-z0-9]+)*")
_OPERATION = "KV-Operation"
_MARKER = "Nats-Marker-Reason"


@dataclass(frozen=True, slots=True)
class KeyValueEntry(Generic[T]):
    """The state of a key at ``revision``. ``value`` is None if the key was deleted or expired; only ``watch`` returns
    such entries.
    """

    key: str
    value: T | None
    revision: int
    time: datetime


class KeyValue(Generic[T]):
    """A key-value bucket. Keys are words of ``A-Z a-z 0-9 _ - / =`` joined by dots."""

    def __init__(self, link: NatsConnection, spec: BucketSpec[T]) -> None:
        self.spec = spec
        self._link = link
        self._prefix = f"$KV.{spec.name}."
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(spec.payload)

    async def ensure(self) -> None:
        """Create the bucket if it does not exist. Raises ``TopologyConflict``, ``StreamError``."""
        await apply_spec(self._link, self.spec.stream())

    async def get(self, key: str) -> KeyValueEntry[T] | None:
        """Return the current value; None if there is none. Raises ``DecodeError`` for a value of another type."""
        record = await last_record(self._link, self.spec.stream_name, self._subject(key))
        if record is None:
            return None
        entry = self._entry(record)
        return None if entry.value is None else entry

    async def put(self, key: str, value: T, ttl: float | None = None) -> int:
        """Set a key, whether or not it has a value, and return the revision. ``ttl`` is in whole seconds, at
        least 1.
        """
        return await self._write(key, msgspec.json.encode(value), ttl, {})

    async def create(self, key: str, value: T, ttl: float | None = None) -> int:
        """Set a key that has no value. Raises ``SequenceConflict`` if the key has a value."""
        record = await last_record(self._link, self.spec.stream_name, self._subject(key))
        gone = record is not None and self._entry(record).value is None
        revision = record.seq if record is not None and gone else 0
        return await self.update(key, value, revision, ttl)

    async def update(self, key: str, value: T, revision: int, ttl: float | None = None) -> int:
        """Set a key that is at ``revision``. Raises ``SequenceConflict`` if the key has another revision."""
        return await self._write(key, msgspec.json.encode(value), ttl, {}, revision)

    async def delete(self, key: str, revision: int | None = None) -> None:
        """Delete a key. With ``revision`` raises ``SequenceConflict`` if the key has another revision."""
        headers = (
            {_OPERATION: "DEL"} if revision is None else {_OPERATION: "DEL", EXPECTED_LAST: str(revision)}
        )
        await self._write(key, b"", None, headers)

    async def keys(self, filter: str = ">") -> list[str]:
        """Return the keys that have a value and match the NATS wildcard ``filter``."""
        return [entry.key for entry in await self.entries(filter)]

    async def entries(self, filter: str = ">") -> list[KeyValueEntry[T]]:
        """Return the current entries whose keys match the NATS wildcard ``filter``."""
        found: dict[str, KeyValueEntry[T]] = {}
        async for record in records(self._link, self.spec.stream_name, self._prefix + filter):
            entry = self._entry(record)
            found[entry.key] = entry
        return [entry for entry in found.values() if entry.value is not None]

    @asynccontextmanager
    async def watch(
        self, filter: str = ">", *, current: bool = True
    ) -> AsyncIterator[AsyncIterator[KeyValueEntry[T]]]:
        """Return the changes of the matching keys, in order and without gaps, also across reconnections.

        With ``current`` the present values come first. Deleted and expired keys have the value None.
        """
        deliver = "last_per_subject" if current else "new"
        async with read_ordered(
            self._link, self.spec.stream_name, self._prefix + filter, deliver=deliver
        ) as items:

            async def step() -> KeyValueEntry[T]:
                return self._entry(await anext(items))

            yield StepIterator(step)

    async def _write(
        self, key: str, data: bytes, ttl: float | None, headers: dict[str, str], expect: int | None = None
    ) -> int:
        subject = self._subject(key)
        final = {MSG_ID: new_id(), **headers}
        fence = None
        if expect is not None:
            final[EXPECTED_LAST] = str(expect)
            fence = ExpectedSequence(self.spec.stream_name, subject, expect)
        if ttl is not None:
            final[TTL] = f"{max(1, round(ttl))}s"
        ack = await publish_to_stream(self._link, self.spec.stream_name, subject, data, final, 10.0, fence)
        return ack.seq

    def _entry(self, record: StoredRecord) -> KeyValueEntry[T]:
        key = record.subject[len(self._prefix) :]
        gone = record.headers.get(_OPERATION) in ("DEL", "PURGE") or _MARKER in record.headers
        try:
            value = None if gone else self._decoder.decode(record.data)
        except msgspec.MsgspecError as error:
            raise DecodeError("invalid", f"key {key!r} of bucket {self.spec.name}: {error}") from error
        return KeyValueEntry(key, value, record.seq, record.time)

    def _subject(self, key: str) -> str:
        if _KEY.fullmatch(key) is None:
            raise SubjectError(f"key {key!r} must be words of A-Z a-z 0-9 _ - / = joined by dots")
        return self._prefix + key
