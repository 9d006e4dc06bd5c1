"""The family of a conversation: the conversation that it descends from by forks, and all forks of that one."""

from trunkline.contracts.conversations.messages import ConversationSummary, ListConversations
from trunkline.contracts.memory.store import MemoryStore

MAX_FAMILY = 64
"""The largest number of conversations of a family, and of forks that are followed back to the first. Whoever forks more
often sees the branches of the newest."""


async def load_family(store: MemoryStore, summary: ConversationSummary) -> dict[str, ConversationSummary]:
    """Return the family of a conversation, each parent before its forks. A family lies within one block.

    Raises Refusal as ``MemoryStore.find_conversation`` does.
    """
    first = await _first_ancestor(store, summary)
    found = {first.id: first} if isinstance(first, ConversationSummary) else {}
    waiting = [first.id if isinstance(first, ConversationSummary) else first]
    while waiting and len(found) < MAX_FAMILY:
        query = ListConversations(
            block=summary.block,
            forked_from=waiting.pop(0),
            limit=MAX_FAMILY,
            one_shot=True,
            archived="include",
        )
        page = await store.list_conversations(query)
        new = [one for one in page.conversations if one.id not in found]
        found.update((one.id, one) for one in new[: MAX_FAMILY - len(found)])
        waiting += [one.id for one in new]
    return {**found, summary.id: summary}


async def _first_ancestor(store: MemoryStore, summary: ConversationSummary) -> ConversationSummary | str:
    """Return the conversation at the beginning; its id alone if it is no longer there."""
    seen = {summary.id}
    while summary.forked_from is not None and len(seen) < MAX_FAMILY:
        origin = summary.forked_from.conversation
        parent = await store.find_conversation(origin)
        if parent is None or parent.block != summary.block or origin in seen:
            return origin if origin not in seen else summary
        seen.add(origin)
        summary = parent
    return summary
