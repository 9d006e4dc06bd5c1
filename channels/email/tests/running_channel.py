"""The channel, running on a scripted gateway between the two mail servers."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedGateway
from trunkline_email.channel import EmailChannel

from .mail_servers import MailServers, mail_servers

Script = Callable[[SendMessage], Iterable[Any]]


@asynccontextmanager
async def running(one: EmailChannel, gateway: ScriptedGateway) -> AsyncIterator[None]:
    """The channel runs in this block."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.run, gateway)
            yield
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def talking(
    answer: Script | None = None, *, capabilities: str = "IMAP4rev1 IDLE MOVE SPECIAL-USE", **more: Any
) -> AsyncIterator[tuple[MailServers, ScriptedGateway, EmailChannel]]:
    """The servers, a gateway and the running channel between them."""
    async with (
        ScriptedGateway(answer) if answer else ScriptedGateway() as gateway,
        mail_servers(capabilities=capabilities) as servers,
    ):
        one = servers.channel(**more)
        async with running(one, gateway):
            yield servers, gateway, one
