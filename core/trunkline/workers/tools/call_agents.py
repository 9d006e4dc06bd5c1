"""The agents of one call: starts tasks at the gateway, and ends the call until a task has its result.

The call waits in the turn's journal and not in this worker: it ends with the outcome ``agent``, and the monitor sends
it again with the report (ADR 107).
"""

from collections.abc import Awaitable
from typing import TypeVar

from trunkline.contracts.agents.agents import Agents
from trunkline.contracts.agents.messages import (
    AgentDefinition,
    AgentList,
    AgentReport,
    AgentTask,
    CallingTurn,
    CreateAgent,
    LastingAgent,
    ListOwnAgents,
    StartTask,
    TerminateAgent,
)
from trunkline.contracts.agents.subjects import CREATE_AGENT, LIST_OWN_AGENTS, START_TASK, TERMINATE_AGENT
from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.errors import ToolError, error_kind_for_code
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline_bus import Bus, BusError, RemoteFault

T = TypeVar("T")

TIMEOUT = 10.0
"""Seconds to wait for a gateway."""


class CallAgents(Agents):
    """The agents of one call."""

    def __init__(self, bus: Bus, run: ActiveCall, spec: ToolSpec) -> None:
        self._bus = bus
        self._run = run
        self._spec = spec
        self._count = 0
        call = run.call
        self._caller = CallingTurn(
            block=call.block, conversation=call.conversation, turn=call.turn, call=call.call
        )

    async def run(
        self, text: str, definition: AgentDefinition, *, timeout: float | None = None
    ) -> AgentReport:
        """See ``Agents.run``."""
        return await self._report(await self._start(text, definition=definition, timeout=timeout))

    async def ask(self, agent: str, text: str, *, timeout: float | None = None) -> AgentReport:
        """See ``Agents.ask``."""
        return await self._report(await self._start(text, agent=agent, timeout=timeout))

    async def message(self, agent: str, text: str, *, timeout: float | None = None) -> AgentTask:
        """See ``Agents.message``."""
        return await self._start(text, agent=agent, timeout=timeout, awaited=False)

    async def create(self, name: str, definition: AgentDefinition) -> LastingAgent:
        """See ``Agents.create``."""
        request = CreateAgent(caller=self._caller, name=name, definition=definition)
        return (await self._answered(self._bus.call(CREATE_AGENT, request, timeout=TIMEOUT))).agent

    async def terminate(self, name: str) -> LastingAgent:
        """See ``Agents.terminate``."""
        request = TerminateAgent(caller=self._caller, name=name)
        return (await self._answered(self._bus.call(TERMINATE_AGENT, request, timeout=TIMEOUT))).agent

    async def list(self) -> AgentList:
        """See ``Agents.list``."""
        request = ListOwnAgents(caller=self._caller)
        return await self._answered(self._bus.call(LIST_OWN_AGENTS, request, timeout=TIMEOUT))

    async def _start(
        self,
        text: str,
        *,
        agent: str = "",
        definition: AgentDefinition | None = None,
        timeout: float | None = None,
        awaited: bool = True,
    ) -> AgentTask:
        if not self._spec.repeatable:
            raise ToolError(
                f"{self._spec.name} starts a task of an agent and must be declared idempotent. Nothing was started.",
                kind="internal",
            )
        request = StartTask(
            caller=self._caller,
            number=self._count,
            text=text,
            agent=agent,
            definition=definition or AgentDefinition(),
            awaited=awaited,
            timeout=timeout,
        )
        self._count += 1
        return (await self._answered(self._bus.call(START_TASK, request, timeout=TIMEOUT))).task

    async def _report(self, task: AgentTask) -> AgentReport:
        """Return the report of the task; without one, end the call until there is one."""
        report = next((one for one in self._run.call.reports if one.task == task.id), None)
        if report is None:
            await self._run.suspend(
                ToolOutcome(call=self._run.call.call, status="agent", task=task.id, effect=self._spec.effect)
            )
        assert report is not None  # ``suspend`` does not return
        return report

    async def _answered(self, reply: Awaitable[T]) -> T:
        try:
            return await reply
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except BusError as error:
            raise ToolError("No gateway answers now. Try again later.", kind="unavailable") from error
