"""The messages that stop everything."""

from trunkline.contracts.workers.messages import WorkerKind
from trunkline_bus import Payload


class Panic(Payload, frozen=True, kw_only=True, tag="panic.stop.v1"):
    """Stop everything. The message is not stored: the kill switch of each home keeps the state. ``by`` names who sent
    it, for people to read.
    """

    by: str = ""


class PanicRelease(Payload, frozen=True, kw_only=True, tag="panic.release.v1"):
    """Release the stop. It is a message of its own, because fewer processes may send it. ``by`` names who sent it."""

    by: str = ""


class PanicStopped(Payload, frozen=True, kw_only=True, tag="panic.stopped.v1"):
    """A worker has ended everything that it ran, because of panic. The message is not stored."""

    worker: str
    kind: WorkerKind
