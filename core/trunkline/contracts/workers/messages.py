"""Workers among themselves: who lives, and spans on their way to the trace stream."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline_bus import Payload

WorkerKind = Literal["gateway", "monitor", "tools", "memory", "channels"]


class WorkerHeartbeat(Payload, frozen=True, kw_only=True, tag="worker.beat.v1"):
    """A worker lives; the entry vanishes a few seconds after it dies.

    ``pins`` are the server's ids under which a monitor is given messages of inbox partitions, by partition; one counts
    only while the partition's consumer names it. ``finishing`` are the conversations whose partition a monitor has
    given up while their turn still runs: whoever holds the partition now waits for the end of it.
    ``restarts`` is how often a worker of its kind had crashed in its process before it. ``trouble`` says what keeps the
    worker from its work, such as a full disk; "" for nothing. ``unstored`` is how many answers a monitor holds that
    memory has not taken for some seconds.
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
    trouble: str = ""
    unstored: int = 0


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A span; times are nanoseconds since 1970. One that is ``unfinished`` was under way at its ``end``. It is told so
    that its children have their parent if its worker dies; a finished record of the same span replaces it."""

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
    unfinished: bool = False


class SpanBatch(Payload, frozen=True, kw_only=True, tag="trace.spans.v1"):
    """Spans of one trace. ``instance`` is which process of its kind had them, ``host`` and ``pid`` where it runs."""

    spans: tuple[SpanRecord, ...]
    instance: str = ""
    host: str = ""
    pid: int = 0
