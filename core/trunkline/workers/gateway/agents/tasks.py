"""TaskStarter: begins the task of an agent as a turn, within the limits of the turn that it works for.

Everything that limits the task is read from the journal of the calling turn, and not from the request: a tools worker
can neither widen the permissions nor choose another person, another budget or another family.
"""

from datetime import timedelta
from pathlib import Path

import anyio

from trunkline.config.settings import AgentsSettings
from trunkline.contracts.agents.messages import (
    AgentDefinition,
    AgentTask,
    CallingTurn,
    LastingAgent,
    StartTask,
    TaskDue,
)
from trunkline.contracts.agents.names import SINGLE, lasting_agent_id, task_conversation, task_id
from trunkline.contracts.agents.subjects import TASK_DUE, TASK_TIMER
from trunkline.contracts.conversations.messages import Message, utc_now
from trunkline.contracts.policies.actor_permissions import ActorPermissions
from trunkline.contracts.turns.journal_messages import ToolPlanned
from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.contracts.turns.parent_turn import ParentTurn
from trunkline.errors import ErrorCode
from trunkline.home.kill_switch import STOPPED_SENTENCE, KillSwitch
from trunkline.policy.turn_permissions import is_owner, remaining_permissions
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.task_cancel import cancel_task
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.ids import message_id
from trunkline.workers.gateway.message_service import MessageService
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, Refusal, current_traceparent

MAX_TEXT = 200_000
"""Largest number of characters of a task."""

PREAMBLE = (
    "You are the agent {name}. Another agent gave you the task below, and works for a person who does not see this "
    "conversation. Your last message is the result that it receives: make it complete, and say in it what you could "
    "not do."
)


class TaskStarter:
    """Starts tasks. ``start`` may be repeated: the id of a task is derived from its call.

    Methods raise Refusal with a fixed code, and BusError when the bus does not answer.
    """

    def __init__(
        self,
        bus: Bus,
        turns: TurnLookup,
        messages: MessageService,
        records: AgentRecords,
        settings: AgentsSettings,
        home: Path,
    ) -> None:
        self._bus = bus
        self._turns = turns
        self._messages = messages
        self._records = records
        self._settings = settings
        self._switch = KillSwitch(home)
        self._admitting = anyio.Lock()

    async def start(self, request: StartTask) -> AgentTask:
        """Start the task, or return it if it was started before.

        Refused with ``forbidden`` for a call that no turn makes, beyond the depth, and while panic is in effect; with
        ``not_found`` for an agent that is not the conversation's own; with ``conflict`` for a type below itself, and
        when the calling turn has ended; with ``rate_limited`` while too many tasks of the family run.
        """
        state = await self.calling_turn(request.caller)
        id = task_id(request.caller.call, request.number)
        task = await self._records.task(id)
        if task is None:
            async with self._admitting:  # so that calls of one answer, which come together, are counted
                task = await self._admitted(id, request, state)
        if task.is_running and not await self._turns.has_journal(task.conversation, task.id):
            await self._begin(task, request, state)
        return task

    async def _begin(self, task: AgentTask, request: StartTask, state: TurnState) -> None:
        """Put the turn of a task into the inbox. A block that takes no messages ends the task. If the calling turn was
        cancelled meanwhile, the task is cancelled, too: nothing else would, because its turn began after that."""
        agent = await self._agent_of(request)
        definition = request.definition if agent is None else agent.definition
        try:
            await self._messages.start_turn(_turn_request(task, request.text, definition, state))
        except Refusal:
            await self._records.end_task(task.id, "failed", untold=False)
            raise
        caller = await self._turns.find(state.request.turn)
        if caller is None or caller.finished is not None or caller.cancelled is not None:
            await cancel_task(self._bus, task, "the turn that it worked for")

    async def _agent_of(self, request: StartTask) -> LastingAgent | None:
        if not request.agent:
            return None
        return await self._records.agent(lasting_agent_id(request.caller.conversation, request.agent))

    async def calling_turn(self, caller: CallingTurn) -> TurnState:
        """Return the turn of a call that runs now. Refused with ``forbidden`` if there is no such call, and with
        ``conflict`` if its turn has ended or is being cancelled."""
        if self._switch.is_engaged:
            raise refusal(ErrorCode.FORBIDDEN, STOPPED_SENTENCE)
        state = await self._turns.find(caller.turn)
        if (
            state is None
            or (state.request.block, state.request.conversation) != (caller.block, caller.conversation)
            or not any(isinstance(one, ToolPlanned) and one.key == caller.call for one in state.entries)
        ):
            raise refusal(ErrorCode.FORBIDDEN, "Only the call of a turn gives a task to an agent.")
        if state.finished is not None or state.cancelled is not None:
            raise refusal(ErrorCode.CONFLICT, "The turn has ended, so it starts no task.")
        return state

    async def own_agent(self, caller: CallingTurn, name: str) -> LastingAgent:
        """Return a lasting agent of the caller's conversation by its name. Refused with ``not_found``."""
        agent = await self._records.agent(lasting_agent_id(caller.conversation, name))
        if agent is None:
            raise refusal(
                ErrorCode.NOT_FOUND,
                f"This conversation has no agent {name!r}. list_agents shows its agents; an agent of another "
                "conversation, and the agent that gave you this task, cannot be reached.",
            )
        return agent

    def levels(self, state: TurnState, definition: AgentDefinition) -> tuple[str, ...]:
        """Return the types from the person's turn down to a new agent of this turn. Refused with ``forbidden`` beyond
        the depth, and with ``conflict`` for a type below itself."""
        above = state.request.parent.types if isinstance(state.request.parent, ParentTurn) else ()
        if len(above) >= self._settings.max_depth:
            raise refusal(
                ErrorCode.FORBIDDEN,
                f"This agent is {len(above)} levels below a person's turn, and no agent may be deeper "
                f"([agents] max_depth = {self._settings.max_depth}). Do the work yourself.",
            )
        if definition.type and definition.type in above:
            raise refusal(
                ErrorCode.CONFLICT,
                f"An agent of the type {definition.type!r} already works above this one ({' > '.join(above)}); a type "
                "does not work below itself. Do the work yourself, or choose another type.",
            )
        return (*above, definition.type)

    async def _admitted(self, id: str, request: StartTask, state: TurnState) -> AgentTask:
        agent = await self.own_agent(request.caller, request.agent) if request.agent else None
        definition = request.definition if agent is None else agent.definition
        text = request.text.strip()
        if not text or len(text) > MAX_TEXT:
            raise refusal(ErrorCode.INVALID_REQUEST, f"A task has 1 to {MAX_TEXT} characters.")
        parent = self._parent(request.caller, state, agent, definition)
        running = await self._records.running(lambda task: task.parent.root == parent.root)
        if len(running) >= self._settings.max_running:
            raise refusal(
                ErrorCode.RATE_LIMITED,
                f"{len(running)} tasks of this family of agents run, which is the limit ([agents] max_running). Wait "
                "for one to end.",
            )
        own = state.request
        above = await self._records.task(own.turn) if isinstance(own.parent, ParentTurn) else None
        wanted = request.timeout if request.timeout is not None else definition.timeout
        seconds = min(wanted or self._settings.timeout, self._settings.timeout)
        deadline = utc_now() + timedelta(seconds=max(1.0, seconds))
        task = AgentTask(
            id=id,
            block=own.block,
            conversation=task_conversation(id) if agent is None else agent.conversation,
            parent=parent,
            awaited=request.awaited,
            deadline=deadline if above is None else min(deadline, above.deadline),
        )
        # The order: the timer first, so that no record stays without a deadline; then the record, so that the end of
        # the turn finds it; the turn last. A crash in between is completed by the repeated call (ADR 107).
        await self._bus.schedule(
            TASK_TIMER, TASK_DUE, TaskDue(task=id), at=task.deadline, msg_id=f"{id}-due", task=id
        )
        return await self._records.add_task(task)

    def _parent(
        self,
        caller: CallingTurn,
        state: TurnState,
        agent: LastingAgent | None,
        definition: AgentDefinition,
    ) -> ParentTurn:
        own = state.request
        above = own.parent if isinstance(own.parent, ParentTurn) else None
        return ParentTurn(
            block=own.block,
            conversation=own.conversation,
            turn=own.turn,
            call=caller.call,
            agent=agent.name if agent is not None else definition.type or SINGLE,
            agent_id=agent.id if agent is not None else "",
            root=above.root if above is not None else own.turn,
            root_conversation=above.root_conversation if above is not None else own.conversation,
            types=self.levels(state, definition),
        )


def _turn_request(task: AgentTask, text: str, definition: AgentDefinition, state: TurnState) -> TurnRequested:
    """Return the message of the task's turn, which has no more rights than the calling turn has now."""
    own = state.request
    lasts = bool(task.parent.agent_id)
    instructions = [PREAMBLE.format(name=task.parent.agent), definition.instructions]
    return TurnRequested(
        turn=task.id,
        block=task.block,
        conversation=task.conversation,
        message=Message(id=message_id(task.id), role="user", content=text, turn=task.id),
        actor=own.actor,
        channel=own.channel,
        permissions=_narrowed(remaining_permissions(own, state.entries), definition),
        token_id=own.token_id,
        trigger="agent",
        history=None if lasts else (),
        begins=not lasts,
        one_shot=True,
        model=definition.model if is_owner(own.actor) else None,  # a person's model may cost more
        instructions="\n\n".join(filter(None, instructions)),
        lane=lane_of(own.trigger, own.lane),
        traceparent=current_traceparent(),
        parent=task.parent,
    )


def _narrowed(own: ActorPermissions, definition: AgentDefinition) -> tuple[str, ...]:
    """Return what remains of the calling turn's permissions. A pattern that is wider than those is left out."""
    if definition.tools is None and definition.memory is None:
        return own.scopes
    tools = ("*",) if definition.tools is None else definition.tools
    memory = ("*",) if definition.memory is None else definition.memory
    wanted = (*(f"tools:{one}" for one in tools), *(f"memory:{one}" for one in memory))
    return own.intersect(wanted)
