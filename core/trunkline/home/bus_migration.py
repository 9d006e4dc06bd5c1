"""The format of the data on the bus, and its migration. The number is stored in the metadata of the journal's stream.

Each message has its own version in its tag (``journal.record.v1``), and a later version may add fields to it. The
format number increases only when streams or subjects change so that an older version would damage the data.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec.structs import replace

import trunkline
from trunkline.config.home_format import NewerFormatError
from trunkline.contracts.streams import JOURNAL_STREAM
from trunkline_bus import Bus, StreamUnavailable, Topology
from trunkline_bus.streams.admin import stream_state

KEY, WRITER = "trunkline.form", "trunkline.version"
"""Keys of the metadata of the journal stream. Older programs read ``trunkline.form`` to refuse newer streams."""


@dataclass(frozen=True, slots=True)
class BusMigrationStep:
    """A step to the format ``to``. It runs before the new topology is applied, and again after an interruption."""

    to: int
    description: str
    run: Callable[[Bus], Awaitable[None]]


async def record_format(bus: Bus) -> None:
    """Record format 1 on streams that have no number yet."""


BUS_MIGRATION_STEPS: tuple[BusMigrationStep, ...] = (
    BusMigrationStep(1, "the streams record their format", record_format),
)
BUS_FORMAT = BUS_MIGRATION_STEPS[-1].to


async def read_bus_format(bus: Bus) -> tuple[int, str] | None:
    """Return the format of the data on the bus and the version that wrote it; None if there are no streams."""
    try:
        found = (await stream_state(bus, JOURNAL_STREAM)).metadata
    except StreamUnavailable:
        return None
    number = found.get(KEY, "0")
    return int(number) if number.isdecimal() else 0, found.get(WRITER, "")


async def migrate_bus(
    bus: Bus, steps: tuple[BusMigrationStep, ...] = BUS_MIGRATION_STEPS
) -> list[BusMigrationStep]:
    """Run the steps that an older bus needs before this version's topology is applied, and return them.

    Raises:
        NewerFormatError: a newer version wrote the streams; nothing was changed.
        BusError: the bus cannot be read or changed.
    """
    found = await read_bus_format(bus)
    if found is None:
        return []
    format, version = found
    if format > steps[-1].to:
        raise NewerFormatError(
            f"The streams at {bus.link.settings.redacted_url} were written by Trunkline {version!r}, which is newer: "
            f"they have bus version {format}, and this one ({trunkline.__version__}) supports up to {steps[-1].to}.",
            hint="Update Trunkline on this machine too, or use another bus. Nothing was changed.",
        )
    todo = [step for step in steps if step.to > format]
    for step in todo:
        await step.run(bus)
    return todo


def with_format(topology: Topology, format: int = BUS_FORMAT) -> Topology:
    """Return the topology whose journal stream records the format."""
    mark = {KEY: str(format), WRITER: trunkline.__version__}
    streams = (replace(one, metadata=mark) if one.name == JOURNAL_STREAM else one for one in topology.streams)
    return replace(topology, streams=tuple(streams))
