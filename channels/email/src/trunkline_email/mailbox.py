"""One connection to the mailbox by IMAP. The client blocks, so each of its calls runs in a thread."""

import logging
import socket
from collections.abc import Callable
from functools import partial
from imaplib import IMAP4
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from imapclient.exceptions import LoginError
from imapclient.imapclient import SEEN, SENT, IMAPClient

from trunkline import ConfigError
from trunkline_email.certificates import tls_context
from trunkline_email.settings import EmailSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

KEYWORD = "$Trunkline"
"""Marks a mail that was taken, so that it is not taken again if a person marks it as unread."""

PASSING = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]", "[SERVERBUG]")
"""What a server writes when it refuses a login for now."""

FAILURES = (IMAP4.error, OSError, ValueError, LookupError, EOFError, AssertionError, AttributeError)
"""What the client raises for a lost connection or an answer that it cannot read."""


class MailboxFailure(Exception):
    """The server does not answer, or not as expected. Connect again."""


class MailFolder:
    """The folder that is read. Use it as an asynchronous context manager.

    A mail's UID is used within one connection only: after a change of UIDVALIDITY it means another mail. Methods raise
    MailboxFailure; the connection is then of no use any more.
    """

    def __init__(self, settings: EmailSettings) -> None:
        self._settings = settings
        self._limiter = anyio.CapacityLimiter(1)
        self._client: IMAPClient | None = None
        self._keyword = False
        self._sent = settings.sent_folder
        self._unreadable: set[int] = set()
        self.uid_validity = 0

    async def __aenter__(self) -> "MailFolder":
        """Connect, sign in and open the folder. Raises ConfigError if the server refuses the password or the folder."""
        try:
            await self._call(self._open)
        except BaseException:
            self._close()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        if not any(failure):
            with anyio.CancelScope(shield=True), anyio.move_on_after(2.0, shield=True):
                try:
                    await self._call(lambda: self._connected.logout())
                except MailboxFailure as error:
                    log.debug("the mailbox was left without a farewell: %s", error)
        self._close()

    async def new_mails(self) -> list[int]:
        """Return the UIDs of the mails that nobody has read or taken, the oldest first."""
        criteria: Any = ["UNSEEN", *(["UNKEYWORD", KEYWORD] if self._keyword else [])]
        found = await self._call(lambda: self._connected.search(criteria))
        return sorted(set(found) - self._unreadable)

    async def fetch(self, uid: int) -> tuple[bytes, int] | None:
        """Return a mail and its size, only the header if it is too large. None if it has gone or cannot be read."""
        size = await self._field(uid, "RFC822.SIZE")
        part = "BODY.PEEK[]" if isinstance(size, int) and size <= self._settings.max_mail_bytes else ""
        raw = await self._field(uid, part or "BODY.PEEK[HEADER]") if size is not None else None
        if not isinstance(raw, bytes) or not isinstance(size, int):
            log.warning("the mail server does not give mail %d; it is tried again later", uid)
            self._unreadable.add(uid)
            return None
        return raw, size

    async def _field(self, uid: int, what: str) -> object:
        """Return one item of a mail; None if the server refuses it."""
        name = what.replace(".PEEK", "").encode()
        try:
            answer = await self._call(lambda: self._connected.fetch([uid], [what]))
        except MailboxFailure as failure:
            if isinstance(failure.__cause__, IMAP4.error) and not isinstance(failure.__cause__, IMAP4.abort):
                return None
            raise
        return answer.get(uid, {}).get(name)

    async def mark_taken(self, uid: int) -> None:
        """Mark a mail as read and taken."""
        flags = [SEEN, *([KEYWORD] if self._keyword else [])]
        await self._call(lambda: self._connected.add_flags([uid], flags, silent=True))

    async def file_copy(self, uid: int) -> None:
        """Move the copy of a mail of ours to the folder of sent mails, or mark it as read if that cannot be."""
        await self.mark_taken(uid)
        folder = await self._sent_folder()
        if folder is not None:
            await self._call(lambda: self._move(uid, folder))

    async def wait(self) -> None:
        """Return when there is news, or when it is time to look."""
        if self._connected.has_capability("IDLE"):
            await self._call(self._idle)
        else:
            await anyio.sleep(self._settings.poll_seconds)
            await self._call(lambda: self._connected.noop())

    async def has(self, message_id: str) -> bool:
        """Report whether a mail with this Message-ID is in the folder that is read, or among those that were sent."""
        # A copy moves from the first folder to the second, so this order overlooks none.
        for folder in (self._settings.folder, await self._sent_folder()):
            if folder is not None and await self._call(partial(self._search, folder, message_id)):
                return True
        return False

    # In the thread ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        one = self._settings
        context = tls_context(one) if one.imap_tls != "none" else None
        implicit = one.imap_tls == "implicit"
        self._client = client = IMAPClient(
            one.imap_host, one.imap_port, ssl=implicit, ssl_context=context, timeout=one.timeout_seconds
        )
        if one.imap_tls == "starttls":
            client.starttls(context)
        try:
            client.login(one.login, one.reveal_password())
        except LoginError as refused:
            if any(code in str(refused) for code in PASSING):
                raise
            raise ConfigError(
                f"channels.email.password: {one.imap_host} refuses the login of {one.login}.",
                hint="Check user and password. Many providers want an app password, or IMAP switched on.",
            ) from None
        answer = client.select_folder(one.folder)
        self._keyword = b"\\*" in answer.get(b"PERMANENTFLAGS", ())
        self.uid_validity = int(answer.get(b"UIDVALIDITY", 0))

    def _idle(self) -> None:
        client = self._connected
        client.idle()
        client.idle_check(timeout=self._settings.idle_seconds)
        client.idle_done()

    def _move(self, uid: int, folder: str) -> None:
        client = self._connected
        if client.has_capability("MOVE"):
            client.move([uid], folder)
        else:
            client.copy([uid], folder)
            client.delete_messages([uid], silent=True)
            if client.has_capability("UIDPLUS"):
                client.uid_expunge([uid])

    def _search(self, folder: str, message_id: str) -> bool:
        self._connected.select_folder(folder, readonly=True)
        criteria: Any = ["HEADER", "Message-ID", message_id]
        return bool(self._connected.search(criteria))

    async def _sent_folder(self) -> str | None:
        if self._sent is None:
            found = await self._call(lambda: self._connected.find_special_folder(SENT))
            self._sent = found or ""
        return self._sent or None

    @property
    def _connected(self) -> IMAPClient:
        if self._client is None:
            raise MailboxFailure("The mailbox is not connected.")
        return self._client

    async def _call(self, act: Callable[[], T]) -> T:
        try:
            return await anyio.to_thread.run_sync(act, abandon_on_cancel=True, limiter=self._limiter)
        except ConfigError:
            raise
        except FAILURES as error:
            raise MailboxFailure(f"{self._settings.imap_host}: {error}") from error

    def _close(self) -> None:
        """Close the connection, so that a thread which waits for the server ends."""
        if self._client is not None:
            try:
                self._client.socket().shutdown(socket.SHUT_RDWR)
                self._client.socket().close()
            except (OSError, AttributeError) as error:
                log.debug("the connection to the mailbox was closed already: %s", error)
            self._client = None
