"""Which conversation a person means by the beginning of its id."""

import re

from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.conversations.messages import ConversationSummary, ListConversations
from trunkline.errors import TrunklineError

ID_PREFIX = "conv_"
PAGE_SIZE = 100
MAX_NAMED = 5
"""How many are named where several are meant."""

_WHOLE = re.compile(rf"{ID_PREFIX}[a-z2-7]{{26}}")


async def conversation_found(gateway: Gateway, said: str) -> str:
    """The id of the conversation whose id was said, or its beginning, with or without ``conv_``.

    A whole id is not looked for: the gateway knows conversations that no list has.

    Raises:
        TrunklineError: no conversation is meant, or several; they are named.
    """
    if _WHOLE.fullmatch(said):
        return said
    meant = (
        [one for one in await _all_conversations(gateway) if one.id.startswith((said, ID_PREFIX + said))]
        if said
        else []
    )
    exactly = [one for one in meant if one.id == said]
    found = exactly or meant
    if not found:
        raise TrunklineError(
            f"There is no conversation whose id begins with {said!r}.",
            hint="Give its id or the beginning of it, as the list of conversations shows it.",
        )
    if len(found) > 1:
        raise TrunklineError(
            f"{said!r} fits {len(found)} conversations: {_format_matches(found)}.",
            hint="Give more of the id.",
        )
    return found[0].id


async def _all_conversations(gateway: Gateway) -> list[ConversationSummary]:
    """Those that the list leaves out too."""
    found: list[ConversationSummary] = []
    while True:
        query = ListConversations(limit=PAGE_SIZE, offset=len(found), one_shot=True)
        page = (await gateway.conversations(query)).conversations
        found += page
        if len(page) < PAGE_SIZE:
            return found


def _format_matches(found: list[ConversationSummary]) -> str:
    names = [f"{one.id} ({one.title})" if one.title else one.id for one in found[:MAX_NAMED]]
    return ", ".join([*names, "…"] if len(found) > MAX_NAMED else names)
