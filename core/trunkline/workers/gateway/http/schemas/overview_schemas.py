"""The schemas of what runs: traces, dead letters, and the state of workers and queues."""

from datetime import datetime
from typing import Any, Literal

from trunkline.contracts.models.circuits import Circuit
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.runtime.overview import RecentTurns
from trunkline.workers.gateway.http.schemas.schema_base import Out
from trunkline_bus.streams.admin import StreamState


class TraceSpan(Out, frozen=True, kw_only=True):
    """A span of a trace. ``start`` is the number of seconds since the trace began. ``depth`` is 0 for a root. ``notes``
    have its tokens, retries and errors. A span that is ``unfinished`` still runs, or its worker died. Only the owner
    gets ``attributes``, those of OpenTelemetry.
    """

    id: str
    parent: str | None = None
    depth: int
    title: str
    worker: str
    start: float
    seconds: float
    status: Literal["unset", "ok", "error"] = "unset"
    notes: str = ""
    unfinished: bool = False
    attributes: dict[str, Any] = {}


class TurnTimeline(Out, frozen=True, kw_only=True):
    """The spans of a turn in the order of the tree: each is followed by those below it."""

    turn: str
    trace: str
    spans: tuple[TraceSpan, ...]


class DeadLetterItem(Out, frozen=True, kw_only=True):
    """A message that no worker could read or handle. ``size`` is its number of bytes."""

    id: int
    time: datetime
    source: str
    subject: str
    reason: str
    detail: str
    size: int


class DeadLetterList(Out, frozen=True, kw_only=True):
    """The dead letters, the oldest first."""

    dead_letters: tuple[DeadLetterItem, ...]


class DeadLetterDetail(DeadLetterItem, frozen=True, kw_only=True):
    """A dead letter with its message as text, and why it cannot be sent again; "" if it can be. ``complete`` is false
    if only the beginning of the message was stored.
    """

    format: str
    text: str
    complete: bool
    refused: str = ""


class WorkerItem(Out, frozen=True, kw_only=True):
    """A live worker. ``partitions`` are those of the inbox that it holds. ``trouble`` keeps it from its work.
    ``unstored`` counts the answers that it holds because memory has not stored them.
    """

    id: str
    kind: WorkerKind
    host: str
    pid: int
    version: str
    started_at: datetime
    draining: bool = False
    restarts: int = 0
    trouble: str = ""
    unstored: int = 0
    partitions: tuple[int, ...] = ()


class PartitionItem(Out, frozen=True, kw_only=True):
    """A partition of the inbox: its messages, the conversations that they are in, and how many of them a monitor has.
    ``oldest`` is the age of the first message in seconds. ``worker`` is the id of the monitor, "" if none holds it.
    """

    partition: int
    messages: int
    conversations: int
    claimed: int
    oldest: float | None = None
    worker: str = ""


class KeyItem(Out, frozen=True, kw_only=True):
    """A key of a vendor. ``requests`` and ``tokens`` are those of the last minute. ``rests_until`` is set while the key
    is not used, ``fault`` says why.
    """

    adapter: str
    key: str
    requests: int
    tokens: int
    running: int
    rests_until: datetime | None = None
    fault: str = ""


class PlatformState(Out, frozen=True, kw_only=True):
    """The state of the platform at ``time``, by the server's clock. ``circuits`` are those of models that failed since
    they last answered. ``panic`` is the time when everything was stopped, "" if it is not.
    """

    time: datetime
    server: str
    workers: tuple[WorkerItem, ...]
    partitions: tuple[PartitionItem, ...]
    in_flight: int
    waiting: int
    streams: tuple[StreamState, ...]
    dead_letters: int
    lately: RecentTurns
    circuits: tuple[Circuit, ...] = ()
    keys: tuple[KeyItem, ...] = ()
    panic: str = ""
