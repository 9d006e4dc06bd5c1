"""The messages about agents that work for other agents, and about their tasks.

A task is an ordinary turn, in a conversation of its own (ADR 107). Its id is the id of the turn.
"""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.turns.parent_turn import ParentTurn
from trunkline_bus import Payload

TaskState = Literal["running", "done", "failed", "cancelled", "timed_out"]
"""The state of a task. A task that waits for a person, or for an agent of its own, is running."""

EndedState = Literal["done", "failed", "cancelled", "timed_out"]


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The definition of an agent. ``type`` is the name of its type, "" if it has none.

    ``instructions`` is a system message of each of its tasks. ``model`` (``adapter/model``) answers its tasks; None is
    the block's model. ``tools`` are patterns of the names of the tools that it may use, and ``memory`` patterns of the
    paths of memory that it may use; None means those of the agent that it works for, and it never has more than that
    one. ``timeout`` is the number of seconds that a task may take; None is the configured limit.
    """

    type: str = ""
    instructions: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    memory: tuple[str, ...] | None = None
    timeout: float | None = None


class AgentReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a task. ``text`` is the agent's last answer if the task is done, else a sentence that says why it is
    not. ``agent`` is the agent's name.
    """

    task: str
    agent: str
    state: EndedState
    text: str


class AgentTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task of an agent. ``id`` is its turn, ``conversation`` its conversation, ``parent`` the call that started it.
    With ``awaited`` that call waits for the result. The task is cancelled at ``deadline``. ``ended_at`` is None while
    it is running. ``untold`` is true while the owner is still to be told of its end, unless the
    calling turn looks at it.
    """

    id: str
    block: str
    conversation: str
    parent: ParentTurn
    awaited: bool
    started_at: datetime = msgspec.field(default_factory=utc_now)
    deadline: datetime
    state: TaskState = "running"
    ended_at: datetime | None = None
    untold: bool = False

    @property
    def is_running(self) -> bool:
        """Report whether the task has not ended."""
        return self.state == "running"


class LastingAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that lasts beyond its first task. All of its tasks are in its ``conversation``. It belongs to the
    conversation ``parent_conversation``, whose turns alone give it tasks and end it. ``types`` are as in
    ``ParentTurn``. ``created_by`` is the turn that created it.
    """

    id: str
    name: str
    block: str
    conversation: str
    parent_conversation: str
    created_by: str
    types: tuple[str, ...]
    definition: AgentDefinition = AgentDefinition()
    created_at: datetime = msgspec.field(default_factory=utc_now)


class CallingTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The call that a request comes from. ``call`` is its key in the effect ledger."""

    block: str
    conversation: str
    turn: str
    call: str


class StartTask(Payload, frozen=True, kw_only=True, tag="agent.task.start.v1"):
    """Start a task. A repeated request with the same call and ``number`` is the same task.

    ``agent`` is the name of a lasting agent of the conversation, "" for an agent that ends with this task; then
    ``definition`` says what it is. ``timeout`` is the number of seconds that the task may take.
    """

    caller: CallingTurn
    number: int
    text: str
    agent: str = ""
    definition: AgentDefinition = AgentDefinition()
    awaited: bool = True
    timeout: float | None = None


class TaskStarted(Payload, frozen=True, kw_only=True, tag="agent.task.started.v1"):
    """The task is on disk."""

    task: AgentTask


class CreateAgent(Payload, frozen=True, kw_only=True, tag="agent.create.v1"):
    """Create a lasting agent for the conversation. A repeated request by the same turn changes nothing."""

    caller: CallingTurn
    name: str
    definition: AgentDefinition


class TerminateAgent(Payload, frozen=True, kw_only=True, tag="agent.terminate.v1"):
    """End a lasting agent of the conversation, by its name, and cancel its tasks. Its conversation stays."""

    caller: CallingTurn
    name: str


class AgentView(Payload, frozen=True, kw_only=True, tag="agent.view.v1"):
    """A lasting agent."""

    agent: LastingAgent


class ListOwnAgents(Payload, frozen=True, kw_only=True, tag="agent.list-own.v1"):
    """Ask for the agents and the tasks of the caller's conversation."""

    caller: CallingTurn


class ListAgents(Payload, frozen=True, kw_only=True, tag="agent.list.v1"):
    """Ask for the agents and the tasks of a block, of a conversation and all that works for it, or of everything."""

    block: str | None = None
    conversation: str | None = None


class AgentList(Payload, frozen=True, kw_only=True, tag="agent.list-reply.v1"):
    """Agents by name, and tasks, the oldest first."""

    agents: tuple[LastingAgent, ...] = ()
    tasks: tuple[AgentTask, ...] = ()


class EndAgent(Payload, frozen=True, kw_only=True, tag="agent.end.v1"):
    """End a lasting agent by its id, or cancel a task by its id."""

    id: str


class TaskDue(Payload, frozen=True, kw_only=True, tag="agent.task.due.v1"):
    """The time of a task is over."""

    task: str
