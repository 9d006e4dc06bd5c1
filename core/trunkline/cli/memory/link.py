"""``trunkline memory link``: creates a link between chunks."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import CHUNKS, COMMAND_SECONDS, with_memory
from trunkline.contracts.actors import OWNER

EXAMPLES = """
trunkline memory link chunk-2026-05-04-1f3a9c2b contradicts chunk-2026-05-02-77aa01c3
trunkline memory link chunk-2026-05-04-1f3a9c2b supports chunk-2026-05-02-77aa01c3 --remove
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("source")
@click.argument("kind", metavar="TYPE")
@click.argument("target")
@click.option(
    "--strength",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="The strength of the link.",
)
@click.option("--remove", is_flag=True, help="Remove the link.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(source: str, kind: str, target: str, strength: float, remove: bool, as_json: bool) -> None:
    """Link the chunk SOURCE to TARGET: supports, contradicts, or a type that a plugin adds."""
    from trunkline.cli.output import print_json
    from trunkline.contracts.memory.chunks import LinkChunks
    from trunkline.contracts.memory.subjects import MEMORY_LINK

    request = LinkChunks(
        source_id=source, target_id=target, link_type=kind, actor=OWNER, strength=strength, remove=remove
    )
    done = with_memory(lambda bus: bus.call(MEMORY_LINK, request, timeout=COMMAND_SECONDS), hint=CHUNKS)
    if as_json:
        print_json(done)
    else:
        click.echo(f"{'Unlinked' if remove else 'Linked'} {source} {kind} {target} as {done.version[:10]}.")
