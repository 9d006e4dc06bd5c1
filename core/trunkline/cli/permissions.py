"""``trunkline permissions``: what a block's agent may do, by which rule, and changing it. The owner's alone."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.command import Command
from trunkline.cli.completing import BlockName

if TYPE_CHECKING:
    from trunkline.cli.owned.permitting import Standing

EXAMPLES = """
trunkline permissions main
trunkline permissions main --allow-shell --approvals all
trunkline permissions garden --scope workspace --deny-network
trunkline permissions main --god 15
trunkline permissions main --host-network 30
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("block", type=BlockName())
@click.option(
    "--scope", type=click.Choice(["block", "workspace", "system"]), help="How far its file tools reach."
)
@click.option("--allow-shell/--deny-shell", default=None, help="Let it run programs, or none whatever.")
@click.option(
    "--allow-network/--deny-network", default=None, help="Let its programs reach other hosts, or nothing."
)
@click.option(
    "--max-timeout", type=click.FloatRange(min=1), metavar="SECONDS", help="How long a program may run."
)
@click.option(
    "--approvals", type=click.Choice(["all", "some", "none"]), help="Which calls a person is asked about."
)
@click.option("--plan/--no-plan", default=None, help="Nothing but reading and planning, or work again.")
@click.option("--god", "god", type=click.IntRange(0, 240), metavar="MINUTES",
              help="Let it do anything, unasked, for so long; 0 ends that. Asks you at the terminal.")  # fmt: skip
@click.option("--host-network", "host_network", type=click.IntRange(0, 240), metavar="MINUTES",
              help="Lend its programs this machine's own network for so long; 0 ends that. Asks you too.")  # fmt: skip
@click.option("--conversation", metavar="ID", help="With --god or --host-network: in this conversation only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    block: str,
    god: int | None,
    host_network: int | None,
    conversation: str | None,
    as_json: bool,
    **choices: Any,
) -> None:
    """Show or change what the agent of BLOCK may do.

    Choices are kept in the block's block.toml; no agent can write there. What is denied stays denied, whatever else
    permits it. "some" asks about what writes, sends or runs; "all" about everything; "none" about nothing.
    """
    from trunkline.cli.memory.attached import with_memory
    from trunkline.cli.owned import permitting
    from trunkline.cli.owned.blocks import insist_on_block

    changes = {name: value for name, value in choices.items() if value is not None}
    minutes = {
        name: given for name, given in (("god", god), ("host-network", host_network)) if given is not None
    }
    if conversation is not None and not any(minutes.values()):
        raise click.UsageError(
            "--conversation says where --god or --host-network holds: give one of them too."
        )
    if any(minutes.values()):
        with_memory(
            lambda bus: insist_on_block(bus, block)
        )  # nobody is asked about a block that is not there
    for name in minutes:
        if minutes[name]:
            _confirm(name, block, minutes[name])
    _show(
        with_memory(lambda bus: permitting.settled(bus, block, changes, minutes, conversation)),
        as_json,
    )


MEANINGS = {
    "god": "the agent of {} may read, change, send and run anything, and nobody is asked",
    "host-network": "programs of the agent of {} that have a network reach all that listens on this machine, "
    "the bus and the gateway too",
}


def _confirm(name: str, block: str, minutes: int) -> None:
    """Have it typed at a terminal. There is no flag for it: a script or an agent cannot say yes."""
    import sys

    from trunkline.errors import TrunklineError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise TrunklineError(
            f"{'God Mode' if name == 'god' else 'This network'} is given at a terminal only.",
            hint="Run this command yourself, without a pipe or a script.",
        )
    wanted = f"{name} {block}"
    click.echo(f"For {minutes} min {MEANINGS[name].format(block)}.")
    click.echo("What is denied stays denied. It is noted in the audit log.")
    if click.prompt(f'Type "{wanted}" to let it', default="", show_default=False) != wanted:
        raise TrunklineError("That was not typed, so nothing was changed.")


def _show(standing: "Standing", as_json: bool) -> None:
    from trunkline.cli.output import json_out, table
    from trunkline.policy.explain import WORDS, in_words

    if as_json:
        json_out(standing)
        return
    table(
        [
            (line.what, WORDS[line.answer], ", ".join(line.by) or "nothing permits it")
            for line in standing.lines
        ],
        header=(f"THE AGENT OF {standing.block} MAY", "", "BY"),
    )
    click.echo()
    table(
        [(choice.name, choice.value, choice.origin) for choice in standing.choices],
        header=("CHOICE", "VALUE", "FROM"),
    )
    if standing.policies:
        click.echo()
        table([(one.id, in_words(one)) for one in standing.policies], header=("POLICY", "SAYS"))
