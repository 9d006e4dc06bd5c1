"""Payloads, the envelope around them, and the scope that a sender knows. Types only, no I/O."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec

T = TypeVar("T")

UtcTime = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time with its zone; the bus always writes UTC."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of everything that is sent. Subclass with a tag that names area, fact and version::

    class FileRead(Payload, frozen=True, kw_only=True, tag="files.read.v1"):
        path: str

    Unknown fields are ignored, so fields may be added; a changed meaning is a new tag.
    """


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The block, conversation and turn that a message belongs to, as far as its sender knows them. ``cause`` is the
    id of the message that led to it.
    """

    block: str | None = None
    conversation: str | None = None
    turn: str | None = None
    cause: str | None = None


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True, omit_defaults=True):
    """A payload with its id, time (UTC), the name of the connection that sent it, its scope and trace context."""

    id: str
    time: UtcTime
    source: str
    data: T
    block: str | None = None
    conversation: str | None = None
    turn: str | None = None
    cause: str | None = None
    traceparent: str | None = None

    def reply_scope(self) -> Scope:
        """The scope of a message caused by this one: same block, conversation and turn, this id as the cause."""
        return Scope(block=self.block, conversation=self.conversation, turn=self.turn, cause=self.id)
