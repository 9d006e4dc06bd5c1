"""``trunkline remote``: the tools of other hosts. Invites a host, joins a hub, serves tools, and revokes access."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command, Group

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.home.listeners import Listener
    from trunkline.runtime.remotes.invitation import Invitation
    from trunkline.runtime.remotes.registry import Remote

EXAMPLES = """
trunkline remote invite laptop
trunkline remote join hub.example K7QM-2XVA-9TRE-WB4N
trunkline remote serve
trunkline remote list
trunkline remote revoke laptop
"""
MINUTES = 10.0
MEMORY_TOOLS = "trunkline-memory"
"""The bundled plugin that does not work on a remote, because a remote cannot reach the hub's memory."""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Use the tools of other hosts.

    On the hub, run "invite". On the other host, run "join" with the printed code, then "serve". Its tools are named
    host__tool.
    """


@command.command(
    cls=Command, examples="trunkline remote invite laptop\ntrunkline remote invite build-2 --block work"
)
@click.argument("name")
@click.option("--block", "blocks", multiple=True, default=("main",), show_default=True,
              help="A block whose agent may use the host's tools; repeatable.")  # fmt: skip
@click.option(
    "--listen",
    help="The HOST:PORT that hosts connect to; saved as remotes.listen. They join at the next higher port.",
)
@click.option("--minutes", type=click.FloatRange(0.1, 60.0), default=MINUTES, show_default=True,
              help="The time in minutes for which the code is valid.")  # fmt: skip
def invite(name: str, blocks: tuple[str, ...], listen: str | None, minutes: float) -> None:
    """Print a one-time code for the host NAME, and wait until it joins.

    The code is valid once, and only while this command waits. Ctrl-C ends both.
    """
    from trunkline.cli.aio import run
    from trunkline.runtime.remotes.registry import check_name

    check_name(name)
    run(_invite, name, blocks, listen, minutes * 60.0)


async def _invite(name: str, blocks: tuple[str, ...], listen: str | None, seconds: float) -> None:
    from trunkline.config import load_config
    from trunkline.contracts.blocks.paths import is_block_name
    from trunkline.errors import ConfigError
    from trunkline.home.listeners import registered_listener
    from trunkline.home.paths import Home, make_folder
    from trunkline.runtime.remotes.handshake import new_code
    from trunkline.runtime.remotes.invitation import Invitation
    from trunkline.runtime.remotes.invitation import invite as wait
    from trunkline.runtime.remotes.registry import RemoteRegistry

    for block in blocks:
        if not is_block_name(block):
            raise ConfigError(f"{block!r} is not the name of a block.", hint="See: trunkline blocks list")
    config = _listening(load_config(), listen)
    home = Home.of(config)
    make_folder(home.path)
    host, _, port = (config.settings.remotes.listen or "").rpartition(":")
    invitation = Invitation(name, blocks, new_code(), host.strip("[]"), int(port) + 1, int(port))
    with ExitStack() as listening:

        def ready(port: int) -> None:
            listening.enter_context(registered_listener(home.run, _listener(invitation, port)))
            _tell(invitation, port, seconds)

        remote = await wait(RemoteRegistry(home.remotes), invitation, seconds=seconds, ready=ready)
    click.echo(f"{remote.name} has joined. Its tools are open to: {', '.join(remote.blocks)}.")


def _listener(invitation: "Invitation", port: int) -> "Listener":
    from trunkline.home.listeners import Listener

    host = f"[{invitation.host}]" if ":" in invitation.host else invitation.host
    return Listener(
        address=f"tls://{host}:{port}",
        purpose=f"the invitation of {invitation.name}, until it is used or runs out",
        credential="the code that the invitation shows",
    )


def _listening(config: "Config", listen: str | None) -> "Config":
    from trunkline.config import load_config
    from trunkline.config.editor import write_settings
    from trunkline.errors import ConfigError
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid

    if listen is None and config.settings.remotes.listen is None:
        raise ConfigError(
            "No address for other hosts is set.",
            hint="Set it once: trunkline remote invite NAME --listen 0.0.0.0:7422",
        )
    if listen is None or listen == config.settings.remotes.listen:
        return config
    checked = load_config(flags={"remotes.listen": listen})
    write_settings(Home.of(config).config_file, {"remotes.listen": listen})
    if running_pid(Home.of(config)) is not None:
        click.echo('remotes.listen was set. Restart "trunkline up", so that it listens there.')
    return checked


def _tell(invitation: "object", port: int, seconds: float) -> None:
    from trunkline.runtime.remotes.enrolment import JOIN_PORT
    from trunkline.runtime.remotes.invitation import Invitation

    assert isinstance(invitation, Invitation)
    at = "THIS-HOST" if port == JOIN_PORT else f"THIS-HOST:{port}"
    click.echo(f"On {invitation.name}, within {seconds / 60:g} minutes, with this host's name or address:\n")
    click.echo(f"    trunkline remote join {at} {invitation.code}\n")
    click.echo("Waiting. Ctrl-C invalidates the code.")


@command.command(cls=Command, examples="trunkline remote join hub.example K7QM-2XVA-9TRE-WB4N")
@click.argument("hub")
@click.argument("code")
def join(hub: str, code: str) -> None:
    """Offer this host's tools to the HUB (HOST or HOST:PORT), with the CODE that the hub printed.

    This home then belongs to a remote host. Use a home that nothing else runs on (TRUNKLINE_HOME).
    """
    from trunkline.cli.aio import run

    run(_join, hub, code)


async def _join(hub: str, code: str) -> None:
    from trunkline.config import load_config
    from trunkline.config.editor import write_settings
    from trunkline.home.paths import Home, make_folder
    from trunkline.runtime.remotes.enrolment import join as enrol

    config = load_config()
    home = Home.of(config)
    host, port = _address(hub)
    make_folder(home.path)
    joined = await enrol(home.hub, host, port, code)
    disabled = config.settings.plugins.disabled
    if MEMORY_TOOLS not in disabled:
        write_settings(home.config_file, {"plugins.disabled": (*disabled, MEMORY_TOOLS)})
    click.echo(f"This host is {joined.name} at {host}. Start it with: trunkline remote serve")


def _address(hub: str) -> tuple[str, int]:
    from trunkline.errors import ConfigError
    from trunkline.runtime.remotes.enrolment import JOIN_PORT

    host, colon, port = (
        hub.rpartition(":") if not hub.endswith("]") and hub.count(":") != 0 else (hub, "", "")
    )
    if colon and hub.count(":") > 1 and not host.endswith("]"):  # an IPv6 address without a port
        host, colon = hub, ""
    if colon and not port.isdigit():
        raise ConfigError(f"{hub!r} is not an address.", hint="Write HOST or HOST:PORT.")
    return host.strip("[]"), int(port) if colon else JOIN_PORT


@command.command(cls=Command, examples="trunkline remote serve\ntrunkline remote serve --log json")
@click.option("--log", "log_format", type=click.Choice(["auto", "json", "text"]), default="auto",
              show_default=True, help="Format of log lines; auto is text on a terminal and JSON "
                  "elsewhere.")  # fmt: skip
def serve(log_format: str) -> None:
    """Serve this host's tools to its hub, until Ctrl-C or SIGTERM.

    The hub need not be reachable. Results of calls that end while it is not are kept until it asks again.
    """
    from trunkline.cli.aio import run

    run(_serve, log_format)


async def _serve(log_format: str) -> None:
    from functools import partial

    import anyio

    from trunkline.cli.logs import set_up_logs
    from trunkline.config import load_config
    from trunkline.runtime.leaf_node import run_leaf_node
    from trunkline.runtime.signals import stop_on_signals, stop_timeout
    from trunkline.workers.tools.remote_worker import RemoteToolsWorker

    config = load_config()
    stop = anyio.Event()
    with set_up_logs(config, log_format):
        async with anyio.create_task_group() as tasks:
            await tasks.start(partial(stop_on_signals, timeout=stop_timeout(config)), stop)
            await run_leaf_node(config, RemoteToolsWorker, stop, task_status=_RemoteReady())
            tasks.cancel_scope.cancel()


class _RemoteReady:
    """Reports that the tools are served."""

    def started(self, value: object = None) -> None:
        from trunkline.cli import gc_tuning

        gc_tuning.freeze_started_objects()
        click.echo("The tools of this host are served")


@command.command("list", cls=Command, examples="trunkline remote list\ntrunkline remote list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the invited hosts, and whether they can be reached now."""
    from trunkline.cli.aio import run
    from trunkline.cli.output import print_json

    found = run(_list)
    if as_json:
        return print_json(
            [{"name": one.name, "blocks": list(one.blocks), "enrolled_at": one.enrolled_at, "reach": reach}
             for one, reach in found]
        )  # fmt: skip
    for one, reach in found:
        click.echo(f"{one.name:<18}{reach:<12}open to {', '.join(one.blocks) or 'no block'}")
    if not found:
        click.echo('No host is invited. Start with "trunkline remote invite NAME".')


async def _list() -> "list[tuple[Remote, str]]":
    import anyio

    from trunkline.config import load_config
    from trunkline.home.paths import Home
    from trunkline.home.run_file import running_pid
    from trunkline.runtime.remotes.registry import RemoteRegistry

    config = load_config()
    home = Home.of(config)
    remotes = RemoteRegistry(home.remotes).all()
    if config.settings.bus.url is None and running_pid(home) is None:
        return [(one, "unknown") for one in remotes]
    reach: dict[str, str] = {}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_look, config, remotes, reach)
    return [(one, reach[one.name]) for one in remotes]


async def _look(config: "Config", remotes: "tuple[Remote, ...]", reach: dict[str, str]) -> None:
    from trunkline.contracts.tools.messages import ListTools
    from trunkline.contracts.tools.subjects import REMOTE_LIST_TOOLS
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker
    from trunkline_bus import BusError

    async with connect_to_platform(config, load_worker) as bus:
        for one in remotes:
            try:
                await bus.call(REMOTE_LIST_TOOLS, ListTools(block=""), timeout=2.0, remote=one.name)
                reach[one.name] = "connected"
            except BusError:
                reach[one.name] = "away"


@command.command(cls=Command, examples="trunkline remote revoke laptop")
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke the access of the host NAME at once. It can return only by a new invitation."""
    from trunkline.config import load_config
    from trunkline.home.paths import Home
    from trunkline.runtime.remotes.registry import RemoteRegistry

    RemoteRegistry(Home.of(load_config()).remotes).remove(name)
    click.echo(
        f"The access of {name} is revoked. A running hub closes its connection within a second or two."
    )


@command.command(cls=Command, examples="trunkline remote accounts > deploy/nats/accounts.conf")
@click.argument("channels", nargs=-1)
def accounts(channels: tuple[str, ...]) -> None:
    """Print the NATS accounts for your own NATS server, with these CHANNELS and all invited hosts.

    The embedded server does not need this. After each invite and revoke, print the accounts again and reload the
    server.
    """
    from trunkline.acl.accounts import accounts_config as written
    from trunkline.config import load_config
    from trunkline.errors import ConfigError
    from trunkline.home.paths import Home
    from trunkline.runtime.remotes.registry import RemoteRegistry

    remotes = RemoteRegistry(Home.of(load_config()).remotes).all()
    try:
        click.echo(written(channels, {one.name: one.key for one in remotes}), nl=False)
    except ValueError as error:
        raise ConfigError(f"{error}.", hint="Give the channels' names, as in: accounts mail") from error
