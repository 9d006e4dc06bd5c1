"""``trunkline memory forget``: removes a chunk; history keeps it."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import CHUNKS, COMMAND_SECONDS, with_memory
from trunkline.contracts.actors import OWNER


@click.command(cls=Command, examples="trunkline memory forget chunk-2026-05-04-1f3a9c2b")
@click.argument("chunk")
@click.option("--reason", default="", help="The reason, for the history.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(chunk: str, reason: str, as_json: bool) -> None:
    """Remove a chunk from the files and the indexes. History keeps it. "purge" removes it permanently; "chunks delete"
    archives it instead."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.chunks import ForgetChunk
    from trunkline.contracts.memory.subjects import MEMORY_FORGET

    request = ForgetChunk(id=chunk, actor=OWNER, reason=reason)
    done = with_memory(lambda bus: bus.call(MEMORY_FORGET, request, timeout=COMMAND_SECONDS), hint=CHUNKS)
    if as_json:
        print_json(done)
    else:
        click.echo(f"Forgot {chunk} as {done.version[:10]}.")
