"""nats-py's client with two corrections, and descriptions of its errors. Holds no state of the bus."""

import asyncio
import os

import nats.errors
from nats.aio.client import Client


class PatchedClient(Client):
    """nats-py's client with two corrections.

    After an ``-ERR`` of the server the client reconnects instead of closing permanently. The pong of a flush whose
    caller was cancelled does not end the reader.
    """

    async def _process_err(self, err_msg: str) -> None:
        if "permissions violation" in err_msg.lower():
            await super()._process_err(err_msg)
            return
        await self._process_op_err(nats.errors.Error(f"nats: {err_msg}"))

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()


def parse_version(text: str) -> tuple[int, ...]:
    """Return the major and minor number of a server's version."""
    parts = text.lstrip("v").split("-")[0].split(".")
    return tuple(int(part) for part in parts[:2] if part.isdigit())


def is_less_specific(error: Exception, than: Exception | None) -> bool:
    """Report whether ``error`` says less than ``than``: a server that refuses a login sometimes closes the connection
    before it sends the reason.
    """
    return isinstance(error, OSError) and is_login_refusal(than)


def is_login_refusal(error: Exception | None) -> bool:
    """Report whether the server refused the login."""
    return "authorization" in str(error).lower()


def error_text(error: Exception) -> str:
    """Return a description of a connection error for people."""
    if isinstance(error, ConnectionResetError):  # the end of the connection may arrive before the refusal
        return "the server closed the connection; check the authorization (user and password)"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, TimeoutError) and not isinstance(error, nats.errors.Error):
        return "no answer in time"
    return str(error).removeprefix("nats: ").strip("'") or type(error).__name__
