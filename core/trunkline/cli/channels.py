"""``trunkline channels``: the channels, a test of each, their pauses, and the people whom they serve as the owner."""

from typing import TYPE_CHECKING, Literal

import click

from trunkline.cli.attached_workers import with_workers
from trunkline.cli.auth.attached_auth import with_auth
from trunkline.cli.command import Group

if TYPE_CHECKING:
    from trunkline.contracts.auth.client import AuthClient
    from trunkline.contracts.auth.linked_senders import LinkedSender
    from trunkline_bus import Bus

EXAMPLES = """
trunkline channels list
trunkline channels test telegram
trunkline channels pause telegram
trunkline channels resume telegram
trunkline channels pair telegram
trunkline channels people telegram
trunkline channels unpair telegram 1234567
"""

CONTROL_SECONDS, ABSENT_SECONDS = 30.0, 3.0
"""Seconds that a channel may take, and seconds that a restarting channel may be absent."""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List the channels, test and pause them, and link yourself to their accounts."""


@command.command("list", examples="trunkline channels list\ntrunkline channels list --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_channels(as_json: bool) -> None:
    """List the enabled channels with the state of their accounts."""
    from trunkline.cli.output import print_json, print_table
    from trunkline.config import load_config

    enabled = load_config().settings.channels.enabled
    states = with_workers(_states)
    if as_json:
        shown = [{"channel": name, "states": states.get(name, [])} for name in enabled]
        print_json({"channels": shown})
    else:
        rows = [(name, "; ".join(states.get(name, [])) or "nothing reported") for name in enabled]
        print_table(rows, header=("CHANNEL", "STATE"))


@command.command("test", examples="trunkline channels test telegram")
@click.argument("channel")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def test(channel: str, as_json: bool) -> None:
    """Send yourself a notice through CHANNEL, by the account that it uses."""
    _control(
        channel, "test", f"The channel {channel} has sent you a notice. See whether it arrived.", as_json
    )


@command.command("pause", examples="trunkline channels pause telegram")
@click.argument("channel")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def pause(channel: str, as_json: bool) -> None:
    """End CHANNEL until you resume it, also after a restart.

    What people write meanwhile waits at the service, which may delete it after a day or more. Answers and notices wait
    here.
    """
    _control(channel, "pause", f"The channel {channel} is paused.", as_json)


@command.command("resume", examples="trunkline channels resume telegram")
@click.argument("channel")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def resume(channel: str, as_json: bool) -> None:
    """Let CHANNEL run again. It continues with what has waited."""
    _control(channel, "resume", f"The channel {channel} runs again.", as_json)


@command.command("pair", examples="trunkline channels pair telegram\ntrunkline channels pair telegram --json")
@click.argument("channel")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def pair(channel: str, as_json: bool) -> None:
    """Show a code that links whoever sends it to the account of CHANNEL.

    Send it in a private chat. It works once and for ten minutes, and whoever sends it is the owner.
    """
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json

    _require_enabled(channel)
    started = with_auth(lambda auth: auth.start_linking(channel))
    if as_json:
        print_json({"code": started.code, "expires": started.expires})
    else:
        click.echo(f"Code: {started.code}   (until {format_local_time(started.expires)}, once)")
        click.echo(f"Send it to the account of the channel {channel}, in a private chat.")


@command.command(
    "people", examples="trunkline channels people telegram\ntrunkline channels people telegram --json"
)
@click.argument("channel")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def people(channel: str, as_json: bool) -> None:
    """List the people whom a code has linked to CHANNEL. Those of its settings are not listed."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    async def listed(auth: "AuthClient") -> "tuple[LinkedSender, ...]":
        return await auth.senders(channel)

    found = with_auth(listed)
    if as_json:
        shown = [
            {"sender": one.sender, "name": one.name, "linked": one.linked, "by": one.by} for one in found
        ]
        print_json({"people": shown})
    elif found:
        rows = [(one.sender, one.name, format_local_time(one.linked)) for one in found]
        print_table(rows, header=("ID", "NAME", "SINCE"))
    else:
        click.echo(f"Nobody is linked. For a code: trunkline channels pair {channel}")


@command.command(
    "unpair",
    examples="trunkline channels unpair telegram 1234567\ntrunkline channels unpair telegram 1234567 --json",
)
@click.argument("channel")
@click.argument("sender", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unpair(channel: str, sender: str, as_json: bool) -> None:
    """Remove the person with this ID from CHANNEL, and end the codes that wait."""
    from trunkline.cli.output import print_json

    with_auth(lambda auth: auth.unlink_sender(channel, sender))
    if as_json:
        print_json({"channel": channel, "removed": sender})
    else:
        click.echo(f"The channel {channel} no longer serves {sender}.")


async def _states(bus: "Bus") -> dict[str, list[str]]:
    """Return for each channel what its records say of it."""
    import msgspec

    from trunkline.contracts.channels.channel_control import PAUSED_KEY
    from trunkline.contracts.channels.records import CHANNEL_BUCKET, STATE_PREFIX, AccountState

    states: dict[str, list[str]] = {}
    for pattern in (f"*.{PAUSED_KEY}", f"*.{STATE_PREFIX}.>"):
        for entry in await bus.kv(CHANNEL_BUCKET).entries(pattern):
            if entry.value is None:
                continue
            channel, _, key = entry.key.partition(".")
            is_pause = key == PAUSED_KEY
            text = "paused" if is_pause else msgspec.json.decode(entry.value, type=AccountState).text
            states.setdefault(channel, []).append(text)
    return states


def _control(channel: str, action: Literal["test", "pause", "resume"], done: str, as_json: bool) -> None:
    from trunkline.cli.output import print_done, print_json

    with_workers(lambda bus: _asked(bus, channel, action))
    if as_json:
        print_json({"channel": channel, "action": action})
    else:
        print_done(done)


async def _asked(bus: "Bus", channel: str, action: Literal["test", "pause", "resume"]) -> None:
    from trunkline.contracts.channels.channel_control import ControlChannel
    from trunkline.contracts.channels.subjects import CONTROL_CHANNEL
    from trunkline.errors import TrunklineError
    from trunkline_bus import NoResponders, SubjectError

    try:
        await bus.call(
            CONTROL_CHANNEL,
            ControlChannel(action=action),
            timeout=CONTROL_SECONDS,
            absent=ABSENT_SECONDS,
            channel=channel,
        )
    except (NoResponders, SubjectError):
        raise TrunklineError(
            f"No channel {channel!r} runs.",
            hint='"trunkline channels list" lists the enabled ones; "trunkline up" runs them. The terminal is none of '
            "them: it runs when you open it.",
        ) from None


def _require_enabled(channel: str) -> None:
    """Raise TrunklineError for a channel that is not enabled: nobody would take its code."""
    from trunkline.config import load_config
    from trunkline.errors import TrunklineError

    enabled = load_config().settings.channels.enabled
    if channel not in enabled:
        raise TrunklineError(
            f"The channel {channel!r} is not enabled.",
            hint=f"Enabled are: {', '.join(enabled)}. The setting channels.enabled lists them.",
        )
