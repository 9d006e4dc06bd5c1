"""The mailbox and the people behind the scripted mail servers, and the faults that happen next.

It keeps what people got, so that a test can count what was lost or repeated.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Literal, cast

import anyio

AGENT, OWNER, STRANGER = "agent@trunk.test", "ada@owner.test", "eve@stranger.test"
PASSWORD = "secret-of-the-mailbox"
SERVER = "mx.trunk.test"
"""The name that the receiving server writes into Authentication-Results."""


@dataclass
class Fault:
    """What happens to the next command of this name. ``before`` and ``after`` are called around its effect; ``answer``
    replaces its effect; ``cut`` closes the connection before the effect, or after it and without an answer.
    """

    command: str
    answer: str = ""
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None
    cut: Literal["", "before", "after"] = ""


@dataclass
class StoredMail:
    """A mail in a folder."""

    uid: int
    raw: bytes
    flags: set[str] = field(default_factory=set)

    @property
    def message_id(self) -> str:
        """Its Message-ID."""
        return str(message_from_bytes(self.raw, policy=default)["Message-ID"])


@dataclass
class Folder:
    """A folder of the mailbox."""

    uid_validity: int = 7
    next_uid: int = 1
    mails: list[StoredMail] = field(default_factory=list)

    def add(self, raw: bytes) -> None:
        """Put a mail into the folder."""
        self.mails.append(StoredMail(self.next_uid, raw))
        self.next_uid += 1

    def renumber(self) -> None:
        """Number all mails anew, as after a repair of the mailbox."""
        self.uid_validity += 1
        self.next_uid = 1000
        for mail in self.mails:
            mail.uid = self.next_uid
            self.next_uid += 1


@dataclass
class MailStore:
    """The mails of both servers. ``faults`` are used up one by one; ``commands`` are those that were received."""

    folders: dict[str, Folder] = field(default_factory=lambda: {"INBOX": Folder(), "Sent Items": Folder()})
    received: dict[str, list[EmailMessage]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    refuses_copies: bool = False
    _number: int = 0
    _news: anyio.Event = field(default_factory=anyio.Event)

    # People -----------------------------------------------------------------------------------------------------

    def say(
        self,
        text: str,
        *,
        sender: str = OWNER,
        confirmed: str | None = "pass",
        message_id: str = "",
        to: EmailMessage | None = None,
        **headers: str,
    ) -> EmailMessage:
        """A person writes a mail, as a reply if ``to`` is a mail; return it."""
        mail = EmailMessage()
        mail.set_content(text)
        return self.deliver(mail, sender=sender, confirmed=confirmed, message_id=message_id, to=to, **headers)

    def deliver(
        self,
        mail: EmailMessage,
        *,
        sender: str = OWNER,
        confirmed: str | None = "pass",
        message_id: str = "",
        to: EmailMessage | None = None,
        **headers: str,
    ) -> EmailMessage:
        """A person sends this mail; return it. ``confirmed`` is the result of DMARC, None if nothing was verified."""
        self._number += 1
        mail["From"], mail["To"] = sender, AGENT
        mail["Message-ID"] = message_id or f"<person-{self._number}@owner.test>"
        if to is not None:
            mail["Subject"] = f"Re: {to['Subject']}"
            mail["In-Reply-To"] = to["Message-ID"]
            mail["References"] = f"{to.get('References', '')} {to['Message-ID']}".strip()
        for name, value in headers.items():
            mail[name.replace("_", "-")] = value
        raw = mail.as_bytes()
        if confirmed is not None:
            domain = sender.rpartition("@")[2].rstrip(">")
            raw = (
                f"Authentication-Results: {SERVER};\r\n dmarc={confirmed} header.from={domain}\r\n".encode()
                + raw
            )
        self.arrive(raw)
        return mail

    def arrive(self, raw: bytes, folder: str = "INBOX") -> None:
        """A mail arrives in a folder."""
        self.folders[folder].add(raw)
        self.tell()

    def send(self, recipients: list[str], raw: bytes) -> None:
        """The sending server has accepted a mail."""
        for one in recipients:
            if one == AGENT:
                self.arrive(raw)
            else:
                mail = cast("EmailMessage", message_from_bytes(raw, policy=default))
                self.received.setdefault(one, []).append(mail)

    def mails(self, person: str = OWNER) -> list[EmailMessage]:
        """Return the mails that a person got, the oldest first."""
        return self.received.get(person, [])

    def seen(self, person: str = OWNER) -> list[str]:
        """Return the texts that a person got, the oldest first."""
        return [text_of(mail) for mail in self.mails(person)]

    # Servers ----------------------------------------------------------------------------------------------------

    @property
    def news(self) -> anyio.Event:
        """Is set when the next mail arrives."""
        return self._news

    def tell(self) -> None:
        """Wake up who waits for mail."""
        self._news.set()
        self._news = anyio.Event()

    def take_fault(self, command: str) -> Fault:
        """Return the next fault of a command, or one that does nothing."""
        self.commands.append(command)
        for fault in self.faults:
            if fault.command == command:
                self.faults.remove(fault)
                return fault
        return Fault(command)

    def untaken(self) -> list[StoredMail]:
        """Return the mails that nobody has marked as read."""
        return [mail for mail in self.folders["INBOX"].mails if "\\Seen" not in mail.flags]


def text_of(mail: EmailMessage) -> str:
    """Return the plain text of a mail."""
    body = mail.get_body(preferencelist=("plain",))
    return str(body.get_content()).replace("\r\n", "\n").strip() if body is not None else ""
