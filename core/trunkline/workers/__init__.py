"""The table of workers: the class of each kind. The classes are strings, so a process imports only what it runs."""

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

from trunkline.contracts.workers.messages import WorkerKind
from trunkline.errors import ConfigError

if TYPE_CHECKING:
    from trunkline.runtime.worker import Worker

KINDS: tuple[WorkerKind, ...] = get_args(WorkerKind)

WORKERS: dict[str, str] = {
    "gateway": "trunkline.workers.gateway.worker:GatewayWorker",
    "monitor": "trunkline.workers.monitor.worker:MonitorWorker",
    "tools": "trunkline.workers.tools.worker:ToolsWorker",
    "memory": "trunkline.workers.memory.worker:MemoryWorker",
    "channels": "trunkline.workers.channels.worker:ChannelsWorker",
}


def load_worker(kind: str) -> "type[Worker]":
    """The class of a kind of worker; its module is imported now.

    Raises:
        ConfigError: there is no such kind.
    """
    if kind not in WORKERS:
        near = get_close_matches(kind, WORKERS, n=1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise ConfigError(f"There is no worker {kind!r}.", hint=f"{guess}There are: {', '.join(WORKERS)}.")
    module, _, name = WORKERS[kind].partition(":")
    found: type[Worker] = getattr(importlib.import_module(module), name)
    return found
