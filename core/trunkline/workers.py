"""The five workers by kind. They are named as strings, so that a process loads only those it runs."""

from importlib import import_module
from typing import get_args

from trunkline.errors import TrunklineError
from trunkline.messages.workers import WorkerKind
from trunkline.runtime.worker import Worker

KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)

WORKERS: dict[WorkerKind, str] = {
    "gateway": "trunkline.gateway.worker:GatewayWorker",
    "monitor": "trunkline.monitor.worker:MonitorWorker",
    "tools": "trunkline.tools.worker:ToolsWorker",
    "memory": "trunkline.memory.worker:MemoryWorker",
    "channels": "trunkline.channels.worker:ChannelsWorker",
}


def load_worker(kind: str) -> type[Worker]:
    """The class of a kind.

    Raises:
        TrunklineError: there is no worker of that kind.
    """
    for known, where in WORKERS.items():
        if known == kind:
            module, name = where.split(":")
            found: type[Worker] = getattr(import_module(module), name)
            return found
    names = ", ".join(WORKERS)
    raise TrunklineError(f"There is no worker called {kind!r}.", hint=f"The workers are {names}.")
