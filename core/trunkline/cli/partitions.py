"""``trunkline partitions``: into how many parts the inbox is dealt, and dealing it anew."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config

EXAMPLES = """
trunkline partitions
trunkline partitions 32
"""

MOST = 256


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("number", type=click.IntRange(1, MOST), required=False)
def command(number: int | None) -> None:
    """Say into how many partitions the inbox is dealt, or deal it into NUMBER.

    Each partition is with one monitor, so more monitors than partitions share no further. To change the number, stop
    all monitors first; everything else may go on. Messages that wait keep their order.
    """
    from trunkline.cli.aio import run
    from trunkline.config import load_config

    run(_partitions, load_config(), number)


async def _partitions(config: "Config", number: int | None) -> None:
    from trunkline.runtime.attach import attached
    from trunkline.runtime.host import wanted_topology
    from trunkline.runtime.partitions import deal, dealing
    from trunkline.workers import load_worker

    async with attached(config, load_worker, name="partitions", kinds=()) as bus:
        now = await dealing(bus)
        if number is None or (number == now.partitions and not now.shut):
            return click.echo(f"The inbox is dealt into {now.partitions} partitions.")
        moved = await deal(bus, wanted_topology(config), number)
        click.echo(f"The inbox is dealt into {number} partitions now; {moved} messages that wait were moved.")
