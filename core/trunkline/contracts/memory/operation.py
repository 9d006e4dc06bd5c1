"""MemoryOperation: a row of the table of memory's operations. The rows are below the request types.

``acl.roles`` derives the NATS permissions of each process from ``callers``. ``AuthorizingTransport`` derives from
``scope`` what it checks before a tool's request reaches memory. The memory worker binds a handler to each row.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from trunkline_bus import Endpoint, Subject

Req = TypeVar("Req")
Rep = TypeVar("Rep")

Caller = Literal["gateway", "monitor", "tools", "operator"]
"""A process that may call an operation, named by its role on the bus."""

RequestScope = Literal["file", "tree", "reply"]
"""The part of memory that a request reaches.

``file`` is the file at the request's path; the reply contains nothing else. ``tree`` is everything below the path.
``reply`` is whatever the reply shows, or the file of the chunk. A query with ``tree`` or ``reply`` needs a filter in
``AuthorizingTransport``, which checks each part of the reply. Without a filter every call of a tool is refused.
"""

CALL_SECONDS = 30.0
"""Seconds that a worker or plugin waits for a reply of memory, unless its own work allows less."""

QUERY_CONCURRENCY = 64
CHANGE_CONCURRENCY = 512
"""The number of changes that may wait for their commit at once."""


@dataclass(frozen=True)
class MemoryOperation(Endpoint[Req, Rep]):
    """An operation of memory: its subject, its request and reply type, and its permitted callers.

    Only the processes in ``callers`` may call the operation. ``scope`` is the part of memory that a tool's request
    reaches; without a scope no tool and no isolated plugin may call the operation. ``changes`` is True if the operation
    commits. ``concurrency`` is the number of requests that are handled at once.
    """

    callers: frozenset[Caller] = frozenset()
    scope: RequestScope | None = None
    changes: bool = False
    concurrency: int = QUERY_CONCURRENCY


def query(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    callers: tuple[Caller, ...],
    *,
    scope: RequestScope | None = None,
    concurrency: int = QUERY_CONCURRENCY,
) -> MemoryOperation[Req, Rep]:
    """Return an operation that commits nothing."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, reply, doc=doc, root=False,
        callers=frozenset(callers), scope=scope, concurrency=concurrency,
    )  # fmt: skip


def change(
    verb: str,
    request: type[Req],
    reply: type[Rep],
    doc: str,
    callers: tuple[Caller, ...],
    *,
    scope: RequestScope | None = None,
    concurrency: int = CHANGE_CONCURRENCY,
) -> MemoryOperation[Req, Rep]:
    """Return an operation that commits. Its change is published before the caller gets the reply."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, reply, doc=doc, root=False,
        callers=frozenset(callers), scope=scope, changes=True, concurrency=concurrency,
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
