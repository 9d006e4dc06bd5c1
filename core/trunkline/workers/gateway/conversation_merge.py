"""One list out of the lists of several blocks, for a person who may read some blocks and not all.

A memory store lists the conversations of one block or of all. The lists are merged here, so that what a person sees,
and the total, depend on no store.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import (
    ConversationPage,
    ConversationSummary,
    ListConversations,
)
from trunkline.contracts.memory.subjects import MEMORY_LIST_CONVERSATIONS
from trunkline_bus import Bus

PAGE_SIZE = 100
"""The number of conversations that are read at once from a block's list."""

LIST_TIMEOUT = 10.0


@dataclass(slots=True)
class _BlockList:
    """The list of one block, as far as it has been read: what is left of the page, and where the next one begins."""

    query: ListConversations
    total: int = 0
    page: tuple[ConversationSummary, ...] = ()

    async def load(self, bus: Bus) -> None:
        """Read the next page."""
        found = await bus.call(MEMORY_LIST_CONVERSATIONS, self.query, timeout=LIST_TIMEOUT)
        self.total, self.page = found.total, found.conversations
        self.query = replace(self.query, offset=self.query.offset + len(self.page))

    async def take(self, bus: Bus) -> ConversationSummary:
        """Return the newest conversation that is left and remove it from the list."""
        first, self.page = self.page[0], self.page[1:]
        if not self.page and self.query.offset < self.total:
            await self.load(bus)
        return first


async def list_conversations_of(
    bus: Bus, blocks: Iterable[str], query: ListConversations
) -> ConversationPage:
    """Return a page of the conversations of these blocks, newest first. Raises BusError."""
    first = replace(query, offset=0, limit=min(PAGE_SIZE, query.offset + query.limit))
    lists = [_BlockList(replace(first, block=block)) for block in sorted(set(blocks))]
    for one in lists:
        await one.load(bus)
    total = sum(one.total for one in lists)
    found: list[ConversationSummary] = []
    if query.offset < total:
        number = 0
        async for summary in _merged(bus, lists):
            if number >= query.offset:
                found.append(summary)
            number += 1
            if len(found) == query.limit:
                break
    return ConversationPage(conversations=tuple(found), total=total, limit=query.limit, offset=query.offset)


async def _merged(bus: Bus, lists: list[_BlockList]) -> AsyncIterator[ConversationSummary]:
    while left := [one for one in lists if one.page]:
        newest = max(left, key=lambda one: (one.page[0].updated_at, one.page[0].id))
        yield await newest.take(bus)
