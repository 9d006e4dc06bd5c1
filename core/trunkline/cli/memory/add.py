"""``trunkline memory add``: bring files in."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached import OWNER, with_memory

if TYPE_CHECKING:
    from trunkline.cli.bringing import Brought, Skipped
    from trunkline_bus import Bus

ADD_SECONDS = 60.0
PROGRESS_FROM = 50
BLOCK_RULE = "lower-case letters, digits and dashes, 32 at most"


@click.command(
    cls=Command, examples="trunkline memory add notes.md\ntrunkline memory add ~/garden --block garden"
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option("--block", help="Bring it for this block alone; else for all blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(source: Path, block: str | None, as_json: bool) -> int:
    """Bring Markdown and text files into memory, under documents/.

    What is not text is skipped and reported. Bringing a file again replaces what was brought before; history keeps it.
    Leaves with 1 when nothing could be brought.
    """
    import re

    from trunkline.cli.bringing import find, folder_for

    if block is not None and not re.fullmatch("[a-z0-9][a-z0-9-]{0,31}", block):
        raise click.UsageError(f"{block!r} is no name of a block: {BLOCK_RULE}.")
    found = list(find(source.expanduser(), folder_for(block)))
    brought, skipped = with_memory(lambda bus: _add(bus, found, quiet=as_json))
    _report(brought, skipped, as_json)
    return 0 if brought else 1


async def _add(
    bus: "Bus", found: list[tuple[Path, str]], *, quiet: bool
) -> "tuple[list[Brought], list[Skipped]]":
    from trunkline.cli.bringing import batches

    brought: list[Brought] = []
    skipped: list[Skipped] = []
    hidden = quiet or len(found) < PROGRESS_FROM or not sys.stderr.isatty()
    with click.progressbar(length=len(found), label="Bringing files", file=sys.stderr, hidden=hidden) as bar:
        for batch in batches(found, skipped):
            brought += await _write(bus, batch, skipped)
            bar.update(len(brought) + len(skipped) - bar.pos)
    return brought, skipped


async def _write(bus: "Bus", batch: "list[Brought]", skipped: "list[Skipped]") -> "list[Brought]":
    """Write files in one commit; when memory refuses, each on its own, so that only the bad ones are left out."""
    from trunkline.cli.bringing import Skipped
    from trunkline.messages.memory import WriteManyMemory
    from trunkline.subjects import MEMORY_WRITE_MANY
    from trunkline_bus import RemoteFault

    files = {one.target: one.text for one in batch}
    noun = "file" if len(files) == 1 else "files"
    wish = WriteManyMemory(files=files, actor=OWNER, reason=f"Add {len(files)} {noun}")
    try:
        await bus.call(MEMORY_WRITE_MANY, wish, timeout=ADD_SECONDS)
        return batch
    except RemoteFault as fault:
        if len(batch) == 1:
            skipped.append(Skipped(batch[0].source, fault.message))
            return []
    return [written for one in batch for written in await _write(bus, [one], skipped)]


def _report(brought: "list[Brought]", skipped: "list[Skipped]", as_json: bool) -> None:
    from trunkline.cli.output import json_out

    if as_json:
        left = [{"file": str(one.source), "reason": one.reason} for one in skipped]
        json_out({"added": [one.target for one in brought], "skipped": left})
        return
    for one in skipped:
        click.echo(f"Skipped {one.source}: {one.reason}", err=True)
    noun = "file" if len(brought) == 1 else "files"
    where = f" under {brought[0].target.rpartition('documents')[0]}documents/" if brought else ""
    click.echo(f"Added {len(brought)} {noun}{where}" + (f", skipped {len(skipped)}." if skipped else "."))
