"""The records of a channel: small values on the bus that outlive its process, such as what it sent to whom."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from trunkline.errors import TrunklineError
from trunkline_bus import BucketSpec

T = TypeVar("T", bound=msgspec.Struct)
S = TypeVar("S", bound=msgspec.Struct, covariant=True)

CHANNEL_BUCKET: BucketSpec[msgspec.Raw] = BucketSpec(
    name="channels",
    payload=msgspec.Raw,
    max_bytes=256 * 1024 * 1024,
    description="The records of channels: leases, deliveries, conversations of chats and the state of each account",
)


STATE_PREFIX = "state"
"""The first word of the keys under which a channel reports the state of its accounts; ``trunkline doctor`` reads
them."""

STATE_SECONDS = 150.0
"""Seconds for which a reported state counts. A process reports its state once a minute."""


class AccountState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an account of a channel in one process. It is ``serving``, ``waiting`` for another process that has
    the account's lease, or ``failing``. ``text`` names the account and says why, for people.
    """

    state: Literal["serving", "waiting", "failing"]
    text: str
    at: datetime


class RecordChanged(TrunklineError):
    """The record has another revision: another process wrote it. Nothing was written."""


@dataclass(frozen=True, slots=True)
class ChannelRecord(Generic[S]):
    """A record of a channel at ``revision``, which grows with each write of the key."""

    key: str
    value: S
    revision: int


class ChannelRecords(Protocol):
    """The records of one channel, by key: words of a-z, 0-9, ``-`` and ``_``, joined by dots.

    Guarantees: a write is on disk when its method returns, even if every process is killed then. Of several writes
    with the same ``revision`` exactly one succeeds. No other channel can write these records.

    Not guaranteed: secrecy: other channels can read them. After Unavailable, whether the write was carried out.

    Errors: every method raises Unavailable when the bus does not answer.
    """

    async def get(self, key: str, kind: type[T]) -> ChannelRecord[T] | None:
        """Return a record; None if there is none, or it has expired. Raises msgspec.ValidationError if the record is of
        another kind.
        """
        ...

    async def put(
        self, key: str, value: msgspec.Struct, *, revision: int | None = None, ttl: float | None = None
    ) -> int:
        """Write a record and return its new revision. ``revision`` is the one that the record must have, 0 for a key
        without a record; None writes in any case. The record expires after ``ttl`` whole seconds, at least 1.

        Raises:
            RecordChanged: the record has another revision.
        """
        ...

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        """Delete a record. A record that does not exist stays so.

        Raises:
            RecordChanged: the record has another revision than ``revision``.
        """
        ...

    async def list(self, prefix: str, kind: type[T]) -> list[ChannelRecord[T]]:
        """Return the records whose keys begin with ``prefix`` and a dot. Raises msgspec.ValidationError if one of them
        is of another kind.
        """
        ...
