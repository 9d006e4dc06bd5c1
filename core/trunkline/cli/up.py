"""``trunkline up``: runs the bus and all workers in one process."""

import logging
from typing import TYPE_CHECKING

import click

from trunkline.cli import gc_tuning
from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config.settings import GatewaySettings

log = logging.getLogger(__name__)

EXAMPLES = """
trunkline up
trunkline up --port 9000
trunkline up --log json > trunkline.log
TRUNKLINE_HOME=/srv/agents trunkline up
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.option(
    "--host",
    help="Address to listen on. Another than 127.0.0.1 needs a certificate (trunkline certificate) or a proxy.",
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the HTTP API; 0 takes a free one.")
@click.option("--log", "log_format", type=click.Choice(["auto", "json", "text"]), default="auto",
              show_default=True, help="Format of log lines; auto is text on a terminal and JSON "
                  "elsewhere.")  # fmt: skip
def command(host: str | None, port: int | None, log_format: str) -> None:
    """Run the platform: the bus and all five workers, until Ctrl-C or SIGTERM.

    Before it exits, it finishes its work in progress or returns it to the queue. A second signal makes it exit at once.
    """
    from trunkline.cli.aio import run

    run(_up, {"gateway.host": host, "gateway.port": port}, log_format)


async def _up(flags: dict[str, object], log_format: str) -> None:
    from functools import partial

    import anyio

    from trunkline.cli.logs import set_up_logs
    from trunkline.config import load_config
    from trunkline.plugins import Plugins
    from trunkline.runtime.adapter_selection import describe_default_adapter
    from trunkline.runtime.signals import stop_on_signals, stop_timeout
    from trunkline.runtime.supervisor import running_platform
    from trunkline.runtime.watchdog import run_watchdog
    from trunkline.workers import KINDS, load_worker

    config = load_config(flags=flags)
    stop = anyio.Event()
    with set_up_logs(config, log_format):
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(stop_on_signals, timeout=stop_timeout(config)), stop)
            async with run_watchdog(config), running_platform(config, load_worker, kinds=KINDS) as instance:
                gc_tuning.freeze_started_objects()
                plugins = Plugins.load(config)
                _warn_of_network(config.settings.gateway)
                _say_ready(instance.gateway, str(instance.home.token_file))
                if plugins.static_site() is not None:
                    click.echo("To open the web app, signed in: trunkline open")
                click.echo(f"Who answers: {describe_default_adapter(config, plugins)}")
                await stop.wait()
            tasks.cancel_scope.cancel()


def _warn_of_network(gateway: "GatewaySettings") -> None:
    from trunkline.runtime.http.gateway_certificate import is_loopback

    if not is_loopback(gateway.host) and gateway.tls_certificate is None:
        log.warning(
            "the gateway listens on %s without TLS, because gateway.behind_proxy is set: let nothing but the proxy "
            "reach it (docs/how-to/reverse-proxy.md)",
            gateway.host,
        )


def _say_ready(address: str, token_file: str) -> None:
    click.echo(f"Trunkline is ready at {address}")
    click.echo(f"The access token is in {token_file}. Stop with Ctrl-C.")
