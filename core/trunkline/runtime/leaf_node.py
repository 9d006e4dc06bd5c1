"""Runs a remote: this host's tools for a hub, on a NATS leaf node.

The leaf node has its own JetStream domain with its own streams, so the effect ledger of this host's calls is on this
host's disk. A call that ends while the connection is down is recorded, and the hub receives the outcome when it sends
the call again.
"""

import anyio
import msgspec
from anyio.abc import TaskStatus

from trunkline.config import Config
from trunkline.contracts.topology import remote_topology
from trunkline.home.migration import migrate
from trunkline.home.paths import Home
from trunkline.home.run_file import instance_lock
from trunkline.runtime.connection_settings import bus_settings, server_settings
from trunkline.runtime.remotes.enrolment import leaf_remote
from trunkline.runtime.worker import Worker
from trunkline.runtime.worker_host import WorkerHostSettings, maintain_topology, run_worker
from trunkline_bus import BusSettings, EmbeddedServer, connect

LARGEST_MESSAGE = 7 * 1024 * 1024
"""The largest message in bytes. The object bucket is not used, since this host's and the hub's buckets
differ."""


async def run_leaf_node(
    config: Config,
    worker: type[Worker],
    stop: anyio.Event,
    *,
    task_status: TaskStatus[Worker] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run the leaf node and ``worker`` until ``stop`` is set. The hub need not be reachable.

    Raises:
      AlreadyRunning: another process runs on this home.
      ConfigError: this host is not enrolled.
      TrunklineError, BusError: the server or the worker could not start.
    """
    home = Home.of(config)
    hub = leaf_remote(home.hub)
    home.prepare()
    with instance_lock(home):
        migrate(home)
        async with EmbeddedServer(server_settings(config, home.bus, hub=hub)) as server:
            reach = _own(config, server, hub.domain)
            async with connect(reach) as bus:
                undo = await maintain_topology(bus, remote_topology(config.settings.retention))
                try:
                    await run_worker(
                        worker,
                        WorkerHostSettings(config, reach, prepare_bus=False),
                        stop,
                        task_status=task_status,
                    )
                finally:
                    undo()


def _own(config: Config, server: EmbeddedServer, name: str) -> BusSettings:
    reach = bus_settings(config, url=server.url, user=server.user, password=server.password)
    return msgspec.structs.replace(
        reach, inbox_prefix=f"_INBOX_remote-{name}", claim_threshold=LARGEST_MESSAGE
    )
