"""``trunkline memory``: bring files into memory, search it, read it, see its history, take it all along."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from trunkline.cli.command import Group

if TYPE_CHECKING:
    from trunkline.cli.bringing import Brought, Skipped
    from trunkline_bus import Bus

T = TypeVar("T")

EXAMPLES = """
trunkline memory add ~/notes
trunkline memory search "climbing frame"
trunkline memory history preferences.toml
trunkline memory export everything.tar
"""

OWNER = "owner"
ADD_SECONDS = 60.0
PROGRESS_FROM = 50
BLOCK_RULE = "lower-case letters, digits and dashes, 32 at most"


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Bring files into memory, search and read it, see its history, take it all along.

    Paths are relative to the memory root, such as AGENT.md or blocks/main/memory.md.
    """


def _with_bus(job: "Callable[[Bus], Awaitable[T]]") -> T:
    """Run a job with the instance that runs, or with a memory worker for as long as this takes."""
    from trunkline.cli.aio import run

    found: T = run(_with_attached, job)
    return found


async def _with_attached(job: "Callable[[Bus], Awaitable[T]]") -> T:
    from trunkline.config import load_config
    from trunkline.runtime.attach import attached
    from trunkline.workers import load_worker

    async with attached(load_config(), load_worker, kinds=("memory",)) as bus:
        return await job(bus)


# add ---------------------------------------------------------------------------------------------------------


@command.command(
    "add", examples="trunkline memory add notes.md\ntrunkline memory add ~/garden --block garden"
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FILE|FOLDER")
@click.option("--block", help="Bring it for this block alone; else for all blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def add(source: Path, block: str | None, as_json: bool) -> int:
    """Bring Markdown and text files into memory, under documents/.

    What is not text is skipped and reported. Bringing a file again replaces what was brought before; history keeps it.
    Leaves with 1 when nothing could be brought.
    """
    import re

    from trunkline.cli.bringing import find, folder_for

    if block is not None and not re.fullmatch("[a-z0-9][a-z0-9-]{0,31}", block):
        raise click.UsageError(f"{block!r} is no name of a block: {BLOCK_RULE}.")
    found = list(find(source.expanduser(), folder_for(block)))
    brought, skipped = _with_bus(lambda bus: _add(bus, found, quiet=as_json))
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


# search, list, show, history ---------------------------------------------------------------------------------


@command.command(
    "search", examples='trunkline memory search "climbing frame"\ntrunkline memory search todo --names'
)
@click.argument("query")
@click.option("--path", default="", help="Only under this folder.")
@click.option(
    "--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many at most."
)
@click.option("--names", is_flag=True, help="Search names instead of text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search(query: str, path: str, limit: int, names: bool, as_json: bool) -> int:
    """Search memory, best first. Leaves with 1 when nothing is found."""
    from trunkline.cli.output import json_out
    from trunkline.messages.memory import SearchMemory
    from trunkline.subjects import MEMORY_SEARCH

    wish = SearchMemory(query=query, path=path, limit=limit, kind="filename" if names else "content")
    hits = _with_bus(lambda bus: bus.call(MEMORY_SEARCH, wish, timeout=60.0)).hits
    if as_json:
        json_out(hits)
    elif not hits:
        click.echo("Nothing found.", err=True)
    for hit in () if as_json else hits:
        click.echo(hit.path if names else f"{hit.path}:{hit.line}: {hit.content.strip()}")
    return 0 if hits else 1


@command.command("list", examples="trunkline memory list\ntrunkline memory list blocks/main --recursive")
@click.argument("path", default="")
@click.option("--recursive", "-r", is_flag=True, help="Folders in folders too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_names(path: str, recursive: bool, as_json: bool) -> None:
    """List the names under a folder of memory."""
    from trunkline.cli.output import json_out, table
    from trunkline.messages.memory import ListMemory
    from trunkline.subjects import MEMORY_LIST

    wish = ListMemory(path=path, recursive=recursive)
    entries = _with_bus(lambda bus: bus.call(MEMORY_LIST, wish, timeout=60.0)).entries
    if as_json:
        json_out(entries)
        return
    table(
        [
            (f"{entry.modified_at:%Y-%m-%d %H:%M}", str(entry.size), entry.path)
            if entry.kind == "file"
            else (f"{entry.modified_at:%Y-%m-%d %H:%M}", "", entry.path + "/")
            for entry in entries
        ],
        header=("CHANGED (UTC)", "BYTES", "NAME"),
    )


@command.command(
    "show", examples="trunkline memory show AGENT.md\ntrunkline memory show AGENT.md --version 1f3a9c2"
)
@click.argument("path")
@click.option("--version", help="As it was at this version (see history).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(path: str, version: str | None, as_json: bool) -> None:
    """Print a file of memory."""
    from trunkline.cli.output import json_out
    from trunkline.messages.memory import ReadMemory
    from trunkline.subjects import MEMORY_READ

    wish = ReadMemory(path=path, version=version)
    file = _with_bus(lambda bus: bus.call(MEMORY_READ, wish, timeout=60.0))
    if as_json:
        json_out(file)
    else:
        click.echo(file.content, nl=not file.content.endswith("\n"))


@command.command("history", examples="trunkline memory history AGENT.md --limit 5")
@click.argument("path", default="")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many at most."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the text before each change.")
def history(path: str, limit: int, as_json: bool) -> None:
    """Show what changed a file or folder, newest first."""
    from trunkline.cli.output import json_out, table
    from trunkline.messages.memory import MemoryHistory
    from trunkline.subjects import MEMORY_HISTORY

    wish = MemoryHistory(path=path, limit=limit)
    changes = _with_bus(lambda bus: bus.call(MEMORY_HISTORY, wish, timeout=60.0)).changes
    if as_json:
        json_out(changes)
        return
    rows = [
        (change.version[:10], f"{change.timestamp:%Y-%m-%d %H:%M:%S}", change.author, _first(change.message))
        for change in changes
    ]
    table(rows, header=("VERSION", "TIME (UTC)", "BY", "WHAT"))


def _first(message: str) -> str:
    return message.split("\n", 1)[0]


# export ------------------------------------------------------------------------------------------------------


@command.command("export", examples="trunkline memory export everything.tar")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE when it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def export(file: Path, force: bool, as_json: bool) -> None:
    """Write all of memory, history included, to FILE: a tar archive that needs no Trunkline to be read."""
    from trunkline.cli.output import json_out
    from trunkline.errors import StorageError
    from trunkline.runtime.exports import export_memory

    if file.exists() and not force:
        raise StorageError(f"{file} exists already.", hint="Choose another name, or give --force.")
    if not file.absolute().parent.is_dir():
        raise StorageError(f"There is no folder {file.absolute().parent}.", hint="Make it first.")
    done = _with_bus(lambda bus: export_memory(bus, file))
    if as_json:
        json_out({"file": str(file), "files": done.files, "size": done.size})
    else:
        click.echo(
            f"Wrote {done.files} files and their history to {file} ({done.size / 1024 / 1024:.1f} MB)."
        )
