"""Which turn is first in a conversation, and whether it waits for a person. Everybody who watches a message behind it
asks that again and again: what one of them finds is for all of them.
"""

from typing import NamedTuple

import anyio

from trunkline.gateway.running import Turns, TurnState

FRESH = 1.0
"""Seconds for which what was found is told to those who ask after it."""


class First(NamedTuple):
    """``turn`` is the one that the conversation's journal ends with, "" for none; ``parked`` is that turn, if it waits
    for a person."""

    turn: str
    parked: TurnState | None


class Ahead:
    """Raises BusError when the bus does not answer."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._found: dict[str, tuple[float, First]] = {}

    async def of(self, conversation: str) -> First:
        """The first turn of a conversation, as it was a second ago at most."""
        known = self._found.get(conversation)
        if known is not None and anyio.current_time() - known[0] < FRESH:
            return known[1]
        began = anyio.current_time()
        self._found = {name: one for name, one in self._found.items() if began - one[0] < FRESH}
        found = await self._look(conversation)
        self._found[conversation] = (began, found)
        return found

    async def _look(self, conversation: str) -> First:
        """Only of a parked turn is more read than the end of the journal."""
        turn, parked = await self._turns.first(conversation)
        return First(turn, await self._turns.begun(turn) if parked else None)
