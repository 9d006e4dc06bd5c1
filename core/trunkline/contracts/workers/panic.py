"""The messages that stop everything."""

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Payload


class Panic(Payload, frozen=True, kw_only=True, tag="panic.v1"):
    """Stop everything (``on``), or let it go on. Not stored: the latch file in each home is what lasts.

    ``by`` is who said so, for people to read.
    """

    on: bool
    by: str = ""


class PanicStopped(Payload, frozen=True, kw_only=True, tag="panic.stopped.v1"):
    """A worker was told to stop everything, and has ended all that it had under way. Not stored."""

    worker: str
    kind: WorkerKind
