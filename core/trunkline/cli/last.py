"""What ``--conversation`` names: an id, or the conversation that was answered last."""

from trunkline.abc.channels import Gateway
from trunkline.errors import TrunklineError
from trunkline.messages.conversation import ListConversations

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
