"""The channel, running on a scripted gateway between the two mail servers."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from trunkline.api.gateway import SendMessage
from trunkline.api.testing import ScriptedGateway, running_channel
from trunkline_email.channel import EmailChannel

from .mail_servers import MailServers, mail_servers

Script = Callable[[SendMessage], Iterable[Any]]


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
        async with running_channel(one, gateway):
            yield servers, gateway, one
