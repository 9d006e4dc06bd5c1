"""``trunkline partitions``: show or change the number of inbox partitions."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command

if TYPE_CHECKING:
    from trunkline.config import Config
    from trunkline_bus import Bus

EXAMPLES = """
trunkline partitions
trunkline partitions 32
trunkline partitions --json
"""

MOST = 256


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("number", type=click.IntRange(1, MOST), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(number: int | None, as_json: bool) -> None:
    """Show the number of inbox partitions, or change it to NUMBER.

    One monitor works on a partition, so monitors beyond the number of partitions stay idle. Stop all monitors before
    you change the number; other workers may keep running. Waiting messages keep their order.
    """
    from trunkline.cli.aio import run
    from trunkline.config import load_config

    run(_partitions, load_config(), number, as_json)


async def _partitions(config: "Config", number: int | None, as_json: bool) -> None:
    from trunkline.cli.output import print_json
    from trunkline.runtime.partitions import InboxPartitioning, read_partitioning, require_partition_count
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    async with connect_to_platform(config, load_worker, name="partitions", kinds=()) as bus:
        if number is None or await read_partitioning(bus) == InboxPartitioning(number):
            now = await require_partition_count(bus)
            said = {"partitions": now}
            text = f"The inbox has {now} partitions."
        else:
            moved = await _repartition(bus, config, number)
            said = {"partitions": number, "moved": moved}
            text = f"The inbox now has {number} partitions; waiting messages that were moved: {moved}."
    if as_json:
        print_json(said)
    else:
        click.echo(text)


async def _repartition(bus: "Bus", config: "Config", number: int) -> int:
    """Change the number of partitions, and return how many messages were moved. The operation survives a lost
    connection to the server.
    """
    from trunkline.errors import TrunklineError
    from trunkline.runtime.partitions import repartition
    from trunkline.runtime.worker_host import configured_topology
    from trunkline_bus import BusError

    try:
        return await repartition(bus, configured_topology(config), number)
    except BusError as error:
        raise TrunklineError(
            f"The inbox does not have {number} partitions yet: {error}",
            hint=f"Run it again: trunkline partitions {number}. No message is lost.",
        ) from error
