"""``trunkline permissions``: shows what a block's agent may do and which rule decides, and changes it. Only the owner
can change it.
"""

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import permission_rules
from trunkline.cli.command import DefaultCommandGroup
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.cli._support.permissions import EffectivePermissions

GROUP_EXAMPLES = """
trunkline permissions main
trunkline permissions garden --allow-shell --scope workspace
trunkline permissions rules list
"""

EXAMPLES = """
trunkline permissions block main
trunkline permissions block main --allow-shell --approvals all
trunkline permissions block garden --scope workspace --deny-network
trunkline permissions block main --god 15
trunkline permissions block main --host-network 30
"""


@click.group(cls=DefaultCommandGroup, default="block", examples=GROUP_EXAMPLES)
def command() -> None:
    """Show or change the permissions of one block, and the rules for all blocks.

    "trunkline permissions BLOCK" is short for "trunkline permissions block BLOCK".
    """


command.add_command(permission_rules.command, "rules")


@command.command("block", examples=EXAMPLES)
@click.argument("block", type=BlockName())
@click.option(
    "--scope",
    type=click.Choice(["block", "workspace", "system"]),
    help="The files that its file tools can reach.",
)
@click.option(
    "--allow-shell/--deny-shell", default=None, help="Allow programs, or deny them whatever the rules say."
)
@click.option(
    "--allow-network/--deny-network", default=None, help="Allow or deny network access to its programs."
)
@click.option(
    "--max-timeout",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="The longest time that a program may run.",
)
@click.option(
    "--approvals", type=click.Choice(["all", "some", "none"]), help="The calls that need your approval."
)
@click.option("--plan/--no-plan", default=None, help="Restrict it to reading and planning, or end that.")
@click.option("--god", "god", type=click.IntRange(0, 240), metavar="MINUTES",
              help="Allow every call without asking, for this time; 0 ends it. Needs a terminal.")  # fmt: skip
@click.option("--host-network", "host_network", type=click.IntRange(0, 240), metavar="MINUTES",
              help="Let its programs use this machine's network, loopback included, for this time; 0 "
                  "ends it. Needs a terminal.")  # fmt: skip
@click.option("--conversation", metavar="ID", help="Limit --god or --host-network to this conversation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def block_permissions(
    block: str,
    god: int | None,
    host_network: int | None,
    conversation: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Show or change the permissions of BLOCK's agent.

    The choices are stored in the block's block.toml, which no agent can write. A denial always wins. With --approvals
    some, calls that write, send or run programs need your approval; with all, every call; with none, no call.
    """
    from trunkline.cli._support import permissions
    from trunkline.cli._support.blocks import require_block
    from trunkline.cli.memory.attached_memory import with_memory

    changes = {name: value for name, value in choices.items() if value is not None}
    minutes = {
        name: given for name, given in (("god", god), ("host-network", host_network)) if given is not None
    }
    if conversation is not None and not any(minutes.values()):
        raise click.UsageError("--conversation limits --god or --host-network: give one of them too.")
    if any(minutes.values()):
        with_memory(
            lambda bus: require_block(bus, block)
        )  # check that the block exists before asking for confirmation
    for name in minutes:
        if minutes[name]:
            _confirm(name, block, minutes[name])
    _show(
        with_memory(lambda bus: permissions.apply_and_read(bus, block, changes, minutes, conversation)),
        as_json,
    )


MEANINGS = {
    "god": "the agent of {} may read, change, send and run anything without your approval",
    "host-network": "programs of the agent of {} that have a network reach everything that listens on this machine, "
    "the bus and the gateway included",
}


def _confirm(name: str, block: str, minutes: int) -> None:
    """Ask a person at a terminal to type the confirmation. No flag replaces this, so a script or an agent cannot
    confirm.
    """
    import sys

    from trunkline.errors import TrunklineError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        what = "God Mode" if name == "god" else "The network of this machine"
        raise TrunklineError(
            f"{what} can only be granted at a terminal. Nothing was changed.",
            hint="Run this command yourself, without a pipe or a script.",
        )
    wanted = f"{name} {block}"
    click.echo(f"For {minutes} min {MEANINGS[name].format(block)}.")
    click.echo("A denial always wins. The audit log records this.")
    if click.prompt(f'Type "{wanted}" to let it', default="", show_default=False) != wanted:
        raise TrunklineError("The words were not typed, so nothing was changed.")


def _show(permissions: "EffectivePermissions", as_json: bool) -> None:
    from trunkline.cli.output import print_json, print_table
    from trunkline.policy.explanation import WORDS, describe_policy

    if as_json:
        print_json(permissions)
        return
    print_table(
        [
            (line.what, WORDS[line.answer], ", ".join(line.by) or "nothing permits it")
            for line in permissions.lines
        ],
        header=(f"THE AGENT OF {permissions.block} MAY", "", "BY"),
    )
    click.echo()
    print_table(
        [(choice.name, choice.value, choice.origin) for choice in permissions.choices],
        header=("CHOICE", "VALUE", "FROM"),
    )
    if permissions.policies:
        click.echo()
        print_table(
            [(one.id, describe_policy(one)) for one in permissions.policies], header=("POLICY", "RULE")
        )
