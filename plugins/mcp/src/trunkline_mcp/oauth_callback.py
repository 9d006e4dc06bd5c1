"""The way back from a server's sign-in page: one request to this machine, on a port that is open as long as needed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

from trunkline.api.cli import Listener, registered_listener
from trunkline_mcp.oauth import CALLBACK

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

CALLBACK_SECONDS = 300.0
"""Seconds that a person has for the page."""

DONE_RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nYou may close this page.\n"
)
NOT_FOUND_RESPONSE = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n"


class CallbackListener:
    """A visit whose answer comes to this machine. The SDK checks ``state``, so only the page that was opened counts."""

    def __init__(self, port: int, tell: Callable[[str], None]) -> None:
        self.callback = CALLBACK.format(port=port)
        self._tell = tell
        self._back: dict[str, str] = {}
        self._came = anyio.Event()

    async def open_page(self, url: str) -> None:
        """Tell the person which page to open."""
        self._tell(url)

    async def wait_for_callback(self) -> "AuthorizationCodeResult":
        """Wait for the way back. Raises TimeoutError after ``CALLBACK_SECONDS`` seconds."""
        from mcp.shared.auth import AuthorizationCodeResult

        with anyio.fail_after(CALLBACK_SECONDS):
            await self._came.wait()
        back = self._back
        return AuthorizationCodeResult(
            code=back.get("code", ""), state=back.get("state"), iss=back.get("iss")
        )

    async def handle_request(self, stream: SocketStream) -> None:
        """Answer a request."""
        async with stream:
            with anyio.move_on_after(10):
                line = (await stream.receive(16_384)).split(b"\r\n")[0].decode(errors="replace")
                method, target, *_ = [*line.split(" "), "", ""]
                place = urlsplit(target)
                if method != "GET" or place.path != "/callback":
                    return await stream.send(NOT_FOUND_RESPONSE)
                self._back = {name: values[0] for name, values in parse_qs(place.query).items()}
                await stream.send(DONE_RESPONSE)
                self._came.set()


@asynccontextmanager
async def listen_for_callback(home: Path, tell: Callable[[str], None]) -> AsyncIterator[CallbackListener]:
    """A visit, for as long as the context lasts; doctor tells of its port."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        here = CallbackListener(int(listener.extra(SocketAttribute.local_port)), tell)
        purpose, credential = (
            "the redirect from a sign-in page (mcp login)",
            "the state that the page was given",
        )
        with registered_listener(
            home / "run", Listener(address=here.callback, purpose=purpose, credential=credential)
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, here.handle_request)
                yield here
                tasks.cancel_scope.cancel()
