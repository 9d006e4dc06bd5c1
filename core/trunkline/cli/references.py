"""Resolves references to a conversation (its number or the beginning of its id) and to a turn."""

import re
from typing import Any

from trunkline.contracts.channels.channel import Gateway
from trunkline.contracts.conversations.messages import ListConversations
from trunkline.errors import TrunklineError
from trunkline.workers.channels.conversation_lookup import conversation_found
from trunkline.workers.monitor.journal import RAW_JOURNAL, RawRecord
from trunkline_bus import Bus, StoredMessage, SubjectError

LAST = "last"
_NUMBER = re.compile(r"[0-9]{1,6}")


async def resolve_conversation(gateway: Gateway, name: str | None, block: str | None) -> str | None:
    """Return the id of a conversation, from the beginning of the id or its number in ``trunkline conversations``,
    where 1 is the newest. ``last`` is the conversation that was answered last, within ``block`` if given. None is
    returned as None.

    Raises:
        TrunklineError: there is no such conversation, or the reference matches several.
    """
    if name is None:
        return None
    if name == LAST:
        return await _at(gateway, 1, block)
    if _NUMBER.fullmatch(name):
        return await _at(gateway, int(name), None)
    return await conversation_found(gateway, name)


async def _at(gateway: Gateway, number: int, block: str | None) -> str:
    page = await gateway.conversations(ListConversations(block=block, limit=1, offset=max(0, number - 1)))
    if page.conversations and number:
        return page.conversations[0].id
    where = f" in block {block}" if block else ""
    if page.total:
        raise TrunklineError(
            f"There is no conversation {number}: the list has {page.total}.",
            hint='"trunkline conversations" shows their numbers.',
        )
    raise TrunklineError(f"There is no conversation{where} yet.", hint='Start one: trunkline say "hello".')


async def last_journal_record(bus: Bus, turn: str) -> StoredMessage[RawRecord]:
    """Return the last record of a turn's journal. ``last`` means the turn with the newest record.

    Raises:
        TrunklineError: there is no such turn, or its journal has expired.
    """
    keys: dict[str, Any] = {} if turn == LAST else {"turn": turn}
    try:
        found = await bus.last(RAW_JOURNAL, **keys)
    except SubjectError:
        found = None
    if found is None and turn == LAST:
        raise TrunklineError("There is no turn yet.", hint='Send a message first: trunkline say "hello".')
    if found is None:
        raise TrunklineError(
            f"There is no turn {turn!r} in the journal.",
            hint='"trunkline say --json" prints the id of its turn. Journals are kept for retention.journal_days.',
        )
    return found


async def resolve_turn(bus: Bus, name: str) -> str:
    """Return the id of a turn. Raises TrunklineError when there is no such turn."""
    return (await last_journal_record(bus, name)).keys["turn"]
