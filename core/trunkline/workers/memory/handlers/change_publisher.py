"""Publishes every committed change, edits by hand included."""

import logging
from collections import deque

import anyio

from trunkline.contracts.conversations.paths import parse_conversation_path
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline_bus import Bus, BusError

_log = logging.getLogger(__name__)


class ChangePublisher:
    """Publishes the changes of memory on ``bus``."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._pending: deque[MemoryChanged] = deque()
        self._has_pending = anyio.Event()

    def note(self, changed: MemoryChanged) -> None:
        """Add a committed change to the pending changes."""
        self._pending.append(changed)
        self._has_pending.set()

    async def publish_pending(self) -> None:
        """Publish the pending changes. A change that cannot be published is logged."""
        while self._pending:
            changed = self._pending.popleft()
            try:
                await self._bus.publish(MEMORY_CHANGED, changed, part=_subject_part(changed))
            except BusError as error:
                _log.warning("the change %s could not be published: %s", changed.version, error)

    async def run(self) -> None:
        """Publish the changes that no request made, such as edits by hand, until cancelled."""
        while True:
            await self._has_pending.wait()
            self._has_pending = anyio.Event()
            await self.publish_pending()


def _subject_part(changed: MemoryChanged) -> str:
    """Return the subject part of a change. Conversations have their own part, because they change with every turn and
    few subscribers need these changes.
    """
    return "conversations" if all(map(parse_conversation_path, changed.paths)) else "files"
