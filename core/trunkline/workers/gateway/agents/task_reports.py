"""TaskReports: tells the calling turn how a task has ended, and ends tasks whose time or whose turn is over.

Both work from durable messages, so a gateway that dies leaves the rest to another one: the fact that a turn has
finished, and the timer of each task.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from trunkline.contracts.agents.messages import AgentReport, AgentTask, TaskDue
from trunkline.contracts.agents.subjects import TASK_DUE
from trunkline.contracts.streams import AGENT_CONSUMER, TASK_CONSUMER
from trunkline.contracts.turns.journal_messages import ModelCallFinished, TurnFinished
from trunkline.contracts.turns.lanes import lane_of
from trunkline.contracts.turns.messages import AgentReported, TurnFact
from trunkline.contracts.turns.subjects import INBOX, TURN_FACT
from trunkline.errors import FIXED_SENTENCES
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.task_cancel import cancel_task
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, BusError, Delivery, Scope, key_of

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 2.0
"""Seconds until a message is tried again after a failure."""

CANCEL_SECONDS = 30.0
"""Seconds after which a task is looked at again that was cancelled because its time was over."""

DEADLINE = "deadline"
"""Who cancels a task whose time is over."""

MAX_REPORT = 200_000
"""Largest number of characters of a result. The tools worker stores a long one beside the conversation."""


class TaskReports:
    """Reports tasks and ends them. ``run_ends`` and ``run_deadlines`` run until cancelled. ``on_untold`` is called when
    the owner may be told of the end of a task: it has ended, or the turn that gave it.
    """

    def __init__(
        self, bus: Bus, turns: TurnLookup, records: AgentRecords, on_untold: Callable[[], None]
    ) -> None:
        self._bus = bus
        self._turns = turns
        self._records = records
        self._on_untold = on_untold

    async def run_ends(self) -> None:
        """Process each turn that has finished: report it if it is a task, and end the tasks that it left."""
        async with self._bus.pinned(AGENT_CONSUMER, TURN_FACT) as deliveries:
            async for delivery in deliveries:
                await self._attempt(delivery, self._turn_ended)

    async def run_deadlines(self) -> None:
        """Cancel each task whose time is over."""
        async with self._bus.pinned(TASK_CONSUMER, TASK_DUE) as deliveries:
            async for delivery in deliveries:
                await self._attempt(delivery, self._time_over)

    async def _attempt(self, delivery: Delivery[T], work: Callable[[T], Awaitable[float | None]]) -> None:
        """Process a message. ``work`` returns the seconds after which it is to be processed again, None for never."""
        again: float | None = RETRY_SECONDS
        try:
            again = await work(delivery.data)
        except BusError as error:
            log.warning("a task of an agent waits until the bus answers: %s", error)
        except Exception:  # one failing task must not stop all others
            log.exception("the end of a task of an agent could not be processed; it is tried again")
        with suppress(BusError):  # the server delivers it again by itself
            await (delivery.ack() if again is None else delivery.nak(again))

    async def _turn_ended(self, fact: TurnFact) -> float | None:
        task = await self._records.task(fact.turn)
        if task is not None and task.is_running:
            state = await self._turns.find(task.id)
            if state is None or state.finished is None:  # a replica of the journal lags behind
                return RETRY_SECONDS
            await self._report(task, state)
        cancelled = fact.reason in ("cancelled", "stopped")
        given = [one for one in await self._records.tasks() if one.parent.turn == fact.turn]
        for one in given:
            if one.is_running and (one.awaited or cancelled):
                await cancel_task(self._bus, one, "the turn that it worked for")
        if any(one.untold for one in given):
            self._on_untold()
        return None

    async def _time_over(self, due: TaskDue) -> float | None:
        task = await self._records.task(due.task)
        if task is None or not task.is_running:
            return None
        state = await self._turns.find(task.id)
        if state is None or state.finished is not None:  # it never began, or the fact of its end was lost
            await self._report(task, state)
            return None
        await cancel_task(self._bus, task, DEADLINE)
        return CANCEL_SECONDS

    async def _report(self, task: AgentTask, state: TurnState | None) -> None:
        """Put the result into the inbox of the calling turn, and mark the task as ended. A repeat changes nothing: the
        turn takes the first report about a task."""
        report = report_of(task, state)
        parent = task.parent
        calling = await self._turns.find(parent.turn)
        if task.awaited and calling is not None and calling.finished is None:
            await self._bus.append(
                INBOX,
                AgentReported(
                    turn=parent.turn,
                    call=parent.call,
                    report=report,
                    lane=lane_of(calling.request.trigger, calling.request.lane),
                ),
                scope=Scope(block=parent.block, conversation=parent.conversation, turn=parent.turn),
                msg_id=key_of("report", task.id),
                conversation=parent.conversation,
            )
        untold = not task.awaited and report.state != "cancelled"
        await self._records.end_task(task.id, report.state, untold=untold)
        if untold:
            self._on_untold()
        if task.awaited:  # the agent that is asked tells of what it did before
            await self._records.note_seen(parent.turn, parent.agent_id)


def report_of(task: AgentTask, state: TurnState | None) -> AgentReport:
    """Return the report of a task whose turn has ended, or never began. Pure."""
    name = task.parent.agent
    finished = None if state is None else state.finished
    if state is None or finished is None:
        text = f"The task of the agent {name} did not begin in time, so it was given up. Nothing was done."
        return AgentReport(task=task.id, agent=name, state="timed_out", text=text)
    if finished.reason in ("cancelled", "stopped"):
        by = "" if state.cancelled is None else state.cancelled.by
        if by == DEADLINE:
            text = f"The agent {name} did not end in time, so its task was cancelled. What it did remains."
            return AgentReport(task=task.id, agent=name, state="timed_out", text=text)
        text = f"The task of the agent {name} was cancelled by {by or 'a person'}. What it did remains."
        if finished.reason == "stopped" and (said := _last_answer(state)):
            text = f"{text} Its last words: {said}"
        return AgentReport(task=task.id, agent=name, state="cancelled", text=text)
    if finished.code is not None or finished.reason == "error":
        return AgentReport(task=task.id, agent=name, state="failed", text=_failure(name, finished))
    text = _last_answer(state) or f"The agent {name} ended without an answer."
    if len(text) > MAX_REPORT:
        text = f"{text[:MAX_REPORT]}\n(The result was longer; its rest is in the conversation {task.conversation}.)"
    return AgentReport(task=task.id, agent=name, state="done", text=text)


def _failure(name: str, finished: TurnFinished) -> str:
    why = FIXED_SENTENCES[finished.code] if finished.code is not None else "Its turn failed."
    return f"The agent {name} failed: {' '.join(filter(None, (why, finished.detail)))}"


def _last_answer(state: TurnState) -> str:
    answers = (one.text for one in reversed(state.entries) if isinstance(one, ModelCallFinished) and one.text)
    return next(answers, "")
