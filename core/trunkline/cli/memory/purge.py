"""``trunkline memory purge``: permanently removes data, including its history. Only for the owner, never for a
model.
"""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Command
from trunkline.cli.completion_types import ChunkOrPath
from trunkline.cli.confirmation import require_terminal
from trunkline.cli.memory.attached_memory import with_memory
from trunkline.contracts.actors import OWNER

if TYPE_CHECKING:
    from trunkline.contracts.memory.purge import MemoryPurged, RemainingCopy

EXAMPLES = """
trunkline memory purge chunk-2026-05-04-1f3a9c2b --reason "she asked for it"
trunkline memory purge documents/letter.md --confirm documents/letter.md
trunkline memory purge conv_01K7ZQ4M0V8B3T5R6W9X2Y1C3D
"""

PURGE_SECONDS = 3_600.0

PURGEABLE = (
    'Give a path as "trunkline memory list" shows it, the id of a chunk, or that of a conversation as '
    '"trunkline conversations list" shows it.'
)


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("target", type=ChunkOrPath())
@click.option("--confirm", help="Repeat TARGET here instead of typing it when asked.")
@click.option("--reason", default="", help="The reason, for the note in audit/purges.jsonl.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(target: str, confirm: str | None, reason: str, as_json: bool) -> None:
    """Permanently remove TARGET from memory and all of its history. TARGET is a path, or the id of a chunk or a
    conversation. This cannot be undone.

    Earlier names of a file are removed too. With a conversation, the server's records of its turns are removed, and
    everything that was learned from it alone. A conversation with an unfinished turn is refused. The output ends with
    what remains, where and until when.
    """
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.purge import PurgeMemory
    from trunkline.contracts.memory.subjects import MEMORY_PURGE

    confirm = confirm or _confirmed(target)
    if confirm != target:
        raise click.UsageError(f"{confirm!r} is not {target!r}: nothing was purged.")
    request = PurgeMemory(target=target, confirm=confirm, actor=OWNER, reason=reason)
    click.echo("Rewriting history; a long history may take minutes.", err=True)
    done = with_memory(lambda bus: bus.call(MEMORY_PURGE, request, timeout=PURGE_SECONDS), hint=PURGEABLE)
    if as_json:
        print_json(done)
    else:
        _tell(done)


def _tell(done: "MemoryPurged") -> None:
    from trunkline.cli.output import print_text

    print_text(f"{_summary(done)}\n")
    for path in done.paths:
        print_text(f"Purged {path}")
    for path in done.changed:
        print_text(f"Purged a part of {path}")
    for erased in done.erased:
        print_text(f"Erased {erased.count} in {erased.where}")
    click.echo("\nKept:")
    for kept in done.kept:
        print_text(f"* {kept.where}: {kept.what}{_until(kept)}")


def _summary(done: "MemoryPurged") -> str:
    """Return a sentence about the changes of the purge, and the number of places that are left to check."""
    messages = sum(erased.count for erased in done.erased)
    others = sum(1 for kept in done.kept if kept.conversation)
    left = (
        f"{_count(others, 'other conversation has', 'other conversations have')} lines of it. "
        if others
        else ""
    )
    part = f", a part of {len(done.changed)} more" if done.changed else ""
    erased = f", and {_count(messages, 'message', 'messages')} of the server" if messages else ""
    return (
        f"{_count(len(done.paths), 'file is', 'files are')} gone with all versions{part}{erased}. "
        f"{_count(done.commits, 'commit was', 'commits were')} written anew.\n"
        f"{left}What was not purged is listed at the end. audit/purges.jsonl records this purge as {done.version[:10]}."
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _until(kept: "RemainingCopy") -> str:
    from trunkline._util.local_time import format_local_time

    return "" if kept.until is None else f" Deleted by {format_local_time(kept.until)}."


def _confirmed(target: str) -> str:
    """Ask a person to type the confirmation, and return it. Without a terminal the purge is refused."""
    require_terminal(f"--confirm {target}", done="purged")
    return str(
        click.prompt(f"This cannot be undone. Type {target} to purge it", default="", show_default=False)
    )
