"""``trunkline panic``: stop everything now. Needs no bus and no worker: they see the latch."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.abc.sandbox import Sandbox
    from trunkline.config import Config
    from trunkline.plugins import Plugins
    from trunkline_bus import BusSettings

EXAMPLES = """
trunkline panic
trunkline panic --release
trunkline panic --json
"""

BUS_SECONDS = 1.0
"""How long the bus is tried: what runs here has been stopped by then, it is for other machines."""

END_SECONDS = 20.0
"""After how long a backend has failed to end its programs. Two seconds are its aim (CC-T12); a machine that is short of
everything takes longer, and giving up on it early would stop nothing sooner."""

OTHERS = "Workers and background tasks that run end theirs within a second."


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--release", is_flag=True, help="Let everything go on.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(release: bool, as_json: bool) -> int:
    """Stop everything, until it is released: every program in a sandbox is killed, also those of workers that died,
    every turn that runs is cancelled, and no tool is run nor model asked any more.

    This lasts over restarts. Messages that come in meanwhile are kept, and answered with why nothing happens.
    """
    from trunkline.cli.aio import run
    from trunkline.cli.output import json_out
    from trunkline.config import load_config
    from trunkline.config.load import find_home
    from trunkline.errors import ConfigError
    from trunkline.latch import RELEASE, Latch

    try:
        config = load_config()
    except ConfigError:  # a wrong setting must not keep anybody from stopping everything
        if not release:
            Latch(find_home()).pull(_who())
        raise
    latch = Latch(config.home)
    if release:
        held = latch.release()
        told = run(_told, config, False)
        if as_json:
            json_out({"released": held, "bus": told})
        else:
            click.echo("Everything goes on." if held else "Nothing was stopped on this machine.")
        return 0
    latch.pull(_who())
    ended, failed, told = run(_stopped, config)
    if as_json:
        json_out({"programs": ended, "failed": failed, "bus": told})
    else:
        click.echo(f"Stopped. Programs ended: {ended}. {OTHERS}")
        click.echo(f"Nothing is begun until: {RELEASE}")
    for name in failed:
        click.echo(f"Error: the programs of the sandbox {name} could not be ended; see above.", err=True)
    return 1 if failed else 0


def _who() -> str:
    import getpass
    import socket

    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # a user without a name
        return "somebody"


async def _stopped(config: "Config") -> tuple[int, list[str], bool]:
    """How many programs were ended here, which backends failed at it, and whether the bus was told."""
    from trunkline.plugins import Plugins

    ended, failed = await _ended(Plugins.load(config))
    return ended, failed, await _told(config, True)


async def _ended(plugins: "Plugins") -> tuple[int, list[str]]:
    import anyio

    ended: list[int] = []
    failed: list[str] = []

    async def end(sandbox: "Sandbox") -> None:
        try:
            with anyio.fail_after(END_SECONDS):
                ended.append(await sandbox.end_all())
        except Exception as error:  # the others have to be ended all the same
            click.echo(f"{sandbox.name}: {error!r}", err=True)
            failed.append(sandbox.name)

    async with anyio.create_task_group() as tasks:
        for owned in plugins.sandboxes():  # none waits for another: an engine may hang
            tasks.start_soon(end, owned.item)
    return sum(ended), sorted(failed)


async def _told(config: "Config", on: bool) -> bool:
    """Tell workers on other machines, if the bus is there."""
    import anyio

    from trunkline.messages.panic import Panic
    from trunkline.subjects import PANIC
    from trunkline_bus import BusError, connect

    where = _bus(config)
    if where is None:
        return False
    try:
        with anyio.fail_after(BUS_SECONDS):
            async with connect(where) as bus:
                await bus.publish(PANIC, Panic(on=on, by=_who()))
    except (BusError, OSError, TimeoutError):
        return False
    return True


def _bus(config: "Config") -> "BusSettings | None":
    """How to reach the bus that runs; None when none does. Never waits for one."""
    import msgspec

    from trunkline.runtime.connecting import bus_settings, own_inbox
    from trunkline.runtime.home import Home
    from trunkline.runtime.runfile import read_run_file

    found = read_run_file(Home.of(config))
    if config.settings.bus.url is not None:
        settings = bus_settings(config)
    elif found is not None:
        user, password = found.user or None, found.password or None
        settings = bus_settings(config, url=found.url, user=user, password=password)
    else:
        return None
    return msgspec.structs.replace(own_inbox(settings, "operator"), name="panic", connect_timeout=BUS_SECONDS)
