"""Both mail servers over one store, and the settings of a channel that uses them."""

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from trunkline_email.channel import EmailChannel
from trunkline_email.settings import EmailSettings

from .imap_server import imap_server
from .mail_store import AGENT, OWNER, PASSWORD, SERVER, MailStore
from .smtp_server import smtp_server

__all__ = ["PASSWORD", "MailServers", "decision_words", "mail_servers"]


@dataclass
class MailServers:
    """The running servers."""

    store: MailStore
    imap_port: int
    smtp_port: int

    def section(self, **more: Any) -> dict[str, Any]:
        """Return the section ``[channels.email]`` of a channel that uses them, quickly."""
        section: dict[str, Any] = {
            "address": AGENT,
            "owners": (OWNER,),
            "authentication_server": SERVER,
            "imap_host": "127.0.0.1",
            "imap_port": self.imap_port,
            "imap_tls": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.smtp_port,
            "smtp_tls": "none",
            "idle_seconds": 0.5,
            "settle_seconds": 0.5,
        }
        return {**section, **more}

    def settings(self, **more: Any) -> EmailSettings:
        """Return the settings of a channel that uses them."""
        return EmailSettings(**self.section(**more))

    def channel(self, **more: Any) -> EmailChannel:
        """Return a channel that uses them, and tries again at once."""
        return EmailChannel(self.settings(**more), first_pause=0.05)


@asynccontextmanager
async def mail_servers(
    *,
    capabilities: str = "IMAP4rev1 IDLE MOVE SPECIAL-USE",
    tls: ssl.SSLContext | None = None,
    starttls: bool = False,
) -> AsyncIterator[MailServers]:
    """Run both servers, with TLS if there is a context."""
    store = MailStore()
    implicit, upgraded = (None, tls) if starttls else (tls, None)
    async with (
        imap_server(store, capabilities=capabilities, implicit=implicit, starttls=upgraded) as imap,
        smtp_server(store, implicit=implicit, starttls=upgraded) as smtp,
    ):
        yield MailServers(store, imap, smtp)


def decision_words(texts: list[str], approval: str, word: str) -> str:
    """Return the line that decides about a call, as the mail about the call says it."""
    found = re.search(rf"{word} ({approval}-[0-9a-f]{{20}})", "\n".join(texts))
    assert found is not None, texts
    return f"{word} {found[1]}"
