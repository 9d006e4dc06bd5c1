"""A worker: the life cycle that all kinds share.
::
    open ──> serve ──────────────────────> close
        └── drain, while serve still runs ──┘

The host (``worker_host.py``) calls the four methods in one task, so a worker may enter task groups and other context
managers into ``resources`` in ``open()``; ``close()`` leaves them in reverse order.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.home.paths import Home
from trunkline_bus import Bus, Service

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.plugins import Plugins


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The context of a worker.

    ``id`` is unique among all workers that ever ran. ``bus`` is the worker's own connection. ``service`` is
    its ADR-32 service, which already answers ``$SRV.PING|INFO|STATS``: add endpoints to this service and do not open a
    second one. ``started_at`` is in UTC.
    """

    id: str
    kind: WorkerKind
    config: "Config"
    plugins: "Plugins"
    bus: Bus
    service: Service
    home: Home
    started_at: datetime


class Worker(ABC):
    """One worker. Subclasses set ``kind`` and implement the four methods.

    ``drain_seconds`` limits ``drain()``; afterwards the worker is closed. ``address`` is set in ``open()`` by
    a worker that serves HTTP.
    """

    kind: ClassVar[WorkerKind]
    drain_seconds: float = 10.0
    address: str = ""

    def __init__(self, context: WorkerContext) -> None:
        self.context = context
        self.resources = AsyncExitStack()
        self.announce: Callable[[], Awaitable[None]] = _announce_to_nobody
        """Publishes the worker's heartbeat at once instead of with the next interval. The host sets it."""

    def with_status(self, heartbeat: WorkerHeartbeat) -> WorkerHeartbeat:
        """Return the heartbeat with the status of this kind of worker."""
        return heartbeat

    @abstractmethod
    async def open(self) -> None:
        """Prepare the worker, which answers requests when this method returns.

        Raises:
          TrunklineError: the worker cannot work here. ``trunkline up`` stops and shows the message.
        """

    async def serve(self) -> None:
        """Work until cancelled. Return when no work is left, for example when a person left the terminal.

        Any exception is a crash: the worker is closed and a new one is started after a pause.
        """
        from anyio import sleep_forever

        await sleep_forever()

    async def drain(self) -> None:
        """Stop taking work, and return when all claimed work is finished or handed back.

        ``serve()`` still runs. The service has already stopped taking new requests.
        """
        return

    async def close(self) -> None:
        """Release all resources. Called once, also after a crash or a failed ``open()``. A subclass that overrides this
        method calls it last."""
        await self.resources.aclose()


async def _announce_to_nobody() -> None:
    """Do nothing. Used until the host sets ``announce``."""
