"""The tools: one task for an agent, and agents that last. What an agent answers is data."""

from datetime import UTC, datetime
from functools import partial

from msgspec.structs import replace

import trunkline
from trunkline import ToolContext, ToolError
from trunkline.api.agents import AgentDefinition, AgentReport, AgentTask, EndedState, LastingAgent
from trunkline.api.tool import ToolErrorKind
from trunkline_agents.agent_type import AgentType, AgentTypeIssue
from trunkline_agents.reader import read_agent_types

KINDS: dict[EndedState, ToolErrorKind] = {
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timeout",
}
"""The kind of error of a task that is not done."""


@trunkline.tool(effect="write", idempotent=True, delegates=True, untrusted_output=True)
async def agent_run(context: ToolContext, task: str, type: str = "", timeout: int = 0) -> str:
    """Give a task to an agent of its own and get its result. Several calls in one answer run at the same time. The
    agent sees nothing of this conversation, and has your permissions at most.

    Args:
        task: Everything that the agent must know to do the task, and what it is to answer.
        type: The type of the agent, as list_agents shows it; without one it is an agent like you.
        timeout: Seconds after which the task is cancelled; 0 for the configured time.
    """
    definition = partial(_definition, context, type)
    return _result(await context.agents.run(task, definition, timeout=_seconds(timeout)))


@trunkline.tool(effect="write", idempotent=True, delegates=True)
async def create_agent(context: ToolContext, name: str, description: str = "", type: str = "") -> str:
    """Create an agent that remembers its tasks, for this conversation. query_agent gives it tasks.

    Args:
        name: A name of a-z, 0-9, - and _.
        description: What the agent is for and how it shall work.
        type: The type of the agent, as list_agents shows it.
    """
    definition = await _definition(context, type)
    texts = (definition.instructions, description.strip())
    definition = replace(definition, instructions="\n\n".join(filter(None, texts)))
    agent = await context.agents.create(name, definition)
    return f"The agent {agent.name} is there. Give it tasks with query_agent or message_agent."


@trunkline.tool(effect="write", idempotent=True, delegates=True, untrusted_output=True)
async def query_agent(context: ToolContext, name: str, prompt: str, timeout: int = 0) -> str:
    """Give a task to an agent that you created, and get its result.

    Args:
        name: The agent's name.
        prompt: The task, or what you want to know. The agent remembers its earlier tasks.
        timeout: Seconds after which the task is cancelled; 0 for the configured time.
    """
    return _result(await context.agents.ask(name, prompt, timeout=_seconds(timeout)))


@trunkline.tool(effect="write", idempotent=True, delegates=True)
async def message_agent(context: ToolContext, name: str, message: str, timeout: int = 0) -> str:
    """Give a task to an agent that you created, without waiting for its result. A later query_agent can ask for it.

    Args:
        name: The agent's name.
        message: The task.
        timeout: Seconds after which the task is cancelled; 0 for the configured time.
    """
    task = await context.agents.message(name, message, timeout=_seconds(timeout))
    return f"The agent {name} has the task {task.id}."


@trunkline.tool(effect="read", untrusted_output=True, derived=True)
async def list_agents(context: ToolContext) -> str:
    """List the types of agents, the agents that you created, and the tasks of this conversation."""
    types = await read_agent_types(context.memory)
    found = await context.agents.list()
    good = [one.line for one in types.values() if isinstance(one, AgentType)]
    broken = [one.line for one in types.values() if isinstance(one, AgentTypeIssue)]
    sections = (
        ("Types:", good),
        ("Types that cannot be used:", broken),
        ("Agents:", [_agent_line(one) for one in found.agents]),
        ("Tasks:", [_task_line(one) for one in found.tasks]),
    )
    lines = [line for title, some in sections if some for line in (title, *some)]
    return "\n".join(lines) or "There are no types, no agents and no tasks."


@trunkline.tool(effect="write", idempotent=True, delegates=True)
async def terminate_agent(context: ToolContext, name: str) -> str:
    """End an agent that you created, and cancel its tasks. You cannot end the agent that gave you your task.

    Args:
        name: The agent's name.
    """
    agent = await context.agents.terminate(name)
    return f"The agent {agent.name} is ended. Its conversation {agent.conversation} can still be read."


async def _definition(context: ToolContext, type: str) -> AgentDefinition:
    if not type:
        return AgentDefinition()
    types = await read_agent_types(context.memory)
    found = types.get(type)
    if isinstance(found, AgentType):
        return found.definition
    if isinstance(found, AgentTypeIssue):
        raise ToolError(
            f"The type {type} cannot be used: {found.why} A person can correct it.", kind="unsupported"
        )
    known = ", ".join(name for name, one in types.items() if isinstance(one, AgentType)) or "none"
    raise ToolError(f"There is no type {type!r}. There are: {known}.", kind="not_found")


def _result(report: AgentReport) -> str:
    if report.state == "done":
        return report.text
    raise ToolError(report.text, kind=KINDS[report.state])


def _seconds(timeout: int) -> float | None:
    if timeout < 0:
        raise ToolError("timeout is a number of seconds, or 0.", kind="invalid_arguments")
    return float(timeout) or None


def _agent_line(agent: LastingAgent) -> str:
    kind = f" of type {agent.definition.type}" if agent.definition.type else ""
    return f"- {agent.name}{kind}"


def _task_line(task: AgentTask) -> str:
    seconds = round(((task.ended_at or datetime.now(UTC)) - task.started_at).total_seconds())
    return f"- {task.id}: {task.parent.agent}, {task.state.replace('_', ' ')}, {seconds} s"
