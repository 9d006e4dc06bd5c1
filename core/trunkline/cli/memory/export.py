"""``trunkline memory export``: writes all of memory to one archive."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import with_memory
from trunkline.cli.memory.encryption_options import passphrase_options, recipients_from_options

if TYPE_CHECKING:
    from trunkline._util.archives.encryption import Recipients
    from trunkline._util.archives.manifest import ImportGap
    from trunkline.contracts.memory.transfer import MemoryExport
    from trunkline_bus import Bus

EXAMPLES = """
trunkline memory export everything.tar
trunkline memory export everything.tar.age --passphrase
trunkline memory export everything.tar.age --recipient age1...
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--recipient",
    "recipients",
    multiple=True,
    metavar="KEY",
    help="Encrypt it for this key (age1... or ssh-...).",
)
@click.option(
    "--recipients-file",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Encrypt it for the keys in this file.",
)
@passphrase_options
@click.option(
    "--with-index",
    is_flag=True,
    help="Include the search index. Without it, the next start rebuilds the index.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: Path,
    recipients: tuple[str, ...],
    files: tuple[Path, ...],
    passphrase: bool,
    passphrase_file: Path | None,
    passphrase_env: str | None,
    with_index: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write all of memory with its history to FILE, a tar archive that can be read without Trunkline.

    With a key or a passphrase, the archive is encrypted in the age format; "age -d" decrypts it too.
    """
    from msgspec import to_builtins

    from trunkline.cli.archive_gaps import print_gaps
    from trunkline.cli.output import print_json
    from trunkline.errors import StorageError

    if file.exists() and not force:
        raise StorageError(f"{file} exists already.", hint="Choose another name, or give --force.")
    if not file.absolute().parent.is_dir():
        raise StorageError(f"There is no folder {file.absolute().parent}.", hint="Make it first.")
    lock = recipients_from_options(recipients, files, passphrase, passphrase_file, passphrase_env)
    done, gaps = with_memory(lambda bus: _export(bus, file, lock, derived=with_index, quiet=as_json))
    size = file.stat().st_size
    if as_json:
        print_json(
            {
                "file": str(file),
                "files": done.files,
                "size": size,
                "locked": lock is not None,
                "gaps": to_builtins(gaps),
            }
        )
    else:
        locked = ", locked" if lock is not None else ""
        click.echo(
            f"Wrote {done.files} files and their history to {file} ({size / 1024 / 1024:.1f} MB{locked})."
        )
        print_gaps(gaps)


async def _export(
    bus: "Bus", file: Path, lock: "Recipients | None", *, derived: bool, quiet: bool
) -> "tuple[MemoryExport, tuple[ImportGap, ...]]":
    from trunkline.cli.archive_gaps import read_gaps
    from trunkline.config import load_config
    from trunkline.contracts.memory.export_transfer import export_memory
    from trunkline.home.encrypted_archive import encrypt_file, temporary_private_file
    from trunkline.home.paths import Home

    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(length=1, label="Exporting", file=sys.stderr, hidden=hidden) as bar:

        def on_progress(done: int, size: int) -> None:
            bar.length = max(1, size)
            bar.update(done - bar.pos)

        if lock is None:
            done = await export_memory(bus, file, derived=derived, on_progress=on_progress)
            return done, read_gaps(file)
        with temporary_private_file(Home.of(load_config()).cache, "memory.tar") as plain:
            done = await export_memory(bus, plain, derived=derived, on_progress=on_progress)
            encrypt_file(plain, file, lock)
            return done, read_gaps(plain)
