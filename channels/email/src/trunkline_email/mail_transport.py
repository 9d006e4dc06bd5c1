"""Hands mails over to the server that sends them, by SMTP."""

import logging

import anyio
from aiosmtplib import SMTP, SMTPAuthenticationError, SMTPException, SMTPResponseException

from trunkline import ConfigError
from trunkline.api.channel import PostRefused
from trunkline_email.certificates import tls_context
from trunkline_email.settings import EmailSettings

log = logging.getLogger(__name__)


class NotSent(Exception):
    """The server did not take the mail, and may take it later. Nobody gets it."""


class MailInDoubt(Exception):
    """The connection was lost after the mail was on its way. Whether it is sent is not known."""


class MailTransport:
    """Sends mails, one after another, each with a connection of its own."""

    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings
        self._lock = anyio.Lock()

    async def send(self, to: str, mail: bytes) -> None:
        """Send a mail to a person, and in the same transaction a copy to the mailbox itself.

        Raises:
            PostRefused: the server refuses the mail for good.
            NotSent: the server did not take it.
            MailInDoubt: the mail may be sent.
        """
        async with self._lock:
            one = self._settings
            client = SMTP(
                hostname=one.smtp_host,
                port=one.smtp_port,
                timeout=one.timeout_seconds,
                use_tls=one.smtp_tls == "implicit",
                start_tls=one.smtp_tls == "starttls",
                tls_context=tls_context(one) if one.smtp_tls != "none" else None,
                local_hostname=one.domain,
            )
            try:
                await self._prepare(client, to)
                await self._hand_over(client, mail)
            finally:
                client.close()

    async def _prepare(self, client: SMTP, to: str) -> None:
        one = self._settings
        try:
            await client.connect()
            await client.login(one.login, one.reveal_password())
            await client.mail(one.address)
            await client.rcpt(to)
        except SMTPAuthenticationError as refused:
            raise NotSent(f"{one.smtp_host} refuses the login of {one.login}: {refused.message}") from refused
        except SMTPResponseException as refused:
            raise _refusal(one.smtp_host, to, refused) from refused
        except (SMTPException, OSError, ConfigError) as error:
            raise NotSent(f"{one.smtp_host} does not answer: {error}") from error
        try:
            await client.rcpt(one.address)
        except SMTPResponseException as refused:
            log.warning(
                "%s takes no copy for the mailbox itself, so a mail that is cut off may be sent twice: %s",
                one.smtp_host,
                refused.message,
            )
        except (SMTPException, OSError) as error:
            raise NotSent(f"{one.smtp_host} does not answer: {error}") from error

    async def _hand_over(self, client: SMTP, mail: bytes) -> None:
        host = self._settings.smtp_host
        try:
            await client.data(mail)
        except SMTPResponseException as refused:
            raise _refusal(host, "", refused) from refused
        except (SMTPException, OSError) as error:
            raise MailInDoubt(f"{host} was cut off while it took a mail: {error}") from error
        try:
            await client.quit()
        except (SMTPException, OSError) as error:
            log.debug("%s was left without a farewell: %s", host, error)


def _refusal(host: str, to: str, refused: SMTPResponseException) -> Exception:
    what = f"a mail to {to}" if to else "a mail"
    if 500 <= refused.code < 600:
        return PostRefused(f"{host} refuses {what}: {refused.code} {refused.message}")
    return NotSent(f"{host} does not take {what} now: {refused.code} {refused.message}")
