"""``trunkline memory revert``: undoes a change."""

import click

from trunkline.cli.command import Command
from trunkline.cli.memory.attached_memory import COMMAND_SECONDS, FILES, VERSIONS, with_memory
from trunkline.contracts.actors import OWNER

EXAMPLES = """
trunkline memory revert MEMORY.md
trunkline memory revert MEMORY.md --version 1f3a9c2
trunkline memory revert documents --to 1f3a9c2
trunkline memory revert --version 1f3a9c2
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path", default="")
@click.option("--version", help="Undo the change of this version instead of the last change.")
@click.option("--to", help="Restore PATH as it was at this version.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(path: str, version: str | None, to: str | None, as_json: bool) -> None:
    """Undo the last change of a file or folder by a new change.

    Later changes of other lines stay. If a later change touched the same lines, the command changes nothing and reports
    it. To undo the revert, revert again. Without PATH, --version is required and the whole version is undone.
    """
    from trunkline.cli.output import print_json, print_text
    from trunkline.contracts.memory.history import RevertMemory
    from trunkline.contracts.memory.subjects import MEMORY_REVERT

    if version is not None and to is not None:
        raise click.UsageError("Give --version or --to, not both.")
    if not path and version is None:
        raise click.UsageError("Give the file or folder, or the version to undo.")
    request = RevertMemory(path=path, actor=OWNER, version=version, to=to)
    hint = VERSIONS if version or to else FILES
    done = with_memory(lambda bus: bus.call(MEMORY_REVERT, request, timeout=COMMAND_SECONDS), hint=hint)
    if as_json:
        print_json(done)
        return
    verb = "Went back to" if to else "Took back"
    print_text(f"{verb} {done.undone[:10]} as {done.version[:10]}: {', '.join(done.paths)}")
