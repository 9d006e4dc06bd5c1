"""TaskNotices: tells the owner of tasks that ended while the agent that gave them did not look.

While the turn that gave a task runs, its agent may still look, so the task is told after that. One that was cancelled
was so by somebody who knows. That a task is still to be told is in its record, so a gateway that dies leaves it to the
next one; the notice's id follows from the task, so each channel tells it once.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta

import anyio

from trunkline._util.secrets.redactor import Redactor
from trunkline._util.text import truncate_words
from trunkline.contracts.agents.messages import AgentReport, AgentTask
from trunkline.contracts.channels.notice_client import NoticeRound
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.gateway.messages import TellOwner
from trunkline.contracts.sentences.catalogue import Sentence
from trunkline.contracts.turns.journal_messages import ModelCallFinished
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.task_reports import report_of
from trunkline.workers.gateway.turn_lookup import TurnLookup, TurnState
from trunkline_bus import Bus, BusError
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

RETRY_SECONDS, LONGEST_RETRY = 2.0, 60.0
"""Seconds between two looks while a channel does not take a notice: doubled each time."""

LOOK_SECONDS = 300.0
"""Seconds between two looks while no task is known of which is still to be told: another gateway may have died."""

GIVEN_UP = timedelta(hours=12)
"""The time after which a channel that has not taken a notice is not asked again: the record lasts a day."""

LONGEST_TURN = timedelta(hours=6)
"""The time after which a task is told although its turn goes on, as one does that waits for a person."""

MAX_TOLD = 1_000
"""The largest number of characters of a result that the owner is told."""


class TaskNotices:
    """Hands the ends of tasks to ``channels``, without what ``secrets`` finds: a chat service reads them."""

    def __init__(
        self, bus: Bus, turns: TurnLookup, records: AgentRecords, channels: Sequence[str], secrets: Redactor
    ) -> None:
        self._bus = bus
        self._turns = turns
        self._records = records
        self._channels = channels
        self._secrets = secrets
        self._some = anyio.Event()

    def wake(self) -> None:
        """Look at the tasks now: one has ended of which the owner is to be told."""
        self._some.set()

    async def run(self) -> None:
        """Tell of each task once, until cancelled."""
        backoff = Backoff(RETRY_SECONDS, LONGEST_RETRY)
        while True:
            self._some = anyio.Event()
            if await self._tell_all():
                backoff.reset()
                wait = LOOK_SECONDS
            else:
                wait = backoff.advance()
            with anyio.move_on_after(wait):
                await self._some.wait()

    async def _tell_all(self) -> bool:
        """Report whether nothing is left to tell."""
        try:
            untold = [task for task in await self._records.tasks() if task.untold]
        except BusError as error:
            log.info("the ends of tasks are told when the bus answers: %s", error)
            return False
        handing = NoticeRound(self._bus, self._channels)
        return all([await self._attempt(handing, task) for task in untold])

    async def _attempt(self, handing: NoticeRound, task: AgentTask) -> bool:
        try:
            return await self._tell(handing, task)
        except BusError as error:  # such as a journal that cannot be read; the other tasks are told
            log.info("the end of the task %s is told later: %s", task.id, error)
            return False

    async def _tell(self, handing: NoticeRound, task: AgentTask) -> bool:
        """Hand the end of a task to the channels; report whether nothing is left to do."""
        at = task.ended_at or utc_now()
        if utc_now() < at + LONGEST_TURN and await self._may_look(task):
            return False
        state = await self._turns.find(task.id)
        report = report_of(task, state)
        message = TellOwner(
            block=task.block,
            text=shorten(self._secrets.redact(report.text)),
            sentences=(describe_end(task, report, cost_of(state)),),
            kind="task",
            notice=task.id,
            at=at,
        )
        left = await handing.hand(message)
        if left and utc_now() < at + GIVEN_UP:
            return False
        await self._records.note_told(task.id)
        return True

    async def _may_look(self, task: AgentTask) -> bool:
        """Report whether the turn that gave the task still runs."""
        giving = await self._turns.find_in_journal(task.parent.turn)
        return giving is not None and giving.finished is None


def shorten(text: str) -> str:
    """Return the text, or its beginning and a mark that it was longer. A text without a space for long, as in Chinese,
    is cut within a word. Pure."""
    if len(text) <= MAX_TOLD:
        return text
    words = truncate_words(text, MAX_TOLD)
    return f"{words if len(words) > MAX_TOLD // 2 else text[:MAX_TOLD]} …"


def describe_end(task: AgentTask, report: AgentReport, cost: int | None) -> Sentence:
    """Return what the owner is told above the result of a task: the outcome, and the cost if it is known. Pure."""
    key = "notice.task.done" if report.state == "done" else "notice.task.failed"
    values = {"agent": report.agent, "block": task.block}
    if cost is None:
        return Sentence(key, values)
    return Sentence(f"{key}.cost", {**values, "cost": f"{cost / 1_000_000:.4f}"})


def cost_of(state: TurnState | None) -> int | None:
    """Return what the models of a turn cost, in millionths of a dollar; None if one has no price. Pure."""
    calls = [one for one in state.entries if isinstance(one, ModelCallFinished)] if state is not None else []
    costs = [one.cost for one in calls if not one.commanded]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
