"""Threads of mails, each of which is a conversation. Pure."""

import hashlib
import re

from trunkline_email.incoming_mail import IncomingMail

MAX_REFERENCES = 20
"""Message-IDs that an answer names in References: the first and the last ones."""


class MailThreads:
    """Knows the threads of one mailbox by the Message-IDs in a mail. ``domain`` is that of the mailbox."""

    def __init__(self, domain: str) -> None:
        self._own = re.compile(rf"<(?P<thread>[0-9a-f]{{16}})\.[0-9a-f]{{32}}\.[0-9]+@{re.escape(domain)}>")

    def is_own(self, message_id: str) -> bool:
        """Report whether this is the Message-ID of a mail that this channel sent."""
        return self._own.fullmatch(message_id) is not None

    def key(self, mail: IncomingMail) -> str:
        """Return the thread of a mail. The Message-IDs of our own mails name theirs; else it is the first mail's."""
        for id in reversed(mail.references):
            found = self._own.fullmatch(id)
            if found is not None:
                return found["thread"]
        return thread_key(mail.references[0] if mail.references else mail.message_id or mail.id)


def thread_key(begin: str) -> str:
    """Return the key of the thread that begins with this Message-ID, or with this id of ours."""
    return hashlib.sha256(begin.encode()).hexdigest()[:16]


def references_of(mail: IncomingMail) -> str:
    """Return the References of an answer to a mail."""
    known = [*mail.references, *([mail.message_id] if mail.message_id else [])]
    if len(known) > MAX_REFERENCES:
        known = [known[0], *known[-MAX_REFERENCES + 1 :]]
    return " ".join(known)
