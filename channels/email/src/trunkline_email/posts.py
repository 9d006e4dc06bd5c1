"""The mails of this channel: the service behind the delivery ledger.

The Message-ID of a mail is known before the mail is sent: the delivery has a random key, recorded with it. Each mail is
also sent to the mailbox itself, in the same SMTP transaction, so that the server takes both or none. So an unfinished
post is looked for by its Message-ID, in the folder that is read and among those that were sent. Who repeats a mail
nevertheless repeats its Message-ID, which many mail programs show once.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

import anyio

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import Attachment, DeliveryState, PostRefused, PostService, UnfinishedPost
from trunkline_email.mail_transport import MailTransport, NotSent
from trunkline_email.mailbox import MailFolder
from trunkline_email.outbound_mail import NOT_ATTACHED, build_mail, decode_content
from trunkline_email.settings import EmailSettings

LOOKS = 10
"""How often an unfinished post is looked for while its copy may still arrive."""


class MailPosts(PostService):
    """Sends mails. The place of a delivery is the address of a person, and the id of a post is its Message-ID.
    ``read_file`` returns the content of a file, as ``Gateway.file`` does.
    """

    def __init__(
        self,
        settings: EmailSettings,
        transport: MailTransport,
        connect: Callable[[], AbstractAsyncContextManager[MailFolder]],
        read_file: Callable[[Attachment], Awaitable[bytes]],
    ) -> None:
        self._read_file = read_file
        self._settings = settings
        self._transport = transport
        self._connect = connect
        self._not_sent: set[str] = set()

    async def post(self, place: str, content: str, delivery: DeliveryState) -> str:
        """Send a mail. Raises PostRefused, NotSent, MailInDoubt, and Unavailable if no gateway returns a file."""
        message_id = self._message_id(delivery)
        details = dict(delivery.details)
        if delivery.posts:  # a later mail about the same continues the thread
            details["in_reply_to"] = delivery.posts[-1]
            details["references"] = " ".join([details.get("references", ""), *delivery.posts]).strip()
        decoded = decode_content(content)
        try:
            files, missing = await self._contents(decoded.files)
        except Unavailable:
            self._not_sent.add(message_id)
            raise
        try:
            mail = build_mail(
                "\n\n".join(part for part in (decoded.text, *missing) if part),
                details,
                files,
                sender=self._settings.address,
                to=place,
                message_id=message_id,
                at=datetime.now(UTC),
            )
        except (ValueError, LookupError) as error:
            raise PostRefused(f"No mail to {place} can be written: {error}") from error
        try:
            await self._transport.send(place, mail)
        except NotSent:
            self._not_sent.add(message_id)
            raise
        return message_id

    async def _contents(
        self, files: Sequence[Attachment]
    ) -> tuple[list[tuple[Attachment, bytes]], list[str]]:
        """Return the files with their content, and a sentence for each that is no longer stored."""
        found, missing = [], []
        for file in files:
            try:
                found.append((file, await self._read_file(file)))
            except RemoteFault:
                missing.append(NOT_ATTACHED.format(file.notice))
        return found, missing

    async def find(self, place: str, post: UnfinishedPost, delivery: DeliveryState) -> str | None:
        """Look for a mail by its Message-ID. Raises MailboxFailure."""
        message_id = self._message_id(delivery)
        if message_id in self._not_sent:
            self._not_sent.discard(message_id)
            return None
        pause = self._settings.settle_seconds / LOOKS
        async with self._connect() as mailbox:
            for look in range(LOOKS + 1):
                if look:
                    await anyio.sleep(pause)
                if await mailbox.has(message_id):
                    return message_id
        return None

    def _message_id(self, delivery: DeliveryState) -> str:
        thread, key = delivery.details["thread"], delivery.details["key"]
        return f"<{thread}.{key}.{len(delivery.posts)}@{self._settings.domain}>"


def new_key() -> str:
    """Return a key for the Message-IDs of a delivery. Nobody can guess it, so nobody can use one before."""
    return secrets.token_hex(16)
