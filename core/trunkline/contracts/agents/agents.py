"""Agents as a tool sees them: it gives them tasks and receives their results."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import NoReturn

from trunkline.contracts.agents.messages import (
    AgentDefinition,
    AgentList,
    AgentReport,
    AgentTask,
    LastingAgent,
)
from trunkline.errors import ToolError

DefinitionSource = AgentDefinition | Callable[[], Awaitable[AgentDefinition]]
"""A definition, or a function that returns it."""

NOT_HERE = "No agent can be given a task from here."


class Agents(ABC):
    """The agents that work for the conversation of one tool call.

    A task is a turn in a conversation of its own. Its permissions, budget, time and credential are a part of those of
    the turn that starts it. Its approvals reach the owner, and say for which agent they are.

    Guarantees: a call that is repeated after a crash starts each task once, and gets its one result. A task ends at its
    deadline, with the turn that waits for it, and with every stop that ends that turn. No method reaches an agent of
    another conversation.

    Not guaranteed: that the limit on running tasks is exact if several gateways start tasks at the same time. That the
    code before ``run`` and ``ask`` runs once: the call ends there, and is run again from its beginning when there is a
    result. So start the tasks of one call in the same order each time, and do no other work before.

    Errors: every method raises ToolError: ``unavailable`` if no gateway answers, ``unsupported`` where there is no turn
    that an agent could work for, and the kind of the gateway's refusal: ``permission_denied`` beyond the permitted
    depth, ``conflict`` for a type below itself, ``rate_limited`` while too many tasks run, ``not_found`` for an agent
    that is not the conversation's own.
    """

    @abstractmethod
    async def run(
        self, text: str, definition: DefinitionSource, *, timeout: float | None = None
    ) -> AgentReport:
        """Give the task to a new agent, and return its report when the task has ended. ``timeout`` is in seconds. The
        tool must be repeatable. A function as ``definition`` is called only if the task must be started, and may raise
        ToolError. Raises ToolError.
        """

    @abstractmethod
    async def ask(self, agent: str, text: str, *, timeout: float | None = None) -> AgentReport:
        """Give a task to a lasting agent, by its name, and return its report. As ``run``. Raises ToolError."""

    @abstractmethod
    async def message(self, agent: str, text: str, *, timeout: float | None = None) -> AgentTask:
        """Give a task to a lasting agent and return at once. The task goes on when this turn ends, unless the turn is
        cancelled. Raises ToolError.
        """

    @abstractmethod
    async def create(self, name: str, definition: AgentDefinition) -> LastingAgent:
        """Create an agent that lasts until it is ended. Its tasks share one conversation. Raises ToolError."""

    @abstractmethod
    async def terminate(self, name: str) -> LastingAgent:
        """End a lasting agent and cancel its tasks. Raises ToolError."""

    @abstractmethod
    async def list(self) -> AgentList:
        """Return the lasting agents of the conversation, and the tasks that its turns started. Raises ToolError."""


class NoAgents(Agents):
    """Agents are out of reach: on other hosts, in isolated processes, and in tests without them."""

    async def run(
        self, text: str, definition: DefinitionSource, *, timeout: float | None = None
    ) -> AgentReport:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()

    async def ask(self, agent: str, text: str, *, timeout: float | None = None) -> AgentReport:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()

    async def message(self, agent: str, text: str, *, timeout: float | None = None) -> AgentTask:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()

    async def create(self, name: str, definition: AgentDefinition) -> LastingAgent:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()

    async def terminate(self, name: str) -> LastingAgent:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()

    async def list(self) -> AgentList:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        _refuse()


def _refuse() -> NoReturn:
    raise ToolError(NOT_HERE, kind="unsupported")
