"""The sockets of a gateway, and the feeds that they share."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio

from trunkline.contracts.turns.conversation_turns import ConversationTurns
from trunkline.contracts.turns.poll_limiter import PollLimiter
from trunkline.errors import ErrorCode
from trunkline.home.kill_switch import KillSwitch
from trunkline.workers.gateway.errors import refusal
from trunkline.workers.gateway.services import Services
from trunkline.workers.gateway.socket.bounded_log import ReaderBehind
from trunkline.workers.gateway.socket.platform_watch import PlatformWatch
from trunkline.workers.gateway.socket.turn_feed import TurnFeeds
from trunkline_bus import background_tasks

if TYPE_CHECKING:
    from trunkline.workers.gateway.socket.connection import Connection

GOING_AWAY = 1001


class SocketRegistry:
    """The sockets of one gateway. ``max_sockets`` is the largest number of sockets of one identity."""

    def __init__(
        self,
        services: Services,
        poll_limiter: PollLimiter,
        closing: anyio.Event,
        kill_switch: KillSwitch,
        max_sockets: int,
    ) -> None:
        self.services = services
        self._poll_limiter = poll_limiter
        self._closing = closing
        self._max_sockets = max_sockets
        self._connections: dict[str, set[Connection]] = {}
        self._platform = PlatformWatch(services, kill_switch)
        self._watches_platform = False
        self.turns = ConversationTurns(services.bus, poll_limiter)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the registry open; every socket that is left is closed when the server stops."""
        await self.turns.open()
        async with background_tasks() as tasks:
            self._tasks = tasks
            self.feeds = TurnFeeds(self.services.bus, self._poll_limiter, tasks)
            tasks.start_soon(self._close_all)
            yield

    async def platform(self) -> PlatformWatch:
        """Return the feeds of the whole platform. They are filled from the first use on."""
        if not self._watches_platform:
            self._watches_platform = True
            self._tasks.start_soon(self._platform.run)
            self._tasks.start_soon(self._pass_alerts)
        await self._platform.ready.wait()
        return self._platform

    def count(self, identity: str) -> int:
        """Return the number of open sockets of an identity."""
        return len(self._connections.get(identity, ()))

    @contextmanager
    def registered(self, connection: "Connection") -> Iterator[None]:
        """Count an open socket. Refused with ``rate_limited`` if its identity has too many."""
        identity = connection.sender.identity.id
        if self.count(identity) >= self._max_sockets:
            raise refusal(ErrorCode.RATE_LIMITED, f"There are {self._max_sockets} sockets of this identity.")
        mine = self._connections.setdefault(identity, set())
        mine.add(connection)
        try:
            yield
        finally:
            mine.discard(connection)
            if not mine:
                self._connections.pop(identity, None)

    async def _pass_alerts(self) -> None:
        """Pass each alert to all sockets."""
        alerts, number = self._platform.alerts, 0
        while True:
            try:
                entry = await alerts.read(number)
            except ReaderBehind:
                number = alerts.begin
                continue
            for connection in self._all():
                connection.alert(number, entry)
            number += 1

    async def _close_all(self) -> None:
        await self._closing.wait()
        for connection in self._all():
            connection.end(GOING_AWAY)

    def _all(self) -> list["Connection"]:
        return [connection for connections in self._connections.values() for connection in connections]
