"""The dead-letter service: lists the messages that no worker could read or handle, sends them again, and deletes them.

They may belong to any block, so the service answers the owner only, with a token for all blocks.
"""

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.workers.subjects import DEAD_LETTER_TOPIC
from trunkline.errors import ErrorCode, TrunklineError
from trunkline.runtime.dead_letters import StoredDeadLetter, check_retriable, list_dead_letters, retry
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus


class DeadLetterService:
    """Methods raise Refusal: ``forbidden`` for anybody else than the owner, ``not_found`` for an unknown id, and
    ``conflict`` with the reason for a message that is not sent again. They raise BusError."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def list_letters(self, sender: Sender) -> list[StoredDeadLetter]:
        """Return all dead letters, the oldest first."""
        _require(sender)
        return await list_dead_letters(self._bus)

    async def find(self, id: int, sender: Sender) -> tuple[StoredDeadLetter, str]:
        """Return a dead letter, and why it is not sent again, "" if it can be."""
        letter = await self._find(id, sender)
        try:
            await check_retriable(self._bus, letter)
        except TrunklineError as error:
            return letter, error.sentence
        return letter, ""

    async def retry(self, id: int, sender: Sender) -> None:
        """Send a message again, unchanged."""
        letter = await self._find(id, sender)
        try:
            await retry(self._bus, letter)
        except TrunklineError as error:
            raise refusal(ErrorCode.CONFLICT, error.sentence) from error

    async def delete(self, id: int, sender: Sender) -> None:
        """Delete a dead letter for good."""
        await self._bus.delete(DEAD_LETTER_TOPIC, (await self._find(id, sender)).id)

    async def _find(self, id: int, sender: Sender) -> StoredDeadLetter:
        _require(sender)
        for letter in await list_dead_letters(self._bus):
            if letter.id == id:
                return letter
        raise refusal(ErrorCode.NOT_FOUND, "There is no such dead letter.")


def _require(sender: Sender) -> None:
    sender.require_administrator("handles dead letters", TokenScope.OPERATE)
