"""AgentRecords: the lasting agents and the tasks, in their buckets. No decisions."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from trunkline.contracts.agents.messages import AgentTask, EndedState, LastingAgent
from trunkline.contracts.agents.subjects import AGENT_BUCKET, TASK_BUCKET
from trunkline.contracts.conversations.messages import utc_now
from trunkline_bus import Bus, KeyValueEntry, SequenceConflict

T = TypeVar("T")

ENDED_SECONDS = 86_400.0
"""Seconds for which a task that has ended is listed. The journal and the trace of its turn have their own retention."""


class AgentRecords:
    """The records, for any number of gateways. Methods raise BusError."""

    def __init__(self, bus: Bus) -> None:
        self._agents = bus.kv(AGENT_BUCKET)
        self._tasks = bus.kv(TASK_BUCKET)

    async def task(self, id: str) -> AgentTask | None:
        """Return a task by its turn."""
        entry = await self._tasks.get(id)
        return None if entry is None else entry.value

    async def tasks(self) -> list[AgentTask]:
        """Return all tasks, the oldest first."""
        return sorted(_values(await self._tasks.entries()), key=lambda task: (task.started_at, task.id))

    async def running(self, matches: Callable[[AgentTask], bool]) -> list[AgentTask]:
        """Return the running tasks that match, the oldest first."""
        return [task for task in await self.tasks() if task.is_running and matches(task)]

    async def add_task(self, task: AgentTask) -> AgentTask:
        """Store a task, and return the one that counts: the first with this id."""
        try:
            await self._tasks.create(task.id, task)
        except SequenceConflict:
            return await self.task(task.id) or task
        return task

    async def end_task(self, id: str, state: EndedState, *, untold: bool) -> None:
        """Mark a task as ended. One that has ended stays as it is."""
        await self._change_task(
            id,
            lambda task: (
                replace(task, state=state, ended_at=utc_now(), untold=untold) if task.is_running else task
            ),
        )

    async def note_told(self, id: str) -> None:
        """Note that the owner need not be told of a task's end any more."""
        await self._change_task(id, lambda task: replace(task, untold=False))

    async def note_seen(self, turn: str, agent: str | None = None) -> None:
        """Note that a turn has seen which of its tasks have ended, of all of its agents or of a lasting one."""
        for task in await self.tasks():
            if task.untold and task.parent.turn == turn and agent in (None, task.parent.agent_id):
                await self.note_told(task.id)

    async def _change_task(self, id: str, change: Callable[[AgentTask], AgentTask]) -> None:
        while True:
            entry = await self._tasks.get(id)
            if entry is None or entry.value is None or (changed := change(entry.value)) == entry.value:
                return
            try:
                await self._tasks.update(id, changed, entry.revision, ttl=ENDED_SECONDS)
            except SequenceConflict:
                continue  # another gateway changed it meanwhile
            return

    async def agent(self, id: str) -> LastingAgent | None:
        """Return a lasting agent by its id."""
        entry = await self._agents.get(id)
        return None if entry is None else entry.value

    async def agents(self) -> list[LastingAgent]:
        """Return all lasting agents, by name."""
        return sorted(_values(await self._agents.entries()), key=lambda agent: (agent.name, agent.id))

    async def add_agent(self, agent: LastingAgent) -> LastingAgent:
        """Store a lasting agent, and return the one that counts: the first with this id."""
        try:
            await self._agents.create(agent.id, agent)
        except SequenceConflict:
            return await self.agent(agent.id) or agent
        return agent

    async def remove_agent(self, id: str) -> None:
        """Remove a lasting agent."""
        await self._agents.delete(id)

    async def remove_agents_of(self, block: str) -> None:
        """Remove the lasting agents of a block."""
        for agent in await self.agents():
            if agent.block == block:
                await self.remove_agent(agent.id)


def _values(entries: Iterable[KeyValueEntry[T]]) -> list[T]:
    return [entry.value for entry in entries if entry.value is not None]
