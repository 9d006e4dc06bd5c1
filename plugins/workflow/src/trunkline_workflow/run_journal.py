"""Reads the journal of a run's turn: results, questions, decisions and the end. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from trunkline import Message
from trunkline.api.turn import ApprovalAsked, ApprovalRecorded, JournalEntry, ToolFinished, TurnFinished
from trunkline_workflow.adapter import call_result, find_run, results_in
from trunkline_workflow.run import CallResult, RunState

Status = Literal["pending", "running", "waiting_approval", "completed", "failed", "cancelled"]


@dataclass(slots=True)
class RunJournal:
    """The facts of a run, by the ids of its calls. ``is_empty`` is true while no monitor has begun the turn, and after
    the journal has expired.
    """

    is_empty: bool = True
    is_expired: bool = False
    results: dict[str, CallResult] = field(default_factory=dict)
    asked: dict[str, ApprovalAsked] = field(default_factory=dict)
    decisions: dict[str, ApprovalRecorded] = field(default_factory=dict)
    finished: TurnFinished | None = None

    @property
    def waiting(self) -> tuple[str, ...]:
        """The calls that wait for a person."""
        return () if self.finished else tuple(self.asked)

    def status(self, state: RunState) -> Status:
        """Return the status of the run in this state."""
        if self.is_expired:
            return "cancelled" if state.status == "running" else state.status
        if self.is_empty:
            return "pending"
        if self.finished is None:
            return "waiting_approval" if self.waiting else "running"
        if self.finished.reason in ("cancelled", "stopped"):
            return "cancelled"
        return "failed" if self.finished.code is not None or state.status == "running" else state.status


def read_journal(entries: Iterable[JournalEntry]) -> RunJournal:
    """Return what the entries say."""
    found = RunJournal()
    for entry in entries:
        found.is_empty = False
        if isinstance(entry, ToolFinished):
            found.results[entry.call_id] = call_result(entry.outcome.output, entry.outcome.kind or "")
            found.asked.pop(entry.call_id, None)
        elif isinstance(entry, ApprovalAsked):
            found.asked[entry.call_id] = entry
        elif isinstance(entry, ApprovalRecorded):
            asked = found.asked.pop(entry.call_id, None)
            found.decisions[entry.call_id] = entry
            if not entry.allow and asked is not None and not asked.is_question:
                found.results[entry.call_id] = _denied(
                    entry
                )  # the journal has no other result of a denied call
        elif isinstance(entry, TurnFinished):
            found.finished = entry
    return found


def _denied(entry: ApprovalRecorded) -> CallResult:
    return CallResult("", "approval_denied", f"Denied by {entry.by}.")


def read_conversation(messages: Iterable[Message]) -> RunJournal:
    """Return what is left of a run whose journal has expired; an empty one if no run is there."""
    found = find_run(tuple(messages))
    if found is None:
        return RunJournal()
    return RunJournal(is_empty=False, is_expired=True, results=results_in(found[1]))
