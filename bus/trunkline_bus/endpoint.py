"""Declarations of typed subjects: an ``Endpoint`` has a request and a reply, a ``Topic`` has one message, a ``Counter``
has one number.
"""

import re
import typing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from trunkline_bus.subject import Subject

T = TypeVar("T")
Req = TypeVar("Req")
Rep = TypeVar("Rep")

_RESERVED = frozenset(
    {
        "self",
        "topic",
        "payload",
        "endpoint",
        "request",
        "handler",
        "scope",
        "msg_id",
        "expect",
        "expect_filter",
    }
    | {
        "timeout",
        "idle_timeout",
        "headers",
        "after",
        "queue",
        "limit",
        "buffer",
        "counter",
        "amount",
        "label",
    }
)
_TAG = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.v[0-9]+")


def payload_types(payload: Any) -> tuple[Any, ...]:
    """Return the payload classes of a type: the members of a union, or the type itself."""
    members = typing.get_args(payload)
    return tuple(members) if members else (payload,)


def check_payload(where: str, payload: Any) -> None:
    """Raise ``TypeError`` unless every member is a msgspec struct with a versioned tag."""
    for member in payload_types(payload):
        if not (isinstance(member, type) and issubclass(member, msgspec.Struct)):
            raise TypeError(f"{where}: {member!r} is not a Payload; derive it from trunkline_bus.Payload")
        tag = member.__struct_config__.tag
        if not isinstance(tag, str) or _TAG.fullmatch(tag) is None:
            raise TypeError(f'{where}: {member.__name__} has the tag {tag!r}; write tag="area.name.v1"')


def check_keys(where: str, subject: Subject) -> None:
    """Raise ``TypeError`` if a key of the subject has the name of a parameter of the bus's methods."""
    for key in subject.keys:
        if key in _RESERVED:
            raise TypeError(f"{where}: {subject.template!r} may not call a key {key!r}; choose another name")


@dataclass(frozen=True)
class Endpoint(Generic[Req, Rep]):
    """A request and its reply on one subject. ``reply`` may be a union.

    A ``streaming`` endpoint answers with any number of replies. With ``traced=False`` requests have no spans. With
    ``root=False`` a request has a span only if it is part of a trace or fails, so that periodic requests make no traces
    of their own. Raises ``TypeError`` if a type has no versioned tag.
    """

    name: str
    subject: Subject
    request: type[Req]
    reply: type[Rep]
    doc: str = ""
    traced: bool = True
    root: bool = True
    streaming: bool = False

    def __post_init__(self) -> None:
        check_keys(f"endpoint {self.name}", self.subject)
        check_payload(f"endpoint {self.name}", self.request)
        check_payload(f"endpoint {self.name}", self.reply)


@dataclass(frozen=True)
class Topic(Generic[T]):
    """A kind of message on one subject. ``payload`` may be a union.

    ``stream`` names the JetStream stream that stores the messages; None means core NATS only. ``stored`` is the subject
    after the stream's transform; None means that the stream keeps the subject unchanged. Raises ``TypeError`` if a type
    has no versioned tag.
    """

    name: str
    subject: Subject
    payload: type[T]
    stream: str | None = None
    stored: Subject | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        check_keys(f"topic {self.name}", self.subject)
        check_keys(f"topic {self.name}", self.stored_subject)
        check_payload(f"topic {self.name}", self.payload)

    @property
    def stored_subject(self) -> Subject:
        """The subject under which the stream stores the messages."""
        return self.stored or self.subject


@dataclass(frozen=True)
class Counter:
    """A kind of number that processes change atomically, one number for each subject.

    ``stream`` names the JetStream stream that stores the increments; it must have ``allow_counter``. Raises
    ``TypeError`` if a key of the subject has the name of a parameter of the bus's methods.
    """

    name: str
    subject: Subject
    stream: str
    doc: str = ""

    def __post_init__(self) -> None:
        check_keys(f"counter {self.name}", self.subject)
