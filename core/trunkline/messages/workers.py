"""Workers among themselves: who lives, and spans on their way to the trace stream."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline_bus import Payload

WorkerKind = Literal["gateway", "monitor", "tools", "memory", "channels"]


class WorkerBeat(Payload, frozen=True, kw_only=True, tag="worker.beat.v1"):
    """A worker lives; the entry vanishes a few seconds after it dies.

    ``pins`` are the server's ids under which a monitor is given messages of inbox partitions, by partition; one counts
    only while the partition's consumer names it. ``finishing`` are the conversations whose partition a monitor has
    given up while their turn still runs: whoever holds the partition now waits for the end of it.
    ``restarts`` is how often a worker of its kind had crashed in its process before it.
    """

    id: str
    kind: WorkerKind
    pid: int
    host: str
    version: str
    started_at: datetime
    draining: bool = False
    pins: dict[int, str] = {}
    finishing: tuple[str, ...] = ()
    restarts: int = 0


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finished span; times are nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str
    kind: str
    service: str
    start: int
    end: int
    status: Literal["unset", "ok", "error"] = "unset"
    message: str = ""
    attributes: dict[str, Any] = {}
    events: tuple[dict[str, Any], ...] = ()
    links: tuple[str, ...] = ()


class SpanBatch(Payload, frozen=True, kw_only=True, tag="trace.spans.v1"):
    """Spans of one trace."""

    spans: tuple[SpanRecord, ...]
