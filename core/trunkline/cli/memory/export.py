"""``trunkline memory export``: everything in one archive."""

from pathlib import Path

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached import with_memory


@click.command(cls=Command, examples="trunkline memory export everything.tar")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE when it exists.")
@click.option("--with-index", is_flag=True, help="Take the search index along; it would be made anew anyway.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, force: bool, with_index: bool, as_json: bool) -> None:
    """Write all of memory, history included, to FILE: a tar archive that needs no Trunkline to be read."""
    from trunkline.cli.output import json_out
    from trunkline.errors import StorageError
    from trunkline.runtime.exports import export_memory

    if file.exists() and not force:
        raise StorageError(f"{file} exists already.", hint="Choose another name, or give --force.")
    if not file.absolute().parent.is_dir():
        raise StorageError(f"There is no folder {file.absolute().parent}.", hint="Make it first.")
    done = with_memory(lambda bus: export_memory(bus, file, derived=with_index))
    if as_json:
        json_out({"file": str(file), "files": done.files, "size": done.size})
    else:
        click.echo(
            f"Wrote {done.files} files and their history to {file} ({done.size / 1024 / 1024:.1f} MB)."
        )
