"""AgentService: lasting agents and the list of agents, for tools and for people."""

from trunkline.contracts.agents.messages import (
    AgentList,
    AgentTask,
    CreateAgent,
    EndAgent,
    LastingAgent,
    ListAgents,
    ListOwnAgents,
    StartTask,
    TaskStarted,
    TerminateAgent,
)
from trunkline.contracts.agents.names import agent_conversation, is_agent_name, lasting_agent_id
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.errors import ErrorCode
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.task_cancel import cancel_task
from trunkline.workers.gateway.agents.task_notices import TaskNotices
from trunkline.workers.gateway.agents.task_reports import TaskReports
from trunkline.workers.gateway.agents.tasks import TaskStarter
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.ids import is_id
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus

MAX_AGENTS = 20
"""Largest number of lasting agents of a conversation."""

MAX_INSTRUCTIONS = 64_000
"""Largest number of characters of an agent's instructions."""

ENDED_BY_AGENT = "the agent that it worked for"


class AgentService:
    """Serves the operations about agents.

    Methods raise Refusal with a fixed code, and BusError when the bus does not answer.
    """

    def __init__(
        self,
        bus: Bus,
        records: AgentRecords,
        starter: TaskStarter,
        reports: TaskReports,
        notices: TaskNotices,
        access: BlockAccess,
    ) -> None:
        self._bus = bus
        self._records = records
        self._starter = starter
        self._access = access
        self.reports = reports
        self.notices = notices

    async def start(self, request: StartTask) -> TaskStarted:
        """See ``TaskStarter.start``."""
        return TaskStarted(task=await self._starter.start(request))

    async def create(self, request: CreateAgent) -> LastingAgent:
        """Create a lasting agent for the caller's conversation. Refused as by ``TaskStarter.start``, with ``conflict``
        if another turn created an agent of that name, and with ``invalid_request`` for a name that cannot be."""
        caller = request.caller
        state = await self._starter.calling_turn(caller)
        if not is_agent_name(request.name):
            raise refusal(
                ErrorCode.INVALID_REQUEST,
                "An agent is named by a-z, 0-9, - and _, with at most 40 characters.",
            )
        if len(request.definition.instructions) > MAX_INSTRUCTIONS:
            raise refusal(
                ErrorCode.TOO_LARGE,
                f"The instructions of an agent have {MAX_INSTRUCTIONS} characters at most.",
            )
        levels = self._starter.levels(state, request.definition)
        own = [one for one in await self._records.agents() if one.parent_conversation == caller.conversation]
        id = lasting_agent_id(caller.conversation, request.name)
        known = next((one for one in own if one.id == id), None)
        if known is None and len(own) >= MAX_AGENTS:
            raise refusal(
                ErrorCode.RATE_LIMITED,
                f"This conversation has {len(own)} agents, which is the limit. End one first.",
            )
        agent = known or await self._records.add_agent(
            LastingAgent(
                id=id,
                name=request.name,
                block=caller.block,
                conversation=agent_conversation(id, caller.call),
                parent_conversation=caller.conversation,
                created_by=caller.call,
                types=levels,
                definition=request.definition,
            )
        )
        if agent.created_by != caller.call:
            raise refusal(
                ErrorCode.CONFLICT,
                f"This conversation has an agent {request.name!r}. Give it a task, or end it.",
            )
        return agent

    async def terminate(self, request: TerminateAgent) -> LastingAgent:
        """End a lasting agent of the caller's conversation. Refused as by ``TaskStarter.own_agent``."""
        await self._starter.calling_turn(request.caller)
        agent = await self._starter.own_agent(request.caller, request.name)
        await self._end(agent, ENDED_BY_AGENT)
        return agent

    async def own(self, request: ListOwnAgents) -> AgentList:
        """Return the lasting agents of the caller's conversation, and the tasks that its turns started."""
        await self._starter.calling_turn(request.caller)
        conversation = request.caller.conversation
        await self._records.note_seen(request.caller.turn)
        return AgentList(
            agents=tuple(
                one for one in await self._records.agents() if one.parent_conversation == conversation
            ),
            tasks=tuple(
                one for one in await self._records.tasks() if one.parent.conversation == conversation
            ),
        )

    async def list_agents(self, request: ListAgents, sender: Sender) -> AgentList:
        """Return the agents and tasks of the blocks that the sender may read."""
        rights = await self._access.rights_of(sender.identity)

        def is_wanted(block: str, conversations: set[str]) -> bool:
            return (
                rights.may(TokenScope.READ, block)
                and request.block in (None, block)
                and (request.conversation is None or request.conversation in conversations)
            )

        return AgentList(
            agents=tuple(
                one
                for one in await self._records.agents()
                if is_wanted(one.block, {one.parent_conversation, one.conversation})
            ),
            tasks=tuple(one for one in await self._records.tasks() if is_wanted(one.block, _around(one))),
        )

    async def end(self, request: EndAgent, sender: Sender) -> None:
        """End a lasting agent or cancel a task, by its id. Refused with ``not_found``, and with ``forbidden`` for
        whoever may not operate its block."""
        rights = await self._access.rights_of(sender.identity)
        task = agent = None
        if is_id(request.id):  # another text is no key of a bucket
            task, agent = await self._records.task(request.id), await self._records.agent(request.id)
        found = task or agent
        if found is None or not rights.may(TokenScope.READ, found.block):
            raise refusal(ErrorCode.NOT_FOUND, "There is no agent and no task with this id.")
        rights.require(TokenScope.OPERATE, found.block)
        if agent is not None:
            await self._end(agent, sender.identity.id)
        if task is not None and task.is_running:
            await cancel_task(self._bus, task, sender.identity.id)

    async def _end(self, agent: LastingAgent, by: str) -> None:
        """Cancel the tasks, then remove the agent: a crash in between leaves an agent that can be ended again. Tasks
        that began meanwhile are cancelled after that."""
        await self._cancel_tasks(agent, by)
        await self._records.remove_agent(agent.id)
        await self._cancel_tasks(agent, by)

    async def _cancel_tasks(self, agent: LastingAgent, by: str) -> None:
        for task in await self._records.running(lambda task: task.parent.agent_id == agent.id):
            await cancel_task(self._bus, task, by)


def _around(task: AgentTask) -> set[str]:
    """Return the conversations to which a task belongs: its own, the calling one, and the one of the family."""
    parent = task.parent
    return {task.conversation, parent.conversation, parent.root_conversation}
