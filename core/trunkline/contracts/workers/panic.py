"""The messages that stop everything."""

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Payload


class Panic(Payload, frozen=True, kw_only=True, tag="panic.v1"):
    """Stop everything (``on``), or release the stop. The message is not stored: the latch file in each home keeps the
    state.

    ``by`` names who sent it, for people to read.
    """

    on: bool
    by: str = ""


class PanicStopped(Payload, frozen=True, kw_only=True, tag="panic.stopped.v1"):
    """A worker has ended everything that it ran, because of panic. The message is not stored."""

    worker: str
    kind: WorkerKind
