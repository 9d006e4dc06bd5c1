"""Which conversations a conversation comes from: what it was forked from, and so on. Asks memory; changes nothing."""

from collections.abc import AsyncIterator

from trunkline.contracts.conversations.messages import LoadConversation
from trunkline.contracts.memory.subjects import MEMORY_LOAD_CONVERSATION
from trunkline.contracts.tools.messages import CallTool
from trunkline_bus import Bus

PATIENCE = 5.0

DEEPEST = 64
"""Forks of forks that are followed."""

MOST_KNOWN = 4096

_NO_MESSAGES = 2**31
"""A number that no message of a conversation has: what is asked for is the rest."""


class ConversationAncestry:
    """Follows forks back. Raises BusError when memory does not answer."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._origins: dict[tuple[str, str], str] = {}

    def record_fork(self, call: CallTool) -> None:
        """Heed what a call says of its conversation: memory hears of a fork only when its first turn has ended."""
        if call.forked_from is not None:
            self._remember(call.block, call.conversation, call.forked_from)

    async def ancestors(self, block: str, conversation: str) -> AsyncIterator[str]:
        """The conversation, then the one that it was forked from, and on."""
        current: str | None = conversation
        for _ in range(DEEPEST):
            if current is None:
                return
            yield current
            current = await self._origin(block, current)

    async def exists(self, block: str, conversation: str) -> bool:
        """Report whether memory has the conversation."""
        return (await self._load(block, conversation))[0]

    async def _origin(self, block: str, conversation: str) -> str | None:
        known = self._origins.get((block, conversation))
        if known is not None:
            return known
        _, origin = await self._load(block, conversation)
        if origin is not None:
            self._remember(block, conversation, origin)
        return origin

    async def _load(self, block: str, conversation: str) -> tuple[bool, str | None]:
        wish = LoadConversation(block=block, conversation=conversation, after=_NO_MESSAGES)
        found = await self._bus.call(MEMORY_LOAD_CONVERSATION, wish, timeout=PATIENCE, repeatable=True)
        forked = found.summary.forked_from if found.summary is not None else None
        return found.exists, forked.conversation if forked is not None else None

    def _remember(self, block: str, conversation: str, origin: str) -> None:
        self._origins[block, conversation] = origin
        if len(self._origins) > MOST_KNOWN:
            del self._origins[next(iter(self._origins))]
