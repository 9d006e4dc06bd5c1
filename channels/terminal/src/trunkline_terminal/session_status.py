"""The state of a session that the status line shows: who answers, in which mode, and what it cost."""

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from msgspec.structs import replace

from trunkline import RemoteFault, TrunklineError
from trunkline.api.channel import Answerer
from trunkline_terminal import text_format
from trunkline_terminal.screen import StatusLine

if TYPE_CHECKING:
    from trunkline_terminal.chat_session import ChatSession

ANSWERER_TIMEOUT = 2.0
"""Seconds to wait for who answers and in which mode: only something to show."""


class SessionStatus:
    """The facts about the place where the person is. ``mode`` is "" while it is not known."""

    def __init__(self, session: "ChatSession") -> None:
        self._session = session
        self.answerer = Answerer()
        self.mode = ""
        self.asked = ""
        """The model that the last message was sent to."""

    async def load(self) -> None:
        """Ask who answers here and in which mode, and show it."""
        await self.load_answerer()
        await self.load_mode()
        self.show()

    async def load_answerer(self) -> None:
        """Ask which model answers here, so that the person sees it. Without an answer the last known one is kept."""
        session = self._session
        place = session.place
        with anyio.move_on_after(ANSWERER_TIMEOUT), suppress(RemoteFault, TrunklineError):
            if place.conversation is None and place.model is not None:
                self.answerer = replace(
                    await session.gateway.answerer(place.block), label=place.model, chosen=True
                )
            else:
                self.answerer = await session.gateway.answerer(place.block, conversation=place.conversation)

    async def load_mode(self) -> None:
        """Ask what the agent may do without asking. Without an answer the mode is not shown."""
        ask, place = self._session.terminal_session.mode, self._session.place
        self.mode = ""
        if ask is not None and place.block is not None:
            with anyio.move_on_after(ANSWERER_TIMEOUT), suppress(RemoteFault, TrunklineError):
                self.mode = await ask(place.block, place.conversation)

    async def update(self) -> None:
        """Keep the status line true while turns come and go, until cancelled."""
        turns = self._session.turns
        while True:
            self.show()
            await turns.wait_changed()
            if turns.running is None:
                await self._learn_title()
                await self.load_answerer()
                await self.load_mode()

    async def _learn_title(self) -> None:
        place = self._session.place
        if place.conversation and not place.title:
            try:
                view = await self._session.gateway.conversation(place.conversation)
            except (RemoteFault, TrunklineError):
                return  # only a title; the next turn brings another chance
            place.title = view.summary.title or ""

    @property
    def _is_last_turn_here(self) -> bool:
        last = self._session.turns.last
        return last is not None and last.conversation == self._session.place.conversation

    def _context(self) -> int:
        """The number of tokens of this conversation in the model's last request; 0 before the first request of this
        session."""
        return self._session.turns.context if self._is_last_turn_here else 0

    def _model(self) -> str:
        """The model that answered last, which a fallback may have been, as long as the next message goes to the same
        one; else the model of the next message."""
        same = self._is_last_turn_here and self.asked == self.answerer.label
        return (self._session.turns.answered_by if same else "") or self.answerer.label

    def show(self) -> None:
        """Show where the person is, and which messages wait."""
        session = self._session
        place, turns = session.place, session.turns
        session.screen.queue(session.queue.texts())
        session.screen.status(
            StatusLine(
                block=place.block or "",
                title=place.title,
                mode=self.mode,
                model=self._model(),
                tokens=text_format.format_usage(turns.usage),
                context=text_format.format_context(self._context(), self.answerer.window),
                cost=text_format.format_cost(turns.cost),
                turns=turns.count,
                connected=not session.outage.now,
            )
        )
