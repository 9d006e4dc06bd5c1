"""Which conversation a person means by the beginning of its id."""

import re

from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.conversations.messages import ConversationSummary, ListConversations
from trunkline.errors import TrunklineError

KIND = "conv_"
PAGE = 100
SHOWN = 5
"""How many are named where several are meant."""

_WHOLE = re.compile(rf"{KIND}[a-z2-7]{{26}}")


async def conversation_found(gateway: Gateway, said: str) -> str:
    """The id of the conversation whose id was said, or its beginning, with or without ``conv_``.

    A whole id is not looked for: the gateway knows conversations that no list has.

    Raises:
        TrunklineError: no conversation is meant, or several; they are named.
    """
    if _WHOLE.fullmatch(said):
        return said
    meant = [one for one in await _all(gateway) if one.id.startswith((said, KIND + said))] if said else []
    exactly = [one for one in meant if one.id == said]
    found = exactly or meant
    if not found:
        raise TrunklineError(
            f"There is no conversation whose id begins with {said!r}.",
            hint="Give its id or the beginning of it, as the list of conversations shows it.",
        )
    if len(found) > 1:
        raise TrunklineError(
            f"{said!r} fits {len(found)} conversations: {_named(found)}.", hint="Give more of the id."
        )
    return found[0].id


async def _all(gateway: Gateway) -> list[ConversationSummary]:
    """Those that the list leaves out too."""
    found: list[ConversationSummary] = []
    while True:
        query = ListConversations(limit=PAGE, offset=len(found), one_shot=True)
        page = (await gateway.conversations(query)).conversations
        found += page
        if len(page) < PAGE:
            return found


def _named(found: list[ConversationSummary]) -> str:
    names = [f"{one.id} ({one.title})" if one.title else one.id for one in found[:SHOWN]]
    return ", ".join([*names, "…"] if len(found) > SHOWN else names)
