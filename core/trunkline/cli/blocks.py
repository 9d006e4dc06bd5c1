"""``trunkline blocks``: create, list, show, change, start, stop, reset, archive, restore and delete blocks."""

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName
from trunkline.cli.confirmation import confirm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunkline.contracts.blocks.messages import Block, BlockConfig
    from trunkline.contracts.gateway.client import GatewayClient

EXAMPLES = """
trunkline blocks list
trunkline blocks create garden --description "The garden"
trunkline blocks set garden model=openai/gpt-5.5 permissions.approvals=all
trunkline blocks stop garden
trunkline blocks archive garden
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """Create, list, show, change, start, stop, reset, archive, restore and delete blocks. A block is a named agent with
    its own settings, memory, workspace and permissions."""


@command.command("list", examples="trunkline blocks list --archived\ntrunkline blocks list --json")
@click.option("--archived", is_flag=True, help="Also show archived blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_blocks(archived: bool, as_json: bool) -> None:
    """List the blocks with their status."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    found = with_gateway(lambda gateway: gateway.block_list(archived=archived))
    if as_json:
        print_json(
            {"blocks": found.blocks, "archived": found.archived} if archived else {"blocks": found.blocks}
        )
        return
    rows = [(b.name, _state(b), str(b.conversations), b.config.description) for b in found.blocks]
    rows += [(a.name, f"archived {format_local_time(a.archived_at)}", "", a.archive) for a in found.archived]
    print_table(rows, header=("BLOCK", "STATE", "CONVERSATIONS", "DESCRIPTION"))


@command.command("show", examples="trunkline blocks show main")
@click.argument("name", type=BlockName())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_block(name: str, as_json: bool) -> None:
    """Show the settings and status of a block."""
    from trunkline._util.local_time import format_local_time
    from trunkline.cli.output import print_json, print_table

    block = with_gateway(lambda gateway: gateway.block(name))
    if as_json:
        print_json(block)
        return
    tools = "all" if block.config.tools is None else ", ".join(block.config.tools) or "none"
    print_table(
        [
            ("block", block.name),
            ("state", _state(block)),
            *((("problem", block.problem),) if block.problem else ()),
            *((("last error", _described(block.pulse.error)),) if block.pulse.error else ()),
            ("description", block.config.description or "-"),
            ("goals", "; ".join(block.config.goals) or "-"),
            ("model", block.config.model or "the default"),
            ("tools", tools),
            *((key, _written(value)) for key, value in _further(block.config)),
            ("conversations", str(block.conversations)),
            ("created", format_local_time(block.created_at)),
        ]
    )


@command.command(
    "create",
    examples='trunkline blocks create garden --description "The garden" --goal Tomatoes\n'
    "trunkline blocks create library --template archivist --colour purple",
)
@click.argument("name")
@click.option("--template", default="", help="Begin with this template. See blocks templates.")
@click.option("--description", default="", help="The purpose of the block.")
@click.option("--goal", "goals", multiple=True, help="A goal of the block; repeatable.")
@click.option("--emoji", help="The emoji of its agent.")
@click.option("--colour", help="The colour of the block: a name such as teal, or #rrggbb.")
@click.option("--model", help="ADAPTER/MODEL that answers in this block.")
@click.option(
    "--model-for", "models", multiple=True, metavar="PURPOSE=MODEL", help="ADAPTER/MODEL for another purpose, such as "
    "vision=openai/gpt-4.1-mini; repeatable. See models --chosen.",
)  # fmt: skip
@click.option("--tool", "tools", multiple=True, help="Allow only this tool; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def create_block(
    name: str,
    template: str,
    description: str,
    goals: tuple[str, ...],
    emoji: str | None,
    colour: str | None,
    model: str | None,
    models: tuple[str, ...],
    tools: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a block. A NAME consists of lower-case letters, digits and dashes, 32 characters at most."""
    from trunkline.cli.memory.add import checked_block
    from trunkline.contracts.blocks.messages import BlockConfig

    checked_block(name)
    _checked_colour(colour)
    try:
        config = BlockConfig(
            description=description,
            goals=goals,
            model=model,
            models=_purposes(models),
            tools=tools or None,
            monitor_emoji=emoji,
            monitor_colour=colour,
        )
    except ValueError as error:
        raise click.UsageError(f"--model-for: {error}") from error
    block = with_gateway(lambda gateway: gateway.create_block(name, config, template=template))
    _report(f"Created block {name}. Talk with it: trunkline chat --block {name}", block, as_json)


@command.command("templates", examples="trunkline blocks templates\ntrunkline blocks templates --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_templates(as_json: bool) -> None:
    """List what a new block can begin with: the shipped templates, and those in the folder templates/ of the home."""
    from trunkline.cli.output import print_json, print_table, print_text

    found = with_gateway(lambda gateway: gateway.block_templates())
    if as_json:
        print_json({"templates": found})
        return
    usable = [one for one in found if not one.problem]
    print_table(
        [(one.name, "own" if one.is_own else "shipped", one.summary) for one in usable],
        header=("TEMPLATE", "FROM", "FOR"),
    )
    for one in found:
        if one.problem:
            print_text(f"{one.name} cannot be used: {one.problem}", err=True)


def _checked_colour(colour: str | None) -> None:
    from trunkline.contracts.blocks.colour import check_colour

    try:
        check_colour(colour)
    except ValueError as error:
        raise click.UsageError(f"--colour: {error}.") from error


SET_EXAMPLES = """
trunkline blocks set garden description="The garden" model=openai/gpt-5.5
trunkline blocks set garden goals="Grow tomatoes" goals="Keep slugs away"
trunkline blocks set garden tools='["memory_search", "memory_read"]'
trunkline blocks set garden permissions.approvals=all permissions.plan=true
"""


@command.command("set", examples=SET_EXAMPLES)
@click.argument("name", type=BlockName())
@click.argument("choices", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def set_choices(name: str, choices: tuple[str, ...], as_json: bool) -> None:
    """Set keys of a block's block.toml. A dot separates a table from its key. Repeat a key to give a list; KEY= is an
    empty list. Comments and order of the file stay. The change applies from the next message on."""
    from trunkline.workers.gateway.block_file import parse_value

    given: dict[str, list[str]] = {}
    for choice in choices:
        key, equals, value = choice.partition("=")
        if not equals:
            raise click.UsageError(f'{choice!r} is not KEY=VALUE. To remove a key, use "blocks unset".')
        given.setdefault(key, []).append(value)
    _change(name, {key: parse_value(key, words) for key, words in given.items()}, as_json)


@command.command("unset", examples="trunkline blocks unset garden model permissions.approvals")
@click.argument("name", type=BlockName())
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def unset_choices(name: str, keys: tuple[str, ...], as_json: bool) -> None:
    """Remove keys from a block's block.toml, so that the setting for all blocks applies."""
    _change(name, dict.fromkeys(keys), as_json)


def _change(name: str, changes: dict[str, Any], as_json: bool) -> None:
    block = with_gateway(lambda gateway: gateway.change_block(name, changes))
    done = f"Block {name} is changed: {', '.join(changes)}. The change applies from the next message on."
    _report(done, block, as_json)


def _report(done: str, result: object, as_json: bool) -> None:
    """Print the sentence that says what was done, or its result as JSON."""
    from trunkline.cli.output import print_json

    if as_json:
        print_json(result)
    else:
        click.echo(done)


@command.command("start", examples="trunkline blocks start garden")
@click.argument("name", type=BlockName())
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def start_block(name: str, as_json: bool) -> None:
    """Start a stopped block, so that it accepts messages again."""
    block = with_gateway(lambda gateway: gateway.change_block(name, {"enabled": None}))
    _report(f"Block {name} accepts messages.", block, as_json)


@command.command("stop", examples="trunkline blocks stop garden\ntrunkline blocks stop garden --finish")
@click.argument("name", type=BlockName())
@click.option("--finish", is_flag=True, help="Let running turns and background tasks finish.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stop_block(name: str, finish: bool, yes: bool, as_json: bool) -> None:
    """Stop a block: it accepts no messages until you start it. Its turns are cancelled, its questions withdrawn and its
    background tasks ended. A tool call that has begun to change something is not interrupted."""
    if not yes and not finish:
        _confirm_cancelling(name, "Stop it")
    stopped = with_gateway(lambda gateway: gateway.stop_block(name, finish=finish))
    turns, tasks = len(stopped.cancelled), len(stopped.tasks)
    said = f" {turns} of its turns {'was' if turns == 1 else 'were'} cancelled." if turns else ""
    said += f" {tasks} of its background tasks {'was' if tasks == 1 else 'were'} ended." if tasks else ""
    done = f"Block {name} is stopped.{said} Start it again: trunkline blocks start {name}"
    _report(done, {"block": stopped.block, "cancelled": stopped.cancelled, "tasks": stopped.tasks}, as_json)


@command.command(
    "reset", examples="trunkline blocks reset garden\ntrunkline blocks reset garden --hard --yes"
)
@click.argument("name", type=BlockName())
@click.option(
    "--hard", is_flag=True, help="Also delete its documents, skills, identity, sliders and workspace."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def reset_block(name: str, hard: bool, yes: bool, as_json: bool) -> None:
    """Delete a block's conversations and everything that its agent wrote and learned. Its turns are cancelled.
    block.toml stays. Documents, skills, identity, sliders and the workspace stay too, except with --hard."""
    if not yes:
        lost = " and its documents, skills, identity and sliders" if hard else ""
        click.echo(f"Block {name} loses its conversations, what its agent wrote and learned{lost}.", err=True)
        click.echo("Memory's history keeps them.", err=True)
        if hard:
            click.echo("The files in its workspace are permanently deleted.", err=True)
        _confirm_cancelling(name, "Reset it", always=True)
    block = with_gateway(lambda gateway: gateway.reset_block(name, hard=hard))
    _report(
        f"Block {name} has forgotten its conversations{' and its identity' if hard else ''}.", block, as_json
    )


def _confirm_cancelling(name: str, question: str, *, always: bool = False) -> None:
    """List the running work, and ask for confirmation before it is cancelled."""

    async def at_work(gateway: "GatewayClient") -> tuple[bool, int]:
        found = [block for block in await gateway.blocks() if block.name == name]
        waiting = await gateway.approval_list(block=name)
        return any(block.pulse.status == "BUSY" for block in found), len(waiting.approvals)

    busy, waiting = with_gateway(at_work)
    if waiting:
        click.echo(
            f"{waiting} of its calls {'waits' if waiting == 1 else 'wait'} for your approval and will not run.",
            err=True,
        )
    if busy:
        click.echo(f"Block {name} is answering now; the answer is cancelled.", err=True)
    if tasks := _tasks_here(name):
        click.echo(
            f"{tasks} of its background tasks {'runs and is' if tasks == 1 else 'run and are'} ended.",
            err=True,
        )
    if busy or waiting or tasks or always:
        confirm(f"{question}?")


def _tasks_here(name: str) -> int:
    """Return the number of a block's background tasks that run on this machine."""
    from trunkline.config.loader import resolve_home
    from trunkline.contracts.sandbox.detached_program import list_programs, programs_folder

    return sum(
        record.status() == "running" for record in list_programs(programs_folder(resolve_home(), name))
    )


@command.command("archive", examples="trunkline blocks archive garden")
@click.argument("name", type=BlockName())
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def archive_block(name: str, yes: bool, as_json: bool) -> None:
    """Archive a block and cancel its turns. "restore" brings the block back byte for byte."""
    if not yes:
        _confirm_cancelling(name, "Archive it")
    with_gateway(lambda gateway: gateway.archive_block(name))
    done = f"Block {name} is archived. Restore it: trunkline blocks restore {name}"
    _report(done, {"archived": name}, as_json)


@command.command("restore", examples="trunkline blocks restore garden")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the block as JSON.")
def restore_block(name: str, as_json: bool) -> None:
    """Restore an archived block."""
    block = with_gateway(lambda gateway: gateway.restore_block(name))
    _report(f"Block {name} is back.", block, as_json)


@command.command(
    "delete", examples="trunkline blocks delete garden\ntrunkline blocks delete garden --archived --yes"
)
@click.argument("name", type=BlockName())
@click.option("--archived", is_flag=True, help="Delete the newest archive of that name instead of the block.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def delete_block(name: str, archived: bool, yes: bool, as_json: bool) -> None:
    """Delete a block and cancel its turns. The history of memory keeps the block's files. The files in its workspace
    are permanently deleted."""
    what = f"the newest archive of {name}" if archived else f"block {name} with its conversations"
    if not yes and archived:
        confirm(f"Delete {what} and its workspace?")
    elif not yes:
        _confirm_cancelling(name, f"Delete {what} and its workspace", always=True)
    with_gateway(lambda gateway: gateway.delete_block(name, archived=archived))
    _report(f"Deleted {what}.", {"deleted": name, "archived": archived}, as_json)


def _state(block: "Block") -> str:
    if block.problem:
        return "BROKEN"
    if block.config.enabled:
        return block.pulse.status
    return "stopping" if block.pulse.status == "BUSY" else "stopped"


def _described(code: str) -> str:
    """Return the code of a failed turn with its sentence."""
    from trunkline.errors import FIXED_SENTENCES, ErrorCode

    return f"{code}: {FIXED_SENTENCES[ErrorCode(code)]}" if code in set(ErrorCode) else code


SHOWN = ("description", "goals", "model", "tools", "enabled")
"""The keys that are shown on a separate line."""


def _purposes(given: "Iterable[str]") -> dict[str, str]:
    """Return the models by purpose of ``--model-for``."""
    pairs = [one.partition("=") for one in given]
    if wrong := [purpose for purpose, _, model in pairs if not (purpose and model)]:
        raise click.UsageError(f"--model-for {wrong[0]}: write PURPOSE=ADAPTER/MODEL.")
    return {purpose: model for purpose, _, model in pairs}


def _further(config: "BlockConfig") -> "Iterator[tuple[str, Any]]":
    """Return the other keys of the block's file, with their values as written."""
    import msgspec

    for key, value in msgspec.to_builtins(config).items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", one) for name, one in value.items())
        elif key not in SHOWN:
            yield key, value


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
