"""The messages that a receiver gets: ``ReceivedMessage`` (live) and ``StoredMessage`` (from a stream)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from trunkline_bus.envelope import Envelope, Payload

T = TypeVar("T")


class Ack(msgspec.Struct, frozen=True):
    """The acknowledgement of a stream: the message is stored on disk as ``seq``. With ``duplicate`` the stream had it
    already. ``total`` is a counter's number after the increment; None for other messages, and for a duplicate.
    """

    seq: int
    duplicate: bool = False
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ReceivedMessage(Generic[T]):
    """A live message. ``gap`` is True if messages before this one may have been lost."""

    subject: str
    keys: dict[str, str]
    envelope: Envelope[T]
    gap: bool = False

    @property
    def data(self) -> T:
        """The payload."""
        return self.envelope.data


@dataclass(frozen=True, slots=True)
class StoredMessage(Generic[T]):
    """A message of a stream. ``seq`` is its sequence number; ``time`` is when the server stored it (UTC)."""

    seq: int
    subject: str
    keys: dict[str, str]
    time: datetime
    envelope: Envelope[T]

    @property
    def data(self) -> T:
        """The payload."""
        return self.envelope.data


class Increment(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a counter. ``label`` is the text that was stored with it; ``total`` is the number after it."""

    seq: int
    keys: dict[str, str]
    time: datetime
    amount: int
    total: int
    label: str = ""


class DeadLetter(Payload, frozen=True, kw_only=True, tag="bus.dead_letter.v1"):
    """A message that no consumer could process.

    ``reason`` is ``garbage``, ``unknown_type``, ``invalid``, ``claim_missing``, ``bad_subject`` or ``handler_failed``.
    ``data`` is the body in base64, of which it holds at most the first 64 KiB. ``size`` is the length of the whole body
    in bytes.
    """

    subject: str
    reason: str
    detail: str = ""
    data: str = ""
    size: int = 0


class FaultReply(Payload, frozen=True, kw_only=True, tag="bus.fault.v1"):
    """The reply of a service to a request that failed."""

    code: str
    message: str
    detail: str = ""
