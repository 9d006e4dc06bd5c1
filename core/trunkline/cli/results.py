"""``trunkline results``: tool results that were too long for a conversation, from the object store."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.attached_workers import with_workers
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from trunkline.errors import TrunklineError
    from trunkline_bus import Bus, ObjectInfo

EXAMPLES = """
trunkline results list --block main
trunkline results show k3v7q
trunkline results show k3v7q --save build.log
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Show tool results that were too long for the conversation: more than [tools] max_shown_result bytes.

    The first characters of an ID are enough if no other ID begins with them. A result is deleted with its conversation.
    When all results together exceed [retention] result_mb, the oldest are deleted first.
    """


@command.command("list", examples="trunkline results list --block main --json")
@click.option("--block", type=BlockName(), help="Only items of this block.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_results(block: str | None, as_json: bool) -> None:
    """List the stored results, the newest first."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    found = [*reversed(with_workers(lambda bus: _all(bus, block), "memory"))]
    if as_json:
        print_json({"results": found})
    elif not found:
        click.echo(
            f"Block {block} has no stored tool results." if block else "There are no stored tool results."
        )
    else:
        rows = [
            (
                one["id"],
                one["block"],
                format_local_time(one["stored_at"], seconds=True),
                one["tool"],
                str(one["characters"]),
                one["conversation"],
            )
            for one in found
        ]
        print_table(rows, header=("ID", "BLOCK", "STORED", "TOOL", "CHARACTERS", "CONVERSATION"))


@command.command(
    "show", examples="trunkline results show k3v7q | less\ntrunkline results show k3v7q --save page.txt"
)
@click.argument("id")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE", help="Write the result to a new FILE instead."
)
def show(id: str, save: Path | None) -> None:
    """Print a complete result, or save it."""
    if save is None:
        with_workers(lambda bus: _print(bus, id))
        return
    found = with_workers(lambda bus: _save(bus, id, save))
    click.echo(f"Wrote the {found['characters']} characters of {found['tool']}'s result to {save}.")


async def _all(bus: "Bus", block: str | None) -> list[dict[str, Any]]:
    """Return the results of a block, or of all blocks. Raises ConfigError when there is no such block."""
    from trunkline.cli._support.blocks import require_block
    from trunkline.contracts.tools.subjects import RESULT_STORE

    if block is not None:
        await require_block(bus, block)
    facts = [_facts(found) for found in await bus.objects(RESULT_STORE).infos()]
    return [one for one in facts if block in (None, one["block"])]


async def _print(bus: "Bus", id: str) -> None:
    """Print the text; on a terminal, control characters are made harmless."""
    from trunkline._util.text import printable
    from trunkline.contracts.tools.subjects import RESULT_STORE
    from trunkline_bus import DecodeError

    found, at_terminal = await _named(bus, id), sys.stdout.isatty()
    try:
        async for piece in bus.objects(RESULT_STORE).pieces(found):
            click.echo(printable(piece.decode()) if at_terminal else piece, nl=False)
    except DecodeError as error:
        raise _gone(id) from error
    if at_terminal:
        click.echo()


async def _save(bus: "Bus", id: str, file: Path) -> dict[str, Any]:
    from trunkline.contracts.tools.subjects import RESULT_STORE
    from trunkline.errors import StorageError

    found = await _named(bus, id)
    try:
        whole = await bus.objects(RESULT_STORE).get_file(found.name, file)
    except FileExistsError as error:
        raise StorageError(f"{file} exists already.", hint="Choose another name.") from error
    except OSError as error:
        reason = (error.strerror or "storage failed").lower()
        raise StorageError(f"{file} cannot be written: {reason}.", hint="Choose another place.") from error
    if not whole:
        raise _gone(id)
    return _facts(found)


async def _named(bus: "Bus", id: str) -> "ObjectInfo":
    """Return the result whose id begins with the text. Raises TrunklineError when there is none or several."""
    from trunkline.contracts.tools.subjects import RESULT_STORE
    from trunkline.errors import TrunklineError
    from trunkline.workers.tools.result_store import ID_KEY

    infos = await bus.objects(RESULT_STORE).infos()
    found = [info for info in infos if id and info.metadata.get(ID_KEY, "").startswith(id)]
    if not found:
        raise _gone(id)
    if len(found) > 1:
        names = ", ".join(info.metadata[ID_KEY] for info in found)
        raise TrunklineError(f"{id!r} matches several results: {names}.", hint="Give more of the id.")
    return found[0]


def _gone(id: str) -> "TrunklineError":
    from trunkline.errors import TrunklineError

    return TrunklineError(
        f"There is no stored result {id!r}.",
        hint='"trunkline results list" shows the stored results. A result is deleted with its conversation, and the '
        "oldest ones when the space is used up.",
    )


def _facts(info: "ObjectInfo") -> dict[str, Any]:
    from datetime import UTC, datetime

    from trunkline.workers.tools.result_store import (
        BLOCK_KEY,
        CHARACTERS_KEY,
        CONVERSATION_KEY,
        ID_KEY,
        TOOL_KEY,
    )

    noted = info.metadata
    return {
        "id": noted.get(ID_KEY, ""),
        "block": noted.get(BLOCK_KEY, ""),
        "conversation": noted.get(CONVERSATION_KEY, ""),
        "tool": noted.get(TOOL_KEY, ""),
        "characters": int(noted.get(CHARACTERS_KEY, "0")),
        "stored_at": datetime.fromisoformat(info.mtime).astimezone(UTC),
    }
