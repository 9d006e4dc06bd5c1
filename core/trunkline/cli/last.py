"""What ``last`` names: the conversation that was answered last, or the turn that the journal ends with."""

from typing import Any

from trunkline.abc.channels import Gateway
from trunkline.errors import TrunklineError
from trunkline.messages.conversation import ListConversations
from trunkline.monitor.journal import RAW_JOURNAL, RawRecord
from trunkline_bus import Bus, Stored, SubjectError

LAST = "last"


async def conversation_named(gateway: Gateway, name: str | None, block: str | None) -> str | None:
    """The conversation's id. ``last`` is the one that was answered last, within ``block`` if one is given.

    Raises:
        TrunklineError: there is no conversation yet.
    """
    if name != LAST:
        return name
    page = await gateway.conversations(ListConversations(block=block, limit=1))
    if not page.conversations:
        where = f" in block {block}" if block else ""
        raise TrunklineError(f"There is no conversation{where} yet.", hint="Leave --conversation out.")
    return page.conversations[0].id


async def last_record(bus: Bus, turn: str) -> Stored[RawRecord]:
    """The last record of a turn's journal; ``last`` is the turn that was written of last.

    Raises:
        TrunklineError: there is no such turn, or its journal is not kept any more.
    """
    keys: dict[str, Any] = {} if turn == LAST else {"turn": turn}
    try:
        found = await bus.last(RAW_JOURNAL, **keys)
    except SubjectError:
        found = None
    if found is None and turn == LAST:
        raise TrunklineError("There is no turn yet.", hint='Say something first: trunkline say "hello".')
    if found is None:
        raise TrunklineError(
            f"There is no turn {turn!r} in the journal.",
            hint='"trunkline say --json" prints the id of its turn. Journals are kept for retention.journal_days.',
        )
    return found


async def turn_named(bus: Bus, name: str) -> str:
    """A turn's id. Raises TrunklineError when there is no such turn."""
    return (await last_record(bus, name)).keys["turn"]
