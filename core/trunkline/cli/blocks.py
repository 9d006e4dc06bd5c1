"""``trunkline blocks``: make, list, show, archive, restore and delete blocks."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.command import Group
from trunkline.cli.completing import BlockName
from trunkline.cli.with_gateway import with_gateway

if TYPE_CHECKING:
    from trunkline.messages.blocks import Block

EXAMPLES = """
trunkline blocks list
trunkline blocks create garden --description "The garden"
trunkline blocks archive garden
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Make, list, show, archive, restore and delete blocks. A block is where one agent lives."""


@command.command("list", examples="trunkline blocks list --archived\ntrunkline blocks list --json")
@click.option("--archived", is_flag=True, help="Show the archived ones too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_blocks(archived: bool, as_json: bool) -> None:
    """List the blocks and what they do now."""
    from trunkline.cli.output import json_out, table

    found = with_gateway(lambda gateway: gateway.block_list(archived=archived))
    if as_json:
        json_out(
            {"blocks": found.blocks, "archived": found.archived} if archived else {"blocks": found.blocks}
        )
        return
    rows = [(b.name, _state(b), str(b.conversations), b.config.description) for b in found.blocks]
    rows += [(a.name, f"archived {a.archived_at:%Y-%m-%d %H:%M}", "", a.archive) for a in found.archived]
    table(rows, header=("BLOCK", "STATE", "CONVERSATIONS", "DESCRIPTION"))


@command.command("show", examples="trunkline blocks show main")
@click.argument("name", type=BlockName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_block(name: str, as_json: bool) -> None:
    """Show one block."""
    from trunkline.cli.output import json_out, table

    block = with_gateway(lambda gateway: gateway.block(name))
    if as_json:
        json_out(block)
        return
    tools = "all" if block.config.tools is None else ", ".join(block.config.tools) or "none"
    table(
        [
            ("block", block.name),
            ("state", _state(block)),
            ("description", block.config.description or "-"),
            ("goals", "; ".join(block.config.goals) or "-"),
            ("model", block.config.model or "the default"),
            ("vision model", block.config.vision_model or "as preferences.toml says"),
            ("tools", tools),
            ("conversations", str(block.conversations)),
            ("created", f"{block.created_at:%Y-%m-%d %H:%M}"),
        ]
    )


@command.command(
    "create", examples='trunkline blocks create garden --description "The garden" --goal Tomatoes'
)
@click.argument("name")
@click.option("--description", default="", help="What the block is about.")
@click.option("--goal", "goals", multiple=True, help="A goal of the block; may be given several times.")
@click.option("--model", help="ADAPTER/MODEL that answers here.")
@click.option("--vision-model", help="ADAPTER/MODEL that looks at pictures here.")
@click.option("--tool", "tools", multiple=True, help="Allow only this tool; may be given several times.")
def create_block(
    name: str,
    description: str,
    goals: tuple[str, ...],
    model: str | None,
    vision_model: str | None,
    tools: tuple[str, ...],
) -> None:
    """Make a block. A NAME has lower-case letters, digits and dashes, 32 at most."""
    from trunkline.messages.blocks import BlockConfig

    config = BlockConfig(
        description=description, goals=goals, model=model, vision_model=vision_model, tools=tools or None
    )
    with_gateway(lambda gateway: gateway.create_block(name, config))
    click.echo(f"Block {name} is there. Talk with it: trunkline chat --block {name}")


@command.command("archive", examples="trunkline blocks archive garden")
@click.argument("name", type=BlockName())
def archive_block(name: str) -> None:
    """Put a block away as it is. "restore" brings it back byte for byte."""

    with_gateway(lambda gateway: gateway.archive_block(name))
    click.echo(f"Block {name} is archived. Bring it back: trunkline blocks restore {name}")


@command.command("restore", examples="trunkline blocks restore garden")
@click.argument("name")
def restore_block(name: str) -> None:
    """Bring an archived block back."""

    with_gateway(lambda gateway: gateway.restore_block(name))
    click.echo(f"Block {name} is back.")


@command.command(
    "delete", examples="trunkline blocks delete garden\ntrunkline blocks delete garden --archived --yes"
)
@click.argument("name", type=BlockName())
@click.option("--archived", is_flag=True, help="Delete the newest archive of that name instead of the block.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_block(name: str, archived: bool, yes: bool) -> None:
    """Delete a block. Memory's history keeps what it held."""

    what = f"the newest archive of {name}" if archived else f"block {name} with its conversations"
    if not yes:
        click.confirm(f"Delete {what}?", abort=True)
    with_gateway(lambda gateway: gateway.delete_block(name, archived=archived))
    click.echo(f"Deleted {what}.")


def _state(block: "Block") -> str:
    return block.pulse.status if block.config.enabled else "disabled"
