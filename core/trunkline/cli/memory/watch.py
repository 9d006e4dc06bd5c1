"""``trunkline memory watch``: adds files to memory as they change."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.add import checked_block, summary
from trunkline.cli.memory.attached_memory import with_memory
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline.documents.ingester import IngestReport
    from trunkline_bus import Bus

EXAMPLES = """
trunkline memory watch ~/notes
trunkline memory watch ~/garden --block garden --prune
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("folders", type=click.Path(path_type=Path), metavar="FOLDER...", nargs=-1, required=True)
@click.option("--block", help="Add the files for this block only. Default: for all blocks.")
@click.option("--prune", is_flag=True, help="Remove files from memory when they are deleted in a FOLDER.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each change.")
def command(folders: tuple[Path, ...], block: str | None, prune: bool, as_json: bool) -> None:
    """Add the files of folders to memory, and keep adding changed files until Ctrl-C.

    To watch a folder whenever the platform runs, add it to trunkline.toml: [[documents.watch]].
    """
    from trunkline.errors import StorageError

    checked_block(block)
    for folder in folders:
        if not folder.expanduser().is_dir():
            raise StorageError(f"There is no folder {folder}.", hint="Check the spelling.")
    with_memory(lambda bus: _watch(bus, folders, block, prune=prune, as_json=as_json))


async def _watch(
    bus: "Bus", folders: tuple[Path, ...], block: str | None, *, prune: bool, as_json: bool
) -> None:
    from trunkline.config import load_config
    from trunkline.config.settings import WatchedFolder
    from trunkline.documents.folder_watcher import WatcherDeps, watch_folders
    from trunkline.documents.reader_registry import ReaderRegistry
    from trunkline.plugins import Plugins

    config = load_config()
    readers = ReaderRegistry(owned.item for owned in Plugins.load(config).readers())
    wanted = tuple(WatchedFolder(folder=folder, block=block, prune=prune) for folder in folders)
    tell = _tell_json if as_json else _tell
    click.echo("Watching. Stop with Ctrl-C.", err=True)
    await watch_folders(wanted, WatcherDeps(bus, readers, config.settings.documents, OWNER, tell))


def _tell(folder: Path, outcome: "IngestReport") -> None:
    from trunkline.documents.file_scan import display_path

    for one in outcome.skipped:
        click.echo(f"Skipped {display_path(one.source)}: {one.reason}", err=True)
    for path in outcome.gone:
        click.echo(f"Only in memory: {path}", err=True)
    click.echo(summary(outcome))


def _tell_json(folder: Path, outcome: "IngestReport") -> None:
    import msgspec

    from trunkline.documents.file_scan import display_path

    skipped = [{"file": display_path(one.source), "reason": one.reason} for one in outcome.skipped]
    files = {"added": outcome.added, "skipped": skipped, "gone": outcome.gone, "removed": outcome.removed}
    click.echo(msgspec.json.encode({"folder": str(folder), **files}).decode())
