"""``trunkline memory purge``: take something out of all of history. For the owner alone, never for a model."""

import sys

import click

from trunkline.cli.command import Command
from trunkline.cli.completing import ChunkOrPath
from trunkline.cli.memory.attached import OWNER, with_memory

EXAMPLES = """
trunkline memory purge chunk-2026-05-04-1f3a9c2b --reason "she asked for it"
trunkline memory purge documents/letter.md --confirm documents/letter.md
"""

PURGE_SECONDS = 3_600.0

PURGEABLE = 'Give a path as "trunkline memory list" shows it, or the id of a chunk.'


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("target", type=ChunkOrPath())
@click.option("--confirm", help="TARGET once more, instead of typing it when asked.")
@click.option("--reason", default="", help="Why, for the note in audit/purges.jsonl.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(target: str, confirm: str | None, reason: str, as_json: bool) -> None:
    """Rewrite history as if TARGET, a chunk's id or a path, had never been. It cannot be undone.

    Every later commit gets another id; all else in them stays. Copies elsewhere (exports, backups, clones) keep it, and
    so does a conversation in which it was said, until that is purged as well.
    """
    from trunkline.cli.output import json_out, say
    from trunkline.messages.chunks import PurgeMemory
    from trunkline.subjects import MEMORY_PURGE

    confirm = confirm or _confirmed(target)
    if confirm != target:
        raise click.UsageError(f"{confirm!r} is not {target!r}: nothing was purged.")
    wish = PurgeMemory(target=target, confirm=confirm, actor=OWNER, reason=reason)
    click.echo("Rewriting history; this may take minutes when there is much of it.", err=True)
    done = with_memory(lambda bus: bus.call(MEMORY_PURGE, wish, timeout=PURGE_SECONDS), hint=PURGEABLE)
    if as_json:
        json_out(done)
        return
    for path in done.paths:
        say(f"Purged {path}")
    click.echo(
        f"{done.commits} commits were written anew. Noted in audit/purges.jsonl as {done.version[:10]}."
    )


def _confirmed(target: str) -> str:
    """What a person types; nobody is taken to agree because nobody is there."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"There is nobody to ask. To purge all the same, give --confirm {target}")
    return str(
        click.prompt(f"This cannot be undone. Type {target} to purge it", default="", show_default=False)
    )
