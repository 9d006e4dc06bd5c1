"""``trunkline agents``: the agents that work for other agents, their tasks as a tree, and their end."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.attached_gateway import with_gateway
from trunkline.cli.command import Group
from trunkline.cli.completion_types import BlockName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunkline.contracts.agents.messages import AgentList, AgentTask
    from trunkline.contracts.gateway.client import GatewayClient

EXAMPLES = """
trunkline agents list
trunkline agents list --block garden --json
trunkline agents end turn_3nvwn7q
"""


@click.group(cls=Group, examples=EXAMPLES)
def command() -> None:
    """List the agents that work for other agents, and end them.

    A task is a turn, in a conversation of its own, so "trunkline trace" and "trunkline conversations open" show it. A
    task that has ended is listed for a day.
    """


@command.command("list", examples="trunkline agents list\ntrunkline agents list --running --json")
@click.option("--block", type=BlockName(), help="Only items of this block.")
@click.option("--running", is_flag=True, help="Only tasks that have not ended.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_agents(block: str | None, running: bool, as_json: bool) -> None:
    """List agents and tasks, each task below the one that it works for."""
    from msgspec.structs import replace

    from trunkline.cli._support.blocks import require_known_block
    from trunkline.cli.output import print_json, print_table

    async def listed(gateway: "GatewayClient") -> "AgentList":
        if block is not None:
            require_known_block(block, [one.name for one in (await gateway.block_list()).blocks])
        return await gateway.agents(block=block)

    found = with_gateway(listed)
    tasks = tuple(task for task in found.tasks if task.is_running or not running)
    if as_json:
        print_json(replace(found, tasks=tasks))
        return
    if not found.agents and not tasks:
        click.echo("No agent works for another one.")
        return
    lasting = [(one.id, one.block, one.name, "lasts", "", one.parent_conversation) for one in found.agents]
    rows = [
        (
            task.id,
            task.block,
            f"{'  ' * depth}{task.parent.agent}",
            task.state.replace("_", " "),
            _duration(task),
            task.parent.conversation,
        )
        for depth, task in _tree(tasks)
    ]
    print_table([*lasting, *rows], header=("ID", "BLOCK", "AGENT", "STATE", "TIME", "FOR"))


@command.command("end", examples="trunkline agents end turn_3nvwn7q\ntrunkline agents end agent_k3v7q")
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def end(id: str, as_json: bool) -> None:
    """Cancel the task ID with all that works for it, or end the lasting agent ID."""
    from trunkline.cli.output import print_done, print_json

    with_gateway(lambda gateway: gateway.end_agent(id))
    if as_json:
        print_json({"id": id, "ended": True})
    else:
        print_done(f"{id} is being ended.")


def _tree(tasks: "tuple[AgentTask, ...]") -> "Iterator[tuple[int, AgentTask]]":
    """Yield the tasks in the order of the tree, each with its depth below those that are listed."""
    ids = {task.id for task in tasks}

    def below(turn: str, depth: int) -> "Iterator[tuple[int, AgentTask]]":
        for task in tasks:
            if task.parent.turn == turn:
                yield depth, task
                yield from below(task.id, depth + 1)

    for task in tasks:
        if task.parent.turn not in ids:
            yield 0, task
            yield from below(task.id, 1)


def _duration(task: "AgentTask") -> str:
    from trunkline.contracts.conversations.messages import utc_now

    seconds = round(((task.ended_at or utc_now()) - task.started_at).total_seconds())
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"
