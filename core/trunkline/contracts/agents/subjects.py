"""The operations about agents, the timers of their tasks, and the buckets behind them.

The tools worker calls these operations for a tool; those of the owner are in ``contracts.gateway.subjects``.
"""

from trunkline.contracts.agents.messages import (
    AgentList,
    AgentTask,
    AgentView,
    CreateAgent,
    LastingAgent,
    ListOwnAgents,
    StartTask,
    TaskDue,
    TaskStarted,
    TerminateAgent,
)
from trunkline.contracts.streams import TIMER_STREAM
from trunkline_bus import BucketSpec, Endpoint, Subject, Topic

START_TASK = Endpoint(
    "agent.task.start", Subject("trunkline.cmd.agent.task.start"), StartTask, TaskStarted, root=False,
    doc="Start a task of an agent.",
)  # fmt: skip
CREATE_AGENT = Endpoint(
    "agent.create", Subject("trunkline.cmd.agent.create"), CreateAgent, AgentView, root=False,
    doc="Create an agent that lasts beyond a task.",
)  # fmt: skip
TERMINATE_AGENT = Endpoint(
    "agent.terminate", Subject("trunkline.cmd.agent.terminate"), TerminateAgent, AgentView, root=False,
    doc="End an agent.",
)  # fmt: skip
LIST_OWN_AGENTS = Endpoint(
    "agent.list", Subject("trunkline.cmd.agent.list"), ListOwnAgents, AgentList, root=False,
    doc="The agents and tasks of a conversation.",
)  # fmt: skip

AGENT_OPERATIONS = (START_TASK, CREATE_AGENT, TERMINATE_AGENT, LIST_OWN_AGENTS)

TASK_TIMER: Topic[TaskDue] = Topic(
    name="task timers",
    subject=Subject("trunkline.turn.task-timer.{task}"),
    payload=TaskDue,
    stream=TIMER_STREAM,
    doc="A message schedule: the server publishes the deadline of an agent's task at its time.",
)
TASK_DUE: Topic[TaskDue] = Topic(
    name="tasks due",
    subject=Subject("trunkline.turn.task-due.{task}"),
    payload=TaskDue,
    stream=TIMER_STREAM,
    doc="The time of an agent's task is over. Durable until a gateway has processed it.",
)

AGENT_BUCKET: BucketSpec[LastingAgent] = BucketSpec(
    name="agents",
    payload=LastingAgent,
    max_bytes=16 * 1024 * 1024,
    description="Agents that last beyond a task, by id",
)
TASK_BUCKET: BucketSpec[AgentTask] = BucketSpec(
    name="agent-tasks",
    payload=AgentTask,
    ttl=30 * 86_400.0,
    max_bytes=16 * 1024 * 1024,
    description="Tasks of agents, by their turn; kept for a month after their last change",
)
