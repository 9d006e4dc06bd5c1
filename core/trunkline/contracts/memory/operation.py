"""MemoryOperation: a row of the table of memory's operations. The rows are below the request types.

``acl.roles`` derives the NATS permissions of each process from ``callers``. ``AuthorizingTransport`` derives from
``extent``, ``check`` and ``filter`` what a tool's request may reach. The memory worker binds a handler to each row.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, get_type_hints

from trunkline_bus import Endpoint, Subject

if TYPE_CHECKING:
    from trunkline.contracts.memory.access import CallerAccess

Req = TypeVar("Req")
Rep = TypeVar("Rep")

Caller = Literal["gateway", "monitor", "tools", "memory", "operator"]
"""A process that may call an operation, named by its role on the bus."""

AccessExtent = Literal["file", "tree", "reply"]
"""The part of memory that a request reaches.

``file`` is the file at the request's path; the reply contains nothing else. ``tree`` is everything below the path.
``reply`` is whatever the reply shows, or the file of the chunk. A query with ``tree`` or ``reply`` needs a filter, a
change with ``reply`` needs a check.
"""

RequestCheck = Callable[["CallerAccess", Req], Awaitable[Req]]
"""Returns the request to send. Raises ToolError if the caller may not make the request."""

ReplyFilter = Callable[["CallerAccess", Req, Rep], Awaitable[Rep]]
"""Returns the part of a reply that the caller may see. The request is the one that was sent. Raises ToolError if the
caller may see none of the reply.
"""

CALL_SECONDS = 30.0
"""Seconds that a worker or plugin waits for a reply of memory, unless its own work allows less."""

QUERY_CONCURRENCY = 64
CHANGE_CONCURRENCY = 512
"""The number of changes that may wait for their commit at once."""


@dataclass(frozen=True)
class MemoryOperation(Endpoint[Req, Rep]):
    """An operation of memory: its subject, its request and reply type, and its permitted callers.

    Only the processes in ``callers`` may call the operation. ``extent`` is the part of memory that a tool's request
    reaches; without it no tool and no isolated plugin may call the operation. ``changes`` is True if the operation
    commits. ``check`` decides about the request of a tool, ``filter`` about the reply to a tool. ``keeps_reason`` is
    True if history records the reason that a tool states. ``concurrency`` is the number of requests that are handled at
    once.

    Raises ``TypeError`` if nothing would decide what a tool may reach.
    """

    callers: frozenset[Caller] = frozenset()
    extent: AccessExtent | None = None
    changes: bool = False
    check: RequestCheck[Req] | None = None
    filter: ReplyFilter[Req, Rep] | None = None
    keeps_reason: bool = False
    concurrency: int = QUERY_CONCURRENCY

    def __post_init__(self) -> None:
        super().__post_init__()
        named = f"{self.name} has the extent {self.extent!r}"
        if self.extent in ("file", "tree") and get_type_hints(self.request).get("path") is not str:
            raise TypeError(f"{named}, but its request has no path to check")
        if self.extent in ("tree", "reply") and not self.changes and self.filter is None:
            raise TypeError(f"{named}, but no filter decides what of the reply a tool may see")
        if self.extent == "reply" and self.changes and self.check is None:
            raise TypeError(f"{named}, but no check decides whether a tool may make the change")


def query(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    callers: tuple[Caller, ...],
    *,
    extent: AccessExtent | None = None,
    check: RequestCheck[Req] | None = None,
    filter: ReplyFilter[Req, Rep] | None = None,
    concurrency: int = QUERY_CONCURRENCY,
) -> MemoryOperation[Req, Rep]:
    """Return an operation that commits nothing."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, reply, doc=doc, root=False,
        callers=frozenset(callers), extent=extent, check=check, filter=filter, concurrency=concurrency,
    )  # fmt: skip


def change(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    callers: tuple[Caller, ...],
    *,
    extent: AccessExtent | None = None,
    check: RequestCheck[Req] | None = None,
    filter: ReplyFilter[Req, Rep] | None = None,
    keeps_reason: bool = False,
    concurrency: int = CHANGE_CONCURRENCY,
) -> MemoryOperation[Req, Rep]:
    """Return an operation that commits. Its change is published before the caller gets the reply."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, reply, doc=doc, root=False,
        callers=frozenset(callers), extent=extent, changes=True,
        check=check, filter=filter, keeps_reason=keeps_reason, concurrency=concurrency,
    )  # fmt: skip


def stream(
    verb: str, request: type[Req], replies: type[Rep], doc: str, callers: tuple[Caller, ...]
) -> MemoryOperation[Req, Rep]:
    """Return an operation that reports its progress and ends with its result. Only one runs at a time."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, replies, doc=doc, streaming=True,
        callers=frozenset(callers), concurrency=1,
    )  # fmt: skip


def _subject(verb: str) -> Subject:
    return Subject(f"trunkline.cmd.memory.{verb}")
