"""How many callers share one commit. Knows nothing of what is committed.

There is no background task: of the callers that wait, the one whose turn comes carries out what all of them wish, and
the others find their outcome ready. While a group is being committed, the next one gathers by itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from trunkline.memory.committer import Outcome, Result
from trunkline.memory.wishes import Wish
from trunkline_bus import Refusal

GROUP_LIMIT = 256


@dataclass(slots=True)
class _Ticket:
    wish: Wish
    outcome: Outcome | Refusal | None = None


class Grouping:
    """Gathers wishes for at most ``window`` seconds, and only while others were just seen to write too."""

    def __init__(self, commit: Callable[[Sequence[Wish]], Awaitable[Result]], window: float) -> None:
        self._commit = commit
        self._window = window
        self._waiting: list[_Ticket] = []
        self._turn = anyio.Lock()
        self._enough = anyio.Event()
        self._expected = 1

    async def submit(self, wish: Wish) -> Outcome:
        """Have a wish carried out. Raises the Refusal that it met.

        A cancelled caller's wish is not carried out, unless that had begun.
        """
        ticket = _Ticket(wish)
        self._waiting.append(ticket)
        if len(self._waiting) >= self._expected:
            self._enough.set()
        try:
            async with self._turn:
                if ticket.outcome is None:
                    await self._lead()
        finally:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        assert ticket.outcome is not None
        if isinstance(ticket.outcome, Refusal):
            raise ticket.outcome
        return ticket.outcome

    async def idle(self) -> None:
        """Return when no group is being committed."""
        async with self._turn:
            return

    async def _lead(self) -> None:
        """Carry out what waits. Not broken off halfway: others wait for it too."""
        if len(self._waiting) < self._expected:
            self._enough = anyio.Event()
            with anyio.move_on_after(self._window):
                await self._enough.wait()
        group, self._waiting = self._waiting[:GROUP_LIMIT], self._waiting[GROUP_LIMIT:]
        self._expected = min(len(group), GROUP_LIMIT)
        for ticket in group:
            ticket.outcome = Refusal("write_failure", "Nothing was written: the memory failed.")
        with anyio.CancelScope(shield=True):
            result = await self._commit([ticket.wish for ticket in group])
        for ticket, outcome in zip(group, result.outcomes, strict=True):
            ticket.outcome = outcome
