"""``trunkline memory add``: adds files to memory."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import require_source, with_memory
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline.documents.ingester import IngestReport
    from trunkline_bus import Bus

EXAMPLES = """
trunkline memory add notes.md report.pdf
trunkline memory add ~/garden --block garden
trunkline memory add ~/garden --block garden --prune
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("sources", type=click.Path(path_type=Path), metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option("--block", help="Add the files for this block only. Default: for all blocks.")
@click.option("--prune", is_flag=True, help="Remove files from memory that are no longer in a FOLDER.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(sources: tuple[Path, ...], block: str | None, prune: bool, as_json: bool) -> int:
    """Add files to memory, under documents/.

    Text files are added unchanged. Files of other types that plugins can read (PDF, DOCX, XLSX, PPTX, EPUB, HTML, ...)
    are converted to Markdown: report.pdf becomes report.pdf.md. Files that memory already has are not read again. Files
    that cannot be read are skipped and reported. History keeps replaced versions. The exit status is 1 when no file
    could be added.
    """
    from trunkline.documents.file_scan import documents_folder

    checked_block(block)
    for source in sources:
        require_source(source.expanduser())
    outcome = with_memory(lambda bus: _add(bus, sources, documents_folder(block), prune=prune, quiet=as_json))
    _report(outcome, as_json)
    return 0 if outcome.added or outcome.unchanged or outcome.removed else 1


def checked_block(block: str | None) -> None:
    """Return the name of a block. Raises click.UsageError when it is not valid."""
    from trunkline.contracts.blocks.paths import BLOCK_NAME_RULE, is_block_name

    if block is not None and not is_block_name(block):
        raise click.UsageError(f"{block!r} is not the name of a block: {BLOCK_NAME_RULE}.")


async def _add(
    bus: "Bus", sources: tuple[Path, ...], folder: str, *, prune: bool, quiet: bool
) -> "IngestReport":
    from trunkline.config import load_config
    from trunkline.documents.file_scan import mirror_folder, scan
    from trunkline.documents.ingester import Ingester
    from trunkline.documents.reader_pool import reader_pool
    from trunkline.documents.reader_registry import ReaderRegistry
    from trunkline.plugins import Plugins

    config = load_config()
    readers = ReaderRegistry(owned.item for owned in Plugins.load(config).readers())
    folders = [source.expanduser() for source in sources]
    found = [one for source in folders for one in scan(source, folder, readers)]
    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(length=len(found), label="Bringing files", file=sys.stderr, hidden=hidden) as bar:
        async with reader_pool(config.settings.documents) as pool:
            bringer = Ingester(
                bus, readers, pool, actor=OWNER, note=lambda outcome: bar.update(outcome.looked - bar.pos)
            )
            outcome = await bringer.ingest(found)
    for base in [mirror_folder(source, folder) for source in folders if source.is_dir()]:
        outcome.gone += await bringer.find_missing(base, found)
    if prune:
        await bringer.remove(outcome.gone)
        outcome.gone, outcome.removed = [], outcome.gone
    return outcome


def _report(outcome: "IngestReport", as_json: bool) -> None:
    from trunkline.cli.output import print_json
    from trunkline.documents.file_scan import display_path

    if as_json:
        left = [{"file": display_path(one.source), "reason": one.reason} for one in outcome.skipped]
        files = {name: sorted(getattr(outcome, name)) for name in ("added", "unchanged", "gone", "removed")}
        print_json(
            {"added": files.pop("added"), "skipped": left} | {name: of for name, of in files.items() if of}
        )
        return
    for one in sorted(outcome.skipped, key=lambda one: one.source):
        click.echo(f"Skipped {display_path(one.source)}: {one.reason}", err=True)
    for path in outcome.gone:
        click.echo(f"Only in memory: {path} (--prune removes it)", err=True)
    click.echo(summary(outcome))


def summary(outcome: "IngestReport") -> str:
    """Return a sentence with the counts of added, unchanged and skipped files."""
    noun = "file" if len(outcome.added) == 1 else "files"
    where = f" under {min(outcome.added).partition('documents/')[0]}documents/" if outcome.added else ""
    also = [
        f"{word} {len(of)}"
        for word, of in (
            ("left unchanged", outcome.unchanged),
            ("skipped", outcome.skipped),
            ("removed", outcome.removed),
        )
        if of
    ]
    return ", ".join([f"Added {len(outcome.added)} {noun}{where}", *also]) + "."
