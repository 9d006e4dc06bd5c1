"""Messages as a receiver sees them: ``ReceivedMessage`` (live), ``StoredMessage`` (from a stream). Data only."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from trunkline_bus.envelope import Envelope, Payload

T = TypeVar("T")


class Ack(msgspec.Struct, frozen=True):
    """The stream has the message on disk under ``seq``. ``duplicate``: it was there already."""

    seq: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class ReceivedMessage(Generic[T]):
    """A live message. ``gap`` is True when messages before this one may have been missed."""

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
    """A message kept by a stream under ``seq`` since ``time`` (the server's clock, UTC)."""

    seq: int
    subject: str
    keys: dict[str, str]
    time: datetime
    envelope: Envelope[T]

    @property
    def data(self) -> T:
        """The payload."""
        return self.envelope.data


class DeadLetter(Payload, frozen=True, kw_only=True, tag="bus.dead_letter.v1"):
    """A message nobody could use.

    ``reason`` is ``garbage``, ``unknown_type``, ``invalid``, ``claim_missing``, ``bad_subject`` or
    ``handler_failed``; ``data`` holds at most the first 64 KiB of the body in base64, ``size`` its whole length.
    """

    subject: str
    reason: str
    detail: str = ""
    data: str = ""
    size: int = 0


class FaultReply(Payload, frozen=True, kw_only=True, tag="bus.fault.v1"):
    """The reply of a service that could not do what was asked."""

    code: str
    message: str
    detail: str = ""
