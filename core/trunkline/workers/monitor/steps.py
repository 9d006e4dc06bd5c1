"""The steps of a turn: its model calls, and the tool calls that each of them led to. No I/O and no decisions.

A step indexes its calls by id and by state, so that recording a result takes the same time in an answer of
five calls and in one of five thousand.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trunkline.contracts.agents.messages import AgentReport
from trunkline.contracts.conversations.messages import Message, ReasoningBlock, ToolCall
from trunkline.contracts.tools.messages import QuestionAnswer, ToolOutcome
from trunkline.contracts.turns.journal_messages import ApprovalAsked, ApprovalRecorded, ProviderToolResult


@dataclass(slots=True)
class ToolAction:
    """A tool call of the model and its state. Change it only within its step's ``update``."""

    call: ToolCall
    client: bool
    key: str
    outcome: ToolOutcome | None = None
    request: ApprovalAsked | None = None
    decision: ApprovalRecorded | None = None
    earlier_decisions: tuple[tuple[ApprovalAsked, ApprovalRecorded], ...] = ()
    """The earlier questions about the call, each with its decision. ``asked`` and ``decision`` are the newest."""
    approved: str | None = None
    """The hash of the call that a person approved."""
    answers: tuple[QuestionAnswer, ...] = ()
    awaited_task: str = ""
    """The task of an agent whose result the call waits for, or waited for last."""
    reports: tuple[AgentReport, ...] = ()
    """The results of the tasks that the call started."""
    sent: bool = False
    again: bool = False

    @property
    def open(self) -> bool:
        """Report whether Trunkline must still return a result."""
        return self.outcome is None and not self.client

    @property
    def waiting(self) -> bool:
        """Report whether the call waits for a person's decision or answer, or for the task of an agent."""
        return self.open and (self.waits_for_agent or (self.request is not None and self.decision is None))

    @property
    def waits_for_agent(self) -> bool:
        """Report whether the call waits for the task of an agent."""
        return bool(self.awaited_task) and self.awaited_task not in {one.task for one in self.reports}

    @property
    def due(self) -> bool:
        """Report whether the call must be sent to a tools worker."""
        return self.open and not self.waiting and not self.sent


class Step:
    """One model call and the tool calls that it led to.

    ``due``, ``running`` and ``waiting`` are the open calls by id: not sent yet, sent, and waiting for a person or for
    an agent.
    """

    def __init__(
        self,
        number: int,
        text: str,
        reasoning: str = "",
        actions: tuple[ToolAction, ...] = (),
        ran: tuple[ProviderToolResult, ...] = (),
        *,
        partial: bool = False,
        commanded: bool = False,
        derived: bool = False,
        steered: list[Message] | None = None,
        reasoning_blocks: tuple[ReasoningBlock, ...] = (),
    ) -> None:
        self.number = number
        self.text = text
        self.reasoning = reasoning
        self.actions = actions
        self.ran = ran
        self.partial = partial
        self.commanded = commanded
        self.derived = derived
        """True when the text only repeats input of the model."""
        self.steered = steered or []
        self.reasoning_blocks = reasoning_blocks
        self.messages: tuple[Message, ...] | None = None
        """The messages of the step, cached once another step follows and they cannot change."""
        self.due: dict[str, ToolAction] = {}
        self.running: dict[str, ToolAction] = {}
        self.waiting: dict[str, ToolAction] = {}
        self._by_id = {action.call.id: action for action in actions}
        for action in actions:
            self._sort(action)

    @property
    def open(self) -> bool:
        """Report whether any call lacks a result from Trunkline."""
        return bool(self.due or self.running or self.waiting)

    @property
    def sent(self) -> tuple[ToolAction, ...]:
        """The calls that a tools worker may have, including started calls that wait for the answer to a question."""
        paused = (action for action in self.waiting.values() if action.sent)
        return (*self.running.values(), *paused)

    def action(self, call_id: str) -> ToolAction | None:
        """Return the call with this id, or None."""
        return self._by_id.get(call_id)

    @contextmanager
    def update(self, action: ToolAction) -> Iterator[ToolAction]:
        """Change one of the step's calls, then update the indexes."""
        yield action
        self._sort(action)

    def mark_all_unsent(self) -> None:
        """Mark the sent calls as due, so that they are sent again."""
        for action in self.actions:
            action.again = action.again or action.sent
            action.sent = False
        for group in (self.due, self.running, self.waiting):
            group.clear()
        for action in self.actions:
            self._sort(action)

    def _sort(self, action: ToolAction) -> None:
        id = action.call.id
        for group in (self.due, self.running, self.waiting):
            group.pop(id, None)
        if action.waiting:
            self.waiting[id] = action
        elif action.due:
            self.due[id] = action
        elif action.open:
            self.running[id] = action
