"""The agents of one call: starts tasks at the gateway, and ends the call until a task has its result.

The call waits in the turn's journal and not in this worker: it ends with the outcome ``agent``, and the monitor sends
it again with the report (ADR 107).
"""

import logging
from collections.abc import Awaitable
from typing import TypeVar

from trunkline.contracts.agents.agents import Agents, DefinitionSource
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
from trunkline.contracts.agents.names import task_id
from trunkline.contracts.agents.subjects import CREATE_AGENT, LIST_OWN_AGENTS, START_TASK, TERMINATE_AGENT
from trunkline.contracts.tools.messages import ToolOutcome, ToolSpec
from trunkline.errors import ToolError, error_kind_for_code
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline_bus import Bus, BusError, NoResponders, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT = 10.0
"""Seconds to wait for a gateway."""

PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""The first and the longest pause in seconds before a request is repeated."""

NO_DEFINITION = AgentDefinition()


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
        self, text: str, definition: DefinitionSource, *, timeout: float | None = None
    ) -> AgentReport:
        """See ``Agents.run``."""
        return await self._report(text, definition=definition, timeout=timeout)

    async def ask(self, agent: str, text: str, *, timeout: float | None = None) -> AgentReport:
        """See ``Agents.ask``."""
        return await self._report(text, agent=agent, timeout=timeout)

    async def message(self, agent: str, text: str, *, timeout: float | None = None) -> AgentTask:
        """See ``Agents.message``."""
        return await self._start(self._next(), text, agent=agent, timeout=timeout, awaited=False)

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

    def _next(self) -> int:
        """Return the number of the next task of the call, from 0."""
        self._count += 1
        return self._count - 1

    async def _report(
        self,
        text: str,
        *,
        agent: str = "",
        definition: DefinitionSource = NO_DEFINITION,
        timeout: float | None = None,
    ) -> AgentReport:
        """Return the report of the next task; without one, start the task and end the call until there is one.

        A report that is there is returned first, before anything that may fail: the task is done.
        """
        number = self._next()
        id = task_id(self._run.call.call, number)
        report = next((one for one in self._run.call.reports if one.task == id), None)
        if report is None:
            if not isinstance(definition, AgentDefinition):
                definition = await definition()
            task = await self._start(number, text, agent=agent, definition=definition, timeout=timeout)
            await self._run.suspend(
                ToolOutcome(call=self._run.call.call, status="agent", task=task.id, effect=self._spec.effect)
            )
        assert report is not None  # ``suspend`` does not return
        return report

    async def _start(
        self,
        number: int,
        text: str,
        *,
        agent: str = "",
        definition: AgentDefinition = NO_DEFINITION,
        timeout: float | None = None,
        awaited: bool = True,
    ) -> AgentTask:
        """Start a task. A request that may have arrived is repeated until a gateway answers: the task may run, and an
        error would let the model start another one."""
        if not self._spec.repeatable:
            raise ToolError(
                f"{self._spec.name} starts a task of an agent and must be declared idempotent. Nothing was started.",
                kind="internal",
            )
        request = StartTask(
            caller=self._caller,
            number=number,
            text=text,
            agent=agent,
            definition=definition,
            awaited=awaited,
            timeout=timeout,
        )
        may_have_arrived, backoff = self._run.resumed, Backoff(PAUSE, LONGEST_PAUSE)
        with self._run.pause_timeout():
            while True:
                try:
                    return (await self._bus.call(START_TASK, request, timeout=TIMEOUT)).task
                except RemoteFault as fault:
                    raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
                except NoResponders as error:
                    if not may_have_arrived:
                        raise _unavailable() from error
                except BusError as error:
                    may_have_arrived = True
                    log.warning("the start of a task by call %s is repeated: %s", self._caller.call, error)
                await backoff.sleep()

    async def _answered(self, reply: Awaitable[T]) -> T:
        try:
            return await reply
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except BusError as error:
            raise _unavailable() from error


def _unavailable() -> ToolError:
    return ToolError("No gateway answers now. Try again later.", kind="unavailable")
