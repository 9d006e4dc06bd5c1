"""The ancestry of conversations: the conversation that each was forked from. Reads memory; changes
nothing."""

from collections.abc import AsyncIterator

from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.memory.subjects import MEMORY_LOAD_CONVERSATION
from trunkline.contracts.tools.messages import CallTool
from trunkline_bus import Bus

TIMEOUT = 5.0

MAX_DEPTH = 64
"""The largest number of forks that are followed."""

MAX_CACHED_ORIGINS = 4096

_NO_MESSAGES = 2**31
"""A number that no message of a conversation has, so that only the summary is loaded."""


class ConversationAncestry:
    """Follows forks back to their origin.

    Methods raise BusError when memory does not answer.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._origins: dict[tuple[str, str], str] = {}

    def record_fork(self, call: CallTool) -> None:
        """Remember the origin that a call names: memory knows of a fork only after its first turn has
        ended."""
        if call.forked_from is not None:
            self._remember(call.block, call.conversation, call.forked_from)

    async def ancestors(self, block: str, conversation: str) -> AsyncIterator[str]:
        """Yield the conversation, then the one that it was forked from, and so on."""
        current: str | None = conversation
        for _ in range(MAX_DEPTH):
            if current is None:
                return
            yield current
            current = await self._origin(block, current)

    async def exists(self, block: str, conversation: str) -> bool:
        """Report whether memory has the conversation."""
        return (await self._load(block, conversation))[0]

    async def message(self, block: str, conversation: str, id: str) -> Message | None:
        """Return a stored message of the conversation; None if there is no message with this id."""
        request = LoadConversation(block=block, conversation=conversation)
        found = await self._bus.call(MEMORY_LOAD_CONVERSATION, request, timeout=TIMEOUT, repeatable=True)
        return next((message for message in found.messages if message.id == id), None)

    async def _origin(self, block: str, conversation: str) -> str | None:
        known = self._origins.get((block, conversation))
        if known is not None:
            return known
        _, origin = await self._load(block, conversation)
        if origin is not None:
            self._remember(block, conversation, origin)
        return origin

    async def _load(self, block: str, conversation: str) -> tuple[bool, str | None]:
        request = LoadConversation(block=block, conversation=conversation, after=_NO_MESSAGES)
        found = await self._bus.call(MEMORY_LOAD_CONVERSATION, request, timeout=TIMEOUT, repeatable=True)
        forked = found.summary.forked_from if found.summary is not None else None
        return found.exists, forked.conversation if forked is not None else None

    def _remember(self, block: str, conversation: str, origin: str) -> None:
        self._origins[block, conversation] = origin
        if len(self._origins) > MAX_CACHED_ORIGINS:
            del self._origins[next(iter(self._origins))]
