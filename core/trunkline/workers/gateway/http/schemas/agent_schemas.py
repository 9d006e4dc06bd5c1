"""The schemas of agents that work for other agents."""

from datetime import datetime
from typing import Literal

from trunkline.workers.gateway.http.schemas.schema_base import Out


class AgentTaskItem(Out, frozen=True, kw_only=True):
    """A task of an agent. ``id`` is its turn, in ``conversation``. ``agent`` is the agent's name for people, and
    ``agent_id`` its id if it lasts beyond the task. ``parent_turn`` of ``parent_conversation`` gave the task, and waits
    for it if ``awaited``. ``depth`` counts from the person's turn ``root``, whose tasks have 1.
    """

    id: str
    block: str
    conversation: str
    agent: str
    agent_id: str = ""
    type: str = ""
    state: Literal["running", "done", "failed", "cancelled", "timed_out"]
    awaited: bool
    depth: int
    parent_turn: str
    parent_conversation: str
    root: str
    root_conversation: str
    started_at: datetime
    deadline: datetime
    ended_at: datetime | None = None


class LastingAgentItem(Out, frozen=True, kw_only=True):
    """An agent that lasts beyond its tasks, for the turns of ``parent_conversation``."""

    id: str
    name: str
    block: str
    type: str = ""
    conversation: str
    parent_conversation: str
    created_at: datetime


class AgentItems(Out, frozen=True, kw_only=True):
    """The lasting agents by name, and the tasks, the oldest first. A task that has ended is listed for a day."""

    agents: tuple[LastingAgentItem, ...]
    tasks: tuple[AgentTaskItem, ...]
