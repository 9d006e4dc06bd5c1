"""The cache of conversations is bounded, also for many small ones."""

from trunkline.contracts.conversations.messages import Message, utc_now
from trunkline_git_store.conversations import ConversationCache, ConversationFile, Header


def small(number: int) -> ConversationFile:
    header = Header(id=f"c{number}", block="main", title=None, created_at=utc_now())
    return ConversationFile.created(
        header, [Message(id=f"m{number}", role="user", content="ok")], b"{}\n{}\n"
    )


def test_many_short_conversations_are_evicted_like_few_long_ones() -> None:
    """They take their place in memory, not only their few bytes of text: the oldest are gone, the newest are there."""
    cache = ConversationCache(limit=1_000_000)
    for number in range(2_000):
        cache.put(f"blob{number}", small(number))
    held = [number for number in range(2_000) if cache.get(f"blob{number}") is not None]
    assert 100 < len(held) < 1_000 and held[-1] == 1_999 and held == list(range(held[0], 2_000))


def test_a_growing_conversation_evicts_others() -> None:
    """Appended messages count as well; the conversation in use stays."""
    cache = ConversationCache(limit=100_000)
    cache.put("other", small(1))
    cache.put("0", small(2))
    for number in range(1, 60):
        added = [Message(id=f"a{number}", role="user", content="x" * 1_000)]
        cache.extend(str(number - 1), str(number), added, b"x" * 1_000)
    grown = cache.get("59")
    assert cache.get("other") is None and grown is not None and len(grown.messages) == 60
