"""A desktop that shows notices (Desktop Notifications over D-Bus) of a browser: it keeps what it is to show, and
clicks it.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import anyio
from jeepney import DBusAddress, HeaderFields, MessageType, message_bus, new_method_return, new_signal
from jeepney.io.asyncio import DBusConnection, open_dbus_connection

from trunkline_bus import background_tasks

DAEMON = shutil.which("dbus-daemon")
NAME, PLACE = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


class NotificationServer:
    """The server at ``address``. ``texts`` are the bodies of what was shown."""

    def __init__(self, address: str, connection: DBusConnection) -> None:
        self.address = address
        self.texts: list[str] = []
        self._connection = connection
        self._ids = count(1)
        self._last = 0
        self._shown = anyio.Event()

    async def click(self, text: str) -> None:
        """Wait until a notice with this text is shown, and click it."""
        with anyio.fail_after(60):
            while not self.texts or text not in self.texts[-1]:
                await self._shown.wait()
                self._shown = anyio.Event()
        place = DBusAddress(PLACE, interface=NAME)
        await self._connection.send(new_signal(place, "ActionInvoked", "us", (self._last, "default")))

    async def serve(self) -> None:
        """Answer the browser until cancelled."""
        await self._connection.send(message_bus.RequestName(NAME))
        while True:
            message = await self._connection.receive()
            if message.header.message_type is MessageType.method_call:
                signature, body = self._answer(message.header.fields[HeaderFields.member], message.body)
                await self._connection.send(new_method_return(message, signature, body))

    def _answer(self, method: str, given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        if method == "GetCapabilities":
            return "as", (["actions", "body"],)
        if method == "GetServerInformation":
            return "ssss", ("tests", "tests", "1", "1.2")
        if method != "Notify":
            return "", ()
        self._last = next(self._ids)
        self.texts.append(given[4])
        self._shown.set()
        return "u", (self._last,)


@asynccontextmanager
async def notification_server() -> AsyncIterator[NotificationServer]:
    """A server on a bus of its own, which ends with it."""
    assert DAEMON is not None
    argv = [DAEMON, "--session", "--nofork", "--nopidfile", "--print-address"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as daemon:  # noqa: ASYNC220
        try:
            assert daemon.stdout is not None
            line = await anyio.to_thread.run_sync(daemon.stdout.readline)
            address = os.fsdecode(line).strip()
            connection = await open_dbus_connection(bus=address)
            try:
                server = NotificationServer(address, connection)
                async with background_tasks() as tasks:
                    tasks.start_soon(server.serve)
                    yield server
            finally:
                await connection.close()
        finally:
            daemon.kill()
