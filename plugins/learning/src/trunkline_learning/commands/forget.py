"""``trunkline learning forget``: take out one thing, or all that was learned."""

from typing import TYPE_CHECKING

import click

from trunkline.api.cli import COMMAND_SECONDS, Command, confirm, with_memory
from trunkline.api.memory import OWNER

if TYPE_CHECKING:
    from trunkline.api.bus import Bus

EXAMPLES = """
trunkline learning forget pit-1a2b3c4d
trunkline learning forget chunk-2026-05-01-9f8e7d6c
trunkline learning forget profile
trunkline learning forget --all --yes
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("ids", nargs=-1, metavar="[ID|profile]...")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Remove all facts, episodes, strategies, metrics and the profile.",
)
@click.option("--yes", is_flag=True, help="With --all: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(ids: tuple[str, ...], everything: bool, yes: bool, as_json: bool) -> int:
    """Remove facts, episodes, strategies or the profile, by their ids.

    History keeps them: `trunkline memory revert` brings them back, `trunkline memory purge` removes them permanently.
    The exit status is 1 when an id does not exist.
    """
    from trunkline.api.cli import print_json

    if bool(ids) == everything:
        raise click.UsageError("Say what to forget: ids, profile, or --all.")
    if everything and not yes:
        confirm("Forget everything that was learned?", done="forgotten")
    gone, missing = with_memory(lambda bus: _forget(bus, ids))
    if as_json:
        print_json({"forgotten": gone, "missing": missing})
    else:
        if gone or not missing:
            click.echo(f"Forgot {len(gone)} {'thing' if len(gone) == 1 else 'things'}.")
        for id in missing:
            click.echo(f"There is no {id} among the learned items.", err=True)
    return 1 if missing else 0


async def _forget(bus: "Bus", ids: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Forget the named items, or all items without ids. Return the ids that were forgotten and those that did not
    exist."""
    from trunkline.api.memory import MEMORY_WRITE_MANY, WriteManyMemory
    from trunkline_learning.fact_chunks import forget_facts
    from trunkline_learning.inventory import Inventory

    paths = await Inventory(bus).forgettable_files()
    facts = await forget_facts(bus, ids or None, actor=OWNER)
    chosen = [id for id in ids or paths if id in paths]
    if chosen:
        request = WriteManyMemory(
            files={}, gone=tuple(paths[id] for id in chosen), actor=OWNER, reason="Forget what was learned"
        )
        await bus.call(MEMORY_WRITE_MANY, request, timeout=COMMAND_SECONDS)
    gone = [*facts, *chosen]
    return gone, [id for id in ids if id not in gone]
