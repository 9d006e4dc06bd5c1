"""Payloads, their envelope, and the scope of a message. Types only, no I/O."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec

T = TypeVar("T")

UtcTime = Annotated[datetime, msgspec.Meta(tz=True)]
"""A point in time with a time zone. The bus always writes UTC."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The base class of all payloads. A subclass has a tag that names the area, the message and the version::

        class FileRead(Payload, frozen=True, kw_only=True, tag="files.read.v1"):
            path: str

    A receiver ignores unknown fields, so a new version may add fields. If the meaning changes, the payload gets a new
    tag.
    """


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The block, conversation and turn that a message belongs to, as far as the sender knows them.

    ``cause`` is the id of the message that caused this one.
    """

    block: str | None = None
    conversation: str | None = None
    turn: str | None = None
    cause: str | None = None


class Envelope(msgspec.Struct, Generic[T], frozen=True, kw_only=True, omit_defaults=True):
    """A payload with its id, time (UTC), the name of the sending connection, the scope and the trace context."""

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
        """Return the scope of a message that this one causes: the same block, conversation and turn, with this id as
        the cause.
        """
        return Scope(block=self.block, conversation=self.conversation, turn=self.turn, cause=self.id)
