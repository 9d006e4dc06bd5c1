"""The turns of a session: one is shown, the others wait for it. Knows no commands and no keys."""

from collections import deque
from collections.abc import Iterable

import anyio

from trunkline import Message
from trunkline.api.channel import Gateway
from trunkline.api.model import Usage
from trunkline_terminal import text_format
from trunkline_terminal.outage_notice import OutageNotice
from trunkline_terminal.screen import Screen
from trunkline_terminal.turn_display import Render, Results, TurnDisplay, TurnRef

MAX_RESULTS = 50
"""Tool results that are kept for ``/show``."""


class TurnQueue:
    """The turns of this session: one is shown, the others wait for it."""

    def __init__(
        self,
        gateway: Gateway,
        screen: Screen,
        outage: OutageNotice,
        render: Render = None,
        *,
        attached: bool = False,
    ) -> None:
        self._gateway, self._screen, self._outage, self._render = gateway, screen, outage, render
        self._attached = attached
        self.waiting: deque[TurnRef] = deque()
        self.results: Results = deque(maxlen=MAX_RESULTS)
        self._known: set[str] = set()
        self._changed = anyio.Event()
        self.running: TurnDisplay | None = None
        self.last: TurnRef | None = None
        self.usage = Usage()
        self.context = 0
        """Input tokens of the last model call."""
        self.answered_by = ""
        """The model that answered the last turn, which a fallback may have been; "" if none did."""
        self.cost: int | None = None
        """Known cost of this session's turns, in millionths of a US dollar."""
        self.failed = False
        self.undecided = False

    def follow(self, followed: TurnRef) -> None:
        """Show this turn when those before it have ended; each turn is shown once.

        A message steered into a turn has a turn of its own, for the case that it comes too late. It is followed like
        any other, and dropped when the running turn says that it took the message in.
        """
        if followed.turn not in self._known:
            self._known.add(followed.turn)
            self.waiting.append(followed)
            self._change()

    def forget(self, followed: TurnRef) -> None:
        """Do not show a turn that waits."""
        if followed in self.waiting:
            self.waiting.remove(followed)
            self._change()

    def restore_results(self, messages: Iterable[Message]) -> None:
        """Replace the stored tool results by those of these messages of a conversation."""
        self.results.clear()
        labels: dict[str | None, str] = {}
        for message in messages:
            labels |= {call.id: text_format.call_label(call) for call in message.tool_calls}
            if message.role == "tool":
                label = labels.get(message.tool_call_id, message.name or "A tool")
                self.results.append((label, message.content))

    def has_turn(self, turn: str) -> bool:
        """Report whether the turn is, was or will be shown here."""
        return turn in self._known

    @property
    def count(self) -> int:
        """The number of turns that run or wait."""
        return len(self.waiting) + (self.running is not None)

    async def wait_changed(self) -> None:
        """Wait until a turn is added, begins or ends."""
        await self._changed.wait()

    async def wait_idle(self) -> None:
        """Wait until every turn has been shown."""
        while self.count:
            await self._changed.wait()

    async def run(self) -> None:
        """Show turns as they come, until cancelled."""
        while True:
            while not self.waiting:
                await self._changed.wait()
            await self._show(self.waiting.popleft())

    async def _show(self, followed: TurnRef) -> None:
        self.running = TurnDisplay(
            self._gateway,
            self._screen,
            self._outage,
            followed,
            self._render,
            self.results,
            attached=self._attached,
        )
        self.last = followed
        self._change()
        if followed.asked:
            self._screen.message(followed.asked)
        try:
            outcome = await self.running.show()
        finally:
            steered, self.running = self.running.steered, None
            self.waiting = deque(turn for turn in self.waiting if turn.message not in steered)
            self._change()
        self.usage += outcome.usage
        self.context = outcome.context
        self.answered_by = outcome.answered_by
        self.cost = self.cost if outcome.cost is None else (self.cost or 0) + outcome.cost
        self.failed |= outcome.failed
        self.undecided |= outcome.undecided

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
