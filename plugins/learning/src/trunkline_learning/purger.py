"""Remove what was learned from a purged conversation. Items that have other sources too stay without the purged one.

Facts and milestones are chunks, which memory takes out by itself. Numbers and the profile hold no text.
"""

import msgspec

from trunkline.api.memory import Purge, Purger
from trunkline_learning.episodes import Episode
from trunkline_learning.files import decode, encode, is_episode, is_strategy
from trunkline_learning.playbook import Strategy


class LearningPurger(Purger):
    """Episodes and strategies."""

    name = "learning"

    def without(self, path: str, data: bytes, purge: Purge) -> bytes | None:
        """An episode comes of one turn. A strategy stays while another conversation speaks for it, or if a person wrote
        it."""
        text = data.decode("utf-8", "replace")
        if is_episode(path):
            episode = decode(text, Episode)
            gone = episode is not None and episode.source.conversation in purge.conversations
            return None if gone else data
        strategy = decode(text, Strategy) if is_strategy(path) else None
        return data if strategy is None else _without_purged_sources(strategy, data, purge)


def _without_purged_sources(strategy: Strategy, data: bytes, purge: Purge) -> bytes | None:
    sources = tuple(one for one in strategy.sources if one.conversation not in purge.conversations)
    if sources == strategy.sources:
        return data
    if not sources and strategy.source != "person":
        return None
    return encode(msgspec.structs.replace(strategy, sources=sources)).encode()
