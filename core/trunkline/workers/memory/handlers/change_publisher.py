"""Telling of changes: every one that is committed is published, edits made by hand included."""

import logging
from collections import deque

import anyio

from trunkline.contracts.conversations.paths import parse_conversation_path
from trunkline.contracts.memory.messages import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline_bus import Bus, BusError

_log = logging.getLogger(__name__)


class ChangePublisher:
    """Publishes the changes of memory that are pending on ``bus``."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pending: deque[MemoryChanged] = deque()
        self._has_pending = anyio.Event()

    def note(self, changed: MemoryChanged) -> None:
        """A change is committed."""
        self._pending.append(changed)
        self._has_pending.set()

    async def publish_pending(self) -> None:
        """Tell of all that is noted. What cannot be told is in the log."""
        while self._pending:
            changed = self._pending.popleft()
            try:
                await self._bus.publish(MEMORY_CHANGED, changed, part=_subject_part(changed))
            except BusError as error:
                _log.warning("the change %s could not be published: %s", changed.version, error)

    async def run(self) -> None:
        """Tell of what nobody asked for, edits made by hand, until cancelled."""
        while True:
            await self._has_pending.wait()
            self._has_pending = anyio.Event()
            await self.publish_pending()


def _subject_part(changed: MemoryChanged) -> str:
    """Conversations change with every turn, and few want to hear of that."""
    return "conversations" if all(map(parse_conversation_path, changed.paths)) else "files"
