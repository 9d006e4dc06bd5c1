"""Group commit: several callers share one commit. Knows nothing of what is committed.

There is no background task: the waiting caller whose turn comes carries out the operations of all of them,
and the others find their result ready. While a group is being committed, the next one gathers.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from trunkline.api.bus import Refusal
from trunkline_git_store.committer import CommitResult, OperationResult
from trunkline_git_store.operations import WriteOperation

GROUP_LIMIT = 256


@dataclass(slots=True)
class _Ticket:
    """A caller's operation. ``due`` is set when its result is ready, or when it is the caller's turn to
    lead."""

    operation: WriteOperation
    leads: bool
    due: anyio.Event = field(default_factory=anyio.Event)
    outcome: OperationResult | Refusal | None = None


class GroupCommit:
    """Gathers operations for at most ``window`` seconds, and only while other callers have written just
    before."""

    def __init__(
        self, commit: Callable[[Sequence[WriteOperation]], Awaitable[CommitResult]], window: float
    ) -> None:
        self._commit = commit
        self._window = window
        self._waiting: list[_Ticket] = []
        self._has_leader = False
        self._at_rest = anyio.Event()
        self._enough = anyio.Event()
        self._expected = 1

    async def submit(self, operation: WriteOperation) -> OperationResult:
        """Carry out an operation and return its result. Raises the Refusal that it met.

        A cancelled caller's operation is not carried out, unless it has already started.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        ticket = self._enqueue(operation)
        try:
            if not ticket.leads:
                await ticket.due.wait()
            if ticket.outcome is None:
                await self._lead()
        finally:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            if ticket.leads:
                self._hand_over()
        assert ticket.outcome is not None
        if isinstance(ticket.outcome, Refusal):
            raise ticket.outcome
        return ticket.outcome

    async def wait_idle(self) -> None:
        """Return when no group is being committed."""
        while self._has_leader:
            await self._at_rest.wait()

    def _enqueue(self, operation: WriteOperation) -> _Ticket:
        """A caller in line; who finds nobody leading leads."""
        ticket = _Ticket(operation, leads=not self._has_leader)
        if ticket.leads:
            self._has_leader, self._at_rest = True, anyio.Event()
        self._waiting.append(ticket)
        if len(self._waiting) >= self._expected:
            self._enough.set()
        return ticket

    def _hand_over(self) -> None:
        """Let the caller that has waited longest lead the next group."""
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].due.set()
        else:
            self._has_leader = False
            self._at_rest.set()

    async def _lead(self) -> None:
        """Carry out what waits. Not broken off halfway: others wait for it too. They all wake at once, so that their
        answers leave together."""
        if len(self._waiting) < self._expected:
            self._enough = anyio.Event()
            with anyio.move_on_after(self._window):
                await self._enough.wait()
        group, self._waiting = self._waiting[:GROUP_LIMIT], self._waiting[GROUP_LIMIT:]
        self._expected = min(len(group), GROUP_LIMIT)
        outcomes: Sequence[OperationResult | Refusal] = [
            Refusal("write_failure", "Nothing was written: the memory failed.") for _ in group
        ]
        try:
            with anyio.CancelScope(shield=True):
                outcomes = (await self._commit([ticket.operation for ticket in group])).outcomes
        finally:
            for ticket, outcome in zip(group, outcomes, strict=True):
                ticket.outcome = outcome
                ticket.due.set()
