"""The lookup of a conversation by the beginning of its id."""

import re

from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.conversations.messages import ConversationSummary, ListConversations
from trunkline.errors import TrunklineError

ID_PREFIX = "conv_"
PAGE_SIZE = 100
MAX_NAMED = 5
"""The number of conversations that the error for an ambiguous beginning names."""

_WHOLE = re.compile(rf"{ID_PREFIX}[a-z2-7]{{26}}")


async def conversation_found(gateway: Gateway, prefix: str) -> str:
    """Return the id of the conversation with this id or beginning of an id, with or without ``conv_``.

    A complete id is returned without a lookup, because the gateway has conversations that no list contains.

    Raises:
      TrunklineError: no conversation matches, or several do; the error names them.
    """
    if _WHOLE.fullmatch(prefix):
        return prefix
    matches = (
        [one for one in await _all_conversations(gateway) if one.id.startswith((prefix, ID_PREFIX + prefix))]
        if prefix
        else []
    )
    exactly = [one for one in matches if one.id == prefix]
    found = exactly or matches
    if not found:
        raise TrunklineError(
            f"There is no conversation whose id begins with {prefix!r}.",
            hint="Give its id or the beginning of it, as the list of conversations shows it.",
        )
    if len(found) > 1:
        raise TrunklineError(
            f"{prefix!r} fits {len(found)} conversations: {_format_matches(found)}.",
            hint="Give more of the id.",
        )
    return found[0].id


async def _all_conversations(gateway: Gateway) -> list[ConversationSummary]:
    """Return all conversations, including those that the default list leaves out."""
    found: list[ConversationSummary] = []
    while True:
        query = ListConversations(limit=PAGE_SIZE, offset=len(found), one_shot=True, archived="include")
        page = (await gateway.conversations(query)).conversations
        found += page
        if len(page) < PAGE_SIZE:
            return found


def _format_matches(conversations: list[ConversationSummary]) -> str:
    names = [f"{one.id} ({one.title})" if one.title else one.id for one in conversations[:MAX_NAMED]]
    return ", ".join([*names, "…"] if len(conversations) > MAX_NAMED else names)
