"""A real SMTP server, aiosmtpd, which accepts mails into the mail store, with the faults of the store."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from .mail_store import AGENT, PASSWORD, Fault, MailStore


class MailHandler:
    """Decides about commands as the store's faults say."""

    def __init__(self, store: MailStore) -> None:
        self._store = store

    async def handle_MAIL(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """MAIL FROM."""
        refusal = self._begin(server, self._store.take_fault("MAIL"))
        if refusal:
            return refusal
        if not session.authenticated:
            return "530 5.7.0 sign in first"
        if address != AGENT:
            return "553 5.7.1 not your address"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """RCPT TO."""
        refusal = self._begin(server, self._store.take_fault("RCPT"))
        if refusal:
            return refusal
        if address == AGENT and self._store.refuses_copies:
            return "550 5.1.1 no mail to yourself"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """The end of DATA: here the server takes the mail for all recipients, or for none."""
        fault = self._store.take_fault("DATA")
        refusal = self._begin(server, fault)
        if refusal:
            return refusal
        assert isinstance(envelope.content, bytes)
        self._store.send(envelope.rcpt_tos, envelope.content)
        if fault.after is not None:
            fault.after()
        if fault.cut == "after":
            _cut(server)
        return "250 OK"

    def _begin(self, server: SMTP, fault: Fault) -> str:
        """Return how the server refuses a command, "" if it does not."""
        if fault.before is not None:
            fault.before()
            return "421 4.3.0 the client is gone"
        if fault.cut == "before":
            _cut(server)
            return "421 4.3.0 cut off"
        return fault.answer


def _cut(server: SMTP) -> None:
    assert server.transport is not None
    server.transport.abort()


def _sign_in(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    right = LoginPassword(AGENT.encode(), PASSWORD.encode())
    return AuthResult(success=data == right)


@asynccontextmanager
async def smtp_server(
    store: MailStore, *, implicit: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Run a server on a free port of this machine, and yield the port."""
    loop = asyncio.get_running_loop()

    def session() -> SMTP:
        return SMTP(
            MailHandler(store),
            hostname="mx.trunk.test",
            authenticator=_sign_in,
            auth_require_tls=starttls is not None,
            require_starttls=starttls is not None,
            tls_context=starttls,
            loop=loop,
        )

    server = await loop.create_server(session, "127.0.0.1", 0, ssl=implicit)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
