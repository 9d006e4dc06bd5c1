"""Alerts on a socket: budgets that are used up or were reset, and panic.

A socket gets each of them once, from its first subscription on, whatever it watches of a block.
"""

import logging
from collections.abc import Awaitable, Callable, Collection

from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.socket.bounded_log import ReaderBehind
from trunkline.workers.gateway.socket.platform_feed import EVERY_BLOCK, EVERYBODY, PlatformEntry
from trunkline.workers.gateway.socket.registry import SocketRegistry
from trunkline_bus import Refusal

log = logging.getLogger(__name__)


class SocketAlerts:
    """Sends the alerts of one socket. ``watched`` returns the blocks that the socket watches, with "" for every one;
    ``send`` waits until the client has room for more.
    """

    def __init__(
        self,
        registry: SocketRegistry,
        sender: Sender,
        watched: Callable[[], Collection[str]],
        send: Callable[[str], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._sender = sender
        self._watched = watched
        self._send = send

    async def run(self) -> None:
        """Send the present state of panic, then every alert, until cancelled.

        A client that fell behind gets the present state again.
        """
        alerts = (await self._registry.platform()).alerts
        while True:
            number = alerts.end
            for entry in alerts.states():
                await self._send_entry(entry)
            try:
                while True:
                    await self._send_entry(await alerts.read(number))
                    number += 1
            except ReaderBehind:
                log.info("a client reads its alerts too slowly, and gets the present state")

    async def _send_entry(self, entry: PlatformEntry) -> None:
        if self._is_watched(entry.block) and await self._may_know(entry):
            await self._send(entry.text)

    def _is_watched(self, block: str) -> bool:
        if block in (EVERYBODY, EVERY_BLOCK):
            return True
        watched = self._watched()
        return "" in watched or block in watched

    async def _may_know(self, entry: PlatformEntry) -> bool:
        if entry.block == EVERYBODY:
            return True
        try:
            return entry.is_for(await self._registry.services.access.rights_of(self._sender.identity))
        except Refusal as error:
            log.warning("an alert is kept from %s: %s", self._sender.identity.id, error.message)
            return False
