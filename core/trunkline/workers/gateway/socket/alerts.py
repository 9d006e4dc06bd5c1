"""Alerts on a socket: budgets that are used up or were reset, and panic.

A socket gets each of them once, from its first subscription on, whatever it watches of a block.
"""

import logging
from collections.abc import Awaitable, Callable, Collection

from anyio.abc import TaskGroup

from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.socket.platform_feed import EVERY_BLOCK, EVERYBODY, PlatformEntry
from trunkline.workers.gateway.socket.registry import SocketRegistry
from trunkline_bus import Refusal

log = logging.getLogger(__name__)


class SocketAlerts:
    """Sends the alerts of one socket. ``watched`` returns the blocks that the socket watches, with "" for every one;
    ``send`` waits until the client has room for more.

    No task waits for alerts, because a gateway has many sockets and few alerts. A client that does not read is
    disconnected by its pings, so no list of alerts grows for long.
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
        self._begin: int | None = None
        self._waiting: list[PlatformEntry] = []
        self._is_sending = False

    async def begin(self) -> None:
        """Send the present state of panic. From then on ``add`` adds what follows."""
        alerts = (await self._registry.platform()).alerts
        self._begin = alerts.end
        self._waiting += alerts.states()
        self._is_sending = True
        await self._send_waiting()

    def add(self, number: int, entry: PlatformEntry, tasks: TaskGroup) -> None:
        """Send an alert, in a task of ``tasks``, unless it is older than the present state that was sent."""
        if self._begin is None or number < self._begin:
            return
        self._waiting.append(entry)
        if not self._is_sending:
            self._is_sending = True
            tasks.start_soon(self._send_waiting)

    async def _send_waiting(self) -> None:
        while self._waiting:
            await self._send_entry(self._waiting.pop(0))
        self._is_sending = False

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
