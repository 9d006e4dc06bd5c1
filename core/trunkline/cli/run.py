"""``trunkline run WORKER``: runs one worker as a process, on a shared bus."""

from typing import TYPE_CHECKING

import click

from trunkline.cli import gc_tuning
from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.runtime.worker import Worker
    from trunkline_bus import BusSettings

EXAMPLES = """
trunkline run monitor --bus nats://10.0.0.5:4222
trunkline run tools
trunkline run plugin weather --bus nats://10.0.0.5:4222
TRUNKLINE_BUS__URL=nats://bus:4222 trunkline run memory --log json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("worker")
@click.argument("name", required=False)
@click.option(
    "--bus", "url", help="Address of the NATS server. Default: bus.url, or the server that runs on this home."
)
@click.option("--log", "log_format", type=click.Choice(["auto", "json", "text"]), default="auto",
              show_default=True, help="Format of log lines; auto is text on a terminal and JSON "
                  "elsewhere.")  # fmt: skip
def command(worker: str, name: str | None, url: str | None, log_format: str) -> None:
    """Run one WORKER: gateway, monitor, tools, memory or channels.

    Any number of workers of each kind may run, on any machine that reaches the bus. SIGTERM drains the worker.
    "streams" creates and maintains the streams, for workers that run with bus.manage_streams = false. "plugin" runs the
    plugin NAME in its own process with its own NATS user.
    """
    from trunkline.cli.aio import run

    if (worker == "plugin") != (name is not None):
        raise click.UsageError(
            "Only the WORKER plugin has a NAME, and it needs one: trunkline run plugin NAME"
        )
    run(_run, worker, name, url, log_format)


async def _run(kind: str, name: str | None, url: str | None, log_format: str) -> None:
    from functools import partial

    import anyio

    from trunkline.cli.logs import set_up_logs
    from trunkline.config import load_config
    from trunkline.home.migration import migrate
    from trunkline.home.paths import Home
    from trunkline.plugins import Plugins
    from trunkline.runtime.adapter_selection import describe_default_adapter
    from trunkline.runtime.signals import stop_on_signals, stop_timeout
    from trunkline.runtime.watchdog import run_watchdog
    from trunkline.runtime.worker_host import WorkerHostSettings, provision_streams, run_worker
    from trunkline.workers import load_worker

    config = load_config(flags={"bus.url": url})
    if name is not None:
        return await _run_plugin(config, name, log_format)
    hosted = provision_streams if kind == "streams" else partial(run_worker, load_worker(kind))
    settings = WorkerHostSettings(config, _bus(config))
    home = Home.of(config)
    home.prepare()
    migrate(home)
    stop = anyio.Event()
    with set_up_logs(config, log_format):
        if kind == "monitor":
            click.echo(f"Who answers: {describe_default_adapter(config, Plugins.load(config))}")
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(stop_on_signals, timeout=stop_timeout(config)), stop)
            async with run_watchdog(config):
                await hosted(settings, stop, task_status=_WorkerReady())
            tasks.cancel_scope.cancel()


async def _run_plugin(config: "Config", name: str, log_format: str) -> None:
    from functools import partial

    import anyio

    from trunkline.cli.logs import set_up_logs
    from trunkline.errors import Unavailable
    from trunkline.runtime.connection_settings import bus_settings
    from trunkline.runtime.signals import CLOSING, stop_on_signals
    from trunkline.runtime.watchdog import run_watchdog
    from trunkline.workers.plugin_process.lifecycle import serve_plugin
    from trunkline.workers.plugin_process.resource_limits import die_with_parent

    if config.settings.bus.url is None or config.settings.bus.user is None:
        raise Unavailable(
            "A plugin that runs apart needs a NATS user of its own.",
            hint="Set bus.url, bus.user and bus.password to what "
            '"python -m trunkline.acl --plugin NAME" gave it. "trunkline up" does it by itself.',
        )
    die_with_parent()
    stop = anyio.Event()
    with set_up_logs(config, log_format):
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(stop_on_signals, timeout=CLOSING), stop)
            async with run_watchdog(config):
                await serve_plugin(config, name, bus_settings(config), stop)
            tasks.cancel_scope.cancel()


def _bus(config: "Config") -> "BusSettings":
    from trunkline.errors import Unavailable
    from trunkline.home.paths import Home
    from trunkline.home.run_file import read_run_file
    from trunkline.runtime.connection_settings import bus_settings

    if config.settings.bus.url is not None:
        return bus_settings(config)
    run = read_run_file(Home.of(config))
    if run is None:
        raise Unavailable(
            "There is no bus to run the worker on.",
            hint='Give --bus nats://HOST:PORT, set bus.url, or start "trunkline up" on this home.',
        )
    return bus_settings(config, url=run.url, user=run.user or None, password=run.password or None)


class _WorkerReady:
    """Reports that the worker is open."""

    def started(self, value: "Worker | None" = None) -> None:
        if value is None:
            click.echo("The streams are ready")
        else:
            gc_tuning.freeze_started_objects()
            at = f" at {value.address}" if value.address else ""
            click.echo(f"The {value.kind} worker is ready{at}")
