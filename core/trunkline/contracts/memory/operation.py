"""Operation: one row of the table of what memory can be asked. The rows stand below the request types.

``acl.roles`` derives the NATS permissions of each process from ``callers``. ``AuthorizingTransport`` derives from
``scope`` what it checks before a tool's request reaches memory. The memory worker binds a handler to each row.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from trunkline_bus import Endpoint, Subject

Req = TypeVar("Req")
Rep = TypeVar("Rep")

Caller = Literal["gateway", "monitor", "tools", "operator"]
"""A process that may call an operation, by the name of its role on the bus."""

RequestScope = Literal["file", "tree", "reply"]
"""What of memory a request reaches.

``file``: the file at its path, and nothing else may be in the reply. ``tree``: everything below its path. ``reply``:
what its reply shows, or the file of its chunk. A query with ``tree`` or ``reply`` needs a filter in
``AuthorizingTransport``, which checks the reply piece by piece; without one every call of a tool is refused.
"""

CALL_SECONDS = 30.0
"""Seconds that a worker or plugin waits for a reply of memory, unless its own work allows less."""

QUERY_CONCURRENCY = 64
CHANGE_CONCURRENCY = 512
"""How many queries are answered, and how many changes may wait for their commit, at once."""


@dataclass(frozen=True)
class MemoryOperation(Endpoint[Req, Rep]):
    """An operation of memory: its subject, its request and reply type, and who may call it.

    ``callers`` are the processes that may call it; nobody else may. ``scope`` is what a tool's request reaches. Without
    a scope no tool and no isolated plugin may call it. ``changes`` says that it commits. ``concurrency`` is how many
    requests are handled at once.
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
    """An operation that commits nothing."""
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
    """An operation that commits. Its change is published before the caller has the reply."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, reply, doc=doc, root=False,
        callers=frozenset(callers), scope=scope, changes=True, concurrency=concurrency,
    )  # fmt: skip


def stream(
    verb: str, request: type[Req], replies: type[Rep], doc: str, callers: tuple[Caller, ...]
) -> MemoryOperation[Req, Rep]:
    """An operation that reports its progress and ends with its result. One runs at a time."""
    return MemoryOperation(
        f"memory.{verb}", _subject(verb), request, replies, doc=doc, streaming=True,
        callers=frozenset(callers), concurrency=1,
    )  # fmt: skip


def _subject(verb: str) -> Subject:
    return Subject(f"trunkline.cmd.memory.{verb}")
