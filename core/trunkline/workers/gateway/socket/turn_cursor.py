"""The cursor of a socket in a turn: how far it has sent the events.

All subscriptions of the socket that show the turn share one cursor, so each event is sent once.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from trunkline.workers.gateway.socket.turn_envelopes import TurnPlace


class TurnCursor:
    """The place of one socket in one turn: after the event at ``position``.

    Whoever holds ``sending`` sends the events, and notes each. The others wait for it, and go on where it stopped.
    """

    def __init__(self, after: str) -> None:
        self.sending = anyio.Lock()
        self.position = after
        self.has_ended = False
        self.readers = 0
        self._begin = after
        self._asked: str | None = None
        self._scope: anyio.CancelScope | None = None

    @property
    def is_due(self) -> bool:
        """Report whether there are events to send, now or later."""
        return self._asked is not None or not self.has_ended

    def move(self, after: str) -> None:
        """Send the events after a position as well. If the events that are being sent began there, nothing changes."""
        if after != self._begin:
            self._asked = self._begin = after
            if self._scope is not None:
                self._scope.cancel()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Go to the position that was asked for last. The body is cancelled when another one is asked for."""
        if self._asked is not None:
            self.position, self._asked = self._asked, None
        with anyio.CancelScope() as self._scope:
            yield

    def note(self, position: str, *, ends: bool) -> None:
        """Note that an event was sent."""
        self.position = position
        self.has_ended = ends


class TurnCursors:
    """The turns that the subscriptions of one socket show now."""

    def __init__(self) -> None:
        self._cursors: dict[TurnPlace, TurnCursor] = {}

    @contextmanager
    def joined(self, place: TurnPlace, after: str | None) -> Iterator[TurnCursor]:
        """Share the cursor of a turn. ``after`` is the position that a subscription asks for, None if it asks for none:
        then it begins where the socket is, which is at the beginning if no other subscription shows the turn.
        """
        cursor = self._cursors.get(place)
        if cursor is None:
            cursor = self._cursors[place] = TurnCursor(after or "")
        elif after is not None:
            cursor.move(after)
        cursor.readers += 1
        try:
            yield cursor
        finally:
            cursor.readers -= 1
            if not cursor.readers:
                del self._cursors[place]
