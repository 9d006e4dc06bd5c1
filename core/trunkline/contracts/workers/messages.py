"""Messages between workers: heartbeats, and spans for the trace stream."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from trunkline.contracts.turns.lanes import Lane
from trunkline_bus import Payload

WorkerKind = Literal["gateway", "monitor", "tools", "memory", "channels"]


class LaneLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The turns of a lane at a monitor: the number that run, and the number that wait for a slot."""

    lane: Lane
    running: int
    waiting: int


class WorkerHeartbeat(Payload, frozen=True, kw_only=True, tag="worker.beat.v1"):
    """A worker is alive. The entry expires a few seconds after the worker dies.

    ``pins`` are the server's ids under which a monitor receives the messages of inbox partitions, by partition; an id
    is valid only while the partition's consumer names it. ``finishing`` are conversations whose partition the monitor
    has given up while their turn still runs; the partition's new owner waits for the end of that turn. ``restarts``
    is how often a worker of this kind crashed in this process before. ``trouble`` says what keeps the worker from its
    work, such as a full disk; "" if nothing does. ``unstored`` is the number of answers that a monitor holds because
    memory has not stored them for some seconds. ``lanes`` has the turns of a monitor by lane, without lanes that have
    none.
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
    lanes: tuple[LaneLoad, ...] = ()


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A span. Times are nanoseconds since 1970. An ``unfinished`` span was still running at its ``end``; it is sent
    so that its children have a parent if the worker dies. The finished record of the same span replaces it.
    """

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
    """Spans of one trace. ``instance`` identifies the process among those of its kind; ``host`` and ``pid`` locate
    it.
    """

    spans: tuple[SpanRecord, ...]
    instance: str = ""
    host: str = ""
    pid: int = 0
