"""``trunkline workflows check``: the mistakes of a workflow, before it runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trunkline.api.cli import Command
from trunkline_workflow.commands._common import block_option, json_option

if TYPE_CHECKING:
    from trunkline.api.bus import Bus
    from trunkline_workflow.definition import Definition
    from trunkline_workflow.yaml_reader import Problem

EXAMPLES = """
trunkline workflows check deploy-app
trunkline workflows check ./deploy-app.yaml --json
"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("workflow", metavar="NAME|FILE")
@block_option
@click.option("--tools/--no-tools", default=True, show_default=True, help="Also check the names of tools.")
@json_option
def command(workflow: str, block: str, tools: bool, as_json: bool) -> int:
    """Check a workflow of the block, or a FILE with a slash or ".yaml" in its name.

    The exit status is 1 when it has a mistake. An unknown tool is a warning.
    """
    from trunkline.api.cli import print_json, with_workers
    from trunkline_workflow.definition import DefinitionError, parse_definition

    async def checked(bus: "Bus") -> "tuple[list[Problem], list[Problem]]":
        text = await _text(bus, workflow, block)
        try:
            definition = parse_definition(text)
        except DefinitionError as error:
            return list(error.problems), []
        return [], await _unknown_tools(bus, definition, block) if tools else []

    mistakes, warnings = with_workers(checked, "memory", *(("tools",) if tools else ()))
    if as_json:
        print_json({"ok": not mistakes, "mistakes": mistakes, "warnings": warnings})
    else:
        for what, found in (("", mistakes), ("warning: ", warnings)):
            for problem in found:
                click.echo(f"{workflow}, line {problem.line}: {what}{problem.text}", err=bool(mistakes))
        if not mistakes:
            click.echo(f"{workflow} is a workflow.")
    return 1 if mistakes else 0


async def _text(bus: "Bus", workflow: str, block: str) -> str:
    from trunkline_workflow.records import WorkflowFiles

    if is_file(workflow):
        return read_file(workflow)
    return await WorkflowFiles(bus, block).require_text(workflow)


def is_file(workflow: str) -> bool:
    """Report whether an argument names a file and not a workflow."""
    return "/" in workflow or workflow.endswith((".yaml", ".yml"))


def read_file(path: str) -> str:
    """Return the text of a file. Raises TrunklineError if it cannot be read."""
    from trunkline import TrunklineError
    from trunkline_workflow.yaml_reader import MAX_BYTES

    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TrunklineError(
            f"{path} cannot be read: {why}.",
            hint="Name a workflow's YAML file: trunkline workflows check FILE.",
        ) from error


async def _unknown_tools(bus: "Bus", definition: "Definition", block: str) -> "list[Problem]":
    from trunkline.api.tool import LIST_TOOLS, ListTools
    from trunkline_workflow.definition import WAIT
    from trunkline_workflow.yaml_reader import Problem

    catalogue = await bus.call(LIST_TOOLS, ListTools(block=block), timeout=60, repeatable=True)
    names = {name for spec in catalogue.tools or () for name in (spec.name, *spec.aliases)}
    names |= {spec.name for spec in catalogue.own}
    return [
        Problem(step.lines["action"], f"The block {block} has no tool {step.action!r} now.")
        for step in definition.steps
        if step.type == "action" and step.action != WAIT and step.action not in names
    ]
