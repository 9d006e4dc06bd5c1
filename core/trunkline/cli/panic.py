"""``trunkline panic``: stops everything immediately. It works without the bus, because workers watch the kill switch
file.
"""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline.contracts.sandbox.sandbox import Sandbox
    from trunkline.plugins import Plugins
    from trunkline.runtime.panic_broadcast import PanicReplies

EXAMPLES = """
trunkline panic
trunkline panic --release
trunkline panic --json
"""

KILL_TIMEOUT = 20.0
"""Seconds after which a backend has failed to end its programs. A backend normally needs two seconds and an
overloaded machine longer; a shorter limit would end nothing sooner."""

AFFECTED_WORKERS = ("monitor", "tools")
"""The kinds of workers that have something to stop."""

TASKS = "Background tasks end by themselves within a second."


@click.command(cls=Command, examples=EXAMPLES)
@click.option("--release", is_flag=True, help="Release the stop.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(release: bool, as_json: bool) -> int:
    """Stop everything until it is released: kill every sandboxed program, also those of dead workers, cancel every
    running turn, and refuse all tool calls and model calls.

    The stop survives restarts. Messages that arrive in the meantime are kept and answered with the reason. The printed
    number counts the programs that this command itself ended; the workers end their own and report when that is done.
    """
    from dataclasses import asdict

    from trunkline.cli.aio import run
    from trunkline.cli.output import print_json
    from trunkline.config import load_config
    from trunkline.config.loader import resolve_home
    from trunkline.errors import ConfigError
    from trunkline.home.kill_switch import RELEASE_COMMAND, KillSwitch

    try:
        config = load_config()
    except ConfigError:  # an invalid configuration must not prevent the stop
        if not release:
            KillSwitch(resolve_home()).engage(_who())
        raise
    latch = KillSwitch(config.home)
    if release:
        held = latch.release()
        heard = run(_released, config)
        if as_json:
            print_json({"released": held, "bus": heard})
        else:
            click.echo("Everything was released." if held else "Nothing was stopped on this machine.")
        return 0
    latch.engage(_who())
    ended, failed, answers = run(_stopped, config)
    if as_json:
        print_json({"programs": ended, "failed": failed, **asdict(answers)})
    else:
        click.echo(f"Stopped. This command ended {ended} programs on this machine.")
        click.echo(f"{_describe_replies(answers)} {TASKS}")
        click.echo(f"Nothing starts until: {RELEASE_COMMAND}")
    for name in failed:
        click.echo(f"Error: the programs of the sandbox {name} could not be ended; see above.", err=True)
    for worker in answers.silent:
        click.echo(
            f"Error: the {worker} has not reported that it stopped. If its process still runs, end it.",
            err=True,
        )
    return 1 if failed or answers.silent else 0


def _describe_replies(answers: "PanicReplies") -> str:
    """Return the workers' answers as text for a person."""
    if not answers.bus:
        return "No platform was reached, so no worker can say what it ended."
    ended = f"Workers that have ended all they had under way: {', '.join(answers.stopped)}."
    missing = [f"No {kind} worker has answered." for kind in AFFECTED_WORKERS if kind not in answers.stopped]
    return " ".join([ended, *missing] if answers.stopped else missing)


def _who() -> str:
    import getpass
    import socket

    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (OSError, KeyError):  # the system user has no name
        return "somebody"


async def _released(config: "Config") -> bool:
    """Release the panic. Report whether the bus received the release."""
    from trunkline.cli._support.attached_panic import broadcast_release

    return await broadcast_release(config, _who())


async def _stopped(config: "Config") -> "tuple[int, list[str], PanicReplies]":
    """Return the number of programs that were ended here, the backends that failed to end theirs, and the workers'
    answers."""
    from trunkline.cli._support.attached_panic import broadcast_stop
    from trunkline.plugins import Plugins

    ended, failed = await _ended(Plugins.load(config))
    return ended, failed, await broadcast_stop(config, _who())


async def _ended(plugins: "Plugins") -> tuple[int, list[str]]:
    import anyio

    ended: list[int] = []
    failed: list[str] = []

    async def end(sandbox: "Sandbox") -> None:
        try:
            with anyio.fail_after(KILL_TIMEOUT):
                ended.append(await sandbox.end_all())
        except Exception as error:  # a failure of one backend must not prevent ending the others
            click.echo(f"{sandbox.name}: {error!r}", err=True)
            failed.append(sandbox.name)

    async with anyio.create_task_group() as tasks:
        for owned in plugins.sandboxes():  # the backends run concurrently, because one may hang
            tasks.start_soon(end, owned.item)
    return sum(ended), sorted(failed)
