"""``trunkline memory import``: imports another memory."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import require_source, with_memory
from trunkline.cli.memory.encryption_options import keys_from_options, passphrase_options
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline._util.archives.encryption import DecryptionKeys
    from trunkline.contracts.memory.transfer import ImportProgress, MemoryImport
    from trunkline_bus import Bus

EXAMPLES = """
trunkline memory import everything.tar
trunkline memory import everything.tar --restore
trunkline memory import chatgpt-export.zip --dry-run
trunkline memory import ~/.openclaw/workspace --from openclaw
"""

MAX_SHOWN = 20
"""Largest number of lines of one kind that are printed; --json prints all."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option(
    "--restore",
    "mode",
    flag_value="restore",
    help="Replace the contents of this memory by the imported ones.",
)
@click.option(
    "--merge",
    "mode",
    flag_value="merge",
    help="Keep the present contents and add the imported ones (the default).",
)
@click.option("--from", "kind", help="The system that the memory comes from, if it is not recognised.")
@click.option("--block", help="The block that receives the conversations of another system.")
@click.option(
    "--identity",
    "identities",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The file of the key that decrypts the archive.",
)
@passphrase_options
@click.option("--dry-run", is_flag=True, help="Report what would be done, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    source: Path,
    mode: str | None,
    kind: str | None,
    block: str | None,
    identities: tuple[Path, ...],
    passphrase: bool,
    passphrase_file: Path | None,
    passphrase_env: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import a memory: an export of Trunkline, or the folder or archive of another system.

    Nothing is lost: history keeps what was here, and the output lists what differs on both sides. Importing the same
    data again changes nothing. Keys and passwords are never imported.
    """
    from trunkline._util.archives.encryption import is_encrypted
    from trunkline.cli.output import print_json

    source = source.expanduser()
    require_source(source)
    keys = None
    if source.is_file() and is_encrypted(source):
        keys = keys_from_options(source, identities, passphrase, passphrase_file, passphrase_env)

    async def bring(bus: "Bus") -> "MemoryImport":
        with _opened(source, keys) as opened:
            return await _import(bus, opened, mode or "merge", kind, block, dry_run, as_json)

    done = with_memory(bring)
    if as_json:
        print_json(done)
    else:
        _report(done)


@contextmanager
def _opened(source: Path, keys: "DecryptionKeys | None") -> Iterator[Path]:
    """Yield the source; if the source is encrypted, yield its decrypted content."""
    from trunkline.config import load_config
    from trunkline.home.encrypted_archive import decrypt_file, temporary_private_file
    from trunkline.home.paths import Home

    if keys is None:
        yield source
        return
    with temporary_private_file(Home.of(load_config()).cache, source.stem) as plain:
        decrypt_file(source, plain, keys)
        yield plain


async def _import(
    bus: "Bus", source: Path, mode: str, kind: str | None, block: str | None, dry_run: bool, quiet: bool
) -> "MemoryImport":
    from trunkline.config import load_config
    from trunkline.contracts.memory.import_preparation import prepare_import
    from trunkline.contracts.memory.import_transfer import import_memory
    from trunkline.home.paths import Home
    from trunkline.plugins import Plugins

    config = load_config()
    plugins = Plugins.load(config)
    importers = [owned.item for owned in plugins.importers()]
    with prepare_import(source, importers, Home.of(config).cache, kind=kind, block=block) as archive:
        return await import_memory(
            bus,
            archive,
            actor=OWNER,
            mode="restore" if mode == "restore" else "merge",
            settings=True,
            dry_run=dry_run,
            on_progress=_showing(quiet),
        )


def _showing(quiet: bool) -> "Callable[[ImportProgress], None]":
    """Show the progress in one line, if standard error is a terminal."""
    if quiet or not sys.stderr.isatty():
        return lambda progress: None

    def show(progress: "ImportProgress") -> None:
        much = f"{progress.done}" + (f" of {progress.total}" if progress.total else "")
        click.echo(f"\r\x1b[K{progress.stage.capitalize()} {much} ", nl=False, err=True)

    return show


def _report(done: "MemoryImport") -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    would = "Would bring in" if done.dry_run else "Brought in"
    if done.idle and not done.conflicts:  # its policies, too, are in force already
        click.echo("Nothing to do: this memory already has everything in the archive.")
        return
    counts = {
        "new file": done.added,
        "changed file": done.changed,
        "deleted file": done.removed,
        "joined conversation": len(done.joined),
        "commit of history": done.commits,
    }
    said = [_count(noun, count) for noun, count in counts.items() if count]
    click.echo(f"{would} {', '.join(said) or 'nothing new'} from {done.system}.")
    _list("Differs on both sides", [_conflict(one.path, one.what, one.version) for one in done.conflicts])
    hints = [f"{gap.what}: {gap.why}." + (f" {gap.hint}" if gap.hint else "") for gap in done.gaps]
    _list("To know", hints)


def _conflict(path: str, what: str, version: str) -> str:
    return f"{path}: {what}." + (
        f" The other: trunkline memory show {path} --version {version[:10]}" if version else ""
    )


def _list(title: str, lines: list[str]) -> None:
    if not lines:
        return
    from trunkline.cli.output import print_text

    click.echo(f"{title}:")
    for line in lines[:MAX_SHOWN]:
        print_text(f"  {line}")
    if len(lines) > MAX_SHOWN:
        click.echo(f"  and {len(lines) - MAX_SHOWN} more (--json prints all)")


def _count(noun: str, count: int) -> str:
    if count == 1:
        return f"1 {noun}"
    first, _, rest = noun.partition(" of ")
    return f"{count} {first}s" + (f" of {rest}" if rest else "")
