"""A mail that this channel sends. Pure."""

from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

import msgspec
from markdown_it import MarkdownIt

from trunkline import printable
from trunkline.api.channel import Attachment

MAX_CHARACTERS = 500_000
"""Characters of an answer that are sent."""

CUT = "\n\n(The rest is left out, because the answer is too long for a mail. It is in the conversation.)"


MAX_ATTACHED = 15 * 1024 * 1024
"""Bytes of all files of a mail. Many servers take 20 MB of a mail, in which a file is a third longer."""

NOT_ATTACHED = "The file {} is not attached."


class MailContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of one mail: its Markdown text, and the files that are attached to it."""

    text: str
    files: tuple[Attachment, ...] = ()

    def encode(self) -> str:
        """Return the content as text, as the ledger keeps it."""
        return msgspec.json.encode(self).decode()


def decode_content(text: str) -> MailContent:
    """Return the content that ``encode`` wrote."""
    return msgspec.json.decode(text, type=MailContent)


def answer_content(text: str, files: Sequence[Attachment]) -> MailContent:
    """Return the mail that shows an answer with its files. Those that are too large for a mail are named."""
    attached: list[Attachment] = []
    for file in files:
        if sum(one.size for one in attached) + file.size <= MAX_ATTACHED:
            attached.append(file)
        else:
            text = f"{text}\n\n{NOT_ATTACHED.format(file.notice)}".strip()
    return MailContent(text=text, files=tuple(attached))


def build_mail(
    text: str,
    details: dict[str, str],
    files: Sequence[tuple[Attachment, bytes]] = (),
    *,
    sender: str,
    to: str,
    message_id: str,
    at: datetime,
) -> bytes:
    """Return a mail with a Markdown text, as plain text and as HTML, and with files. ``details`` have the ``subject``,
    the ``references`` and the Message-ID ``in_reply_to`` if there are such.
    """
    mail = EmailMessage(policy=SMTP)
    mail["From"] = Address("Trunkline", addr_spec=sender)
    mail["To"] = Address(addr_spec=to)
    mail["Subject"] = " ".join(printable(details.get("subject", "")).split()) or "Trunkline"
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = message_id
    answers = details.get("in_reply_to", "")
    if answers:
        mail["In-Reply-To"] = answers
    if details.get("references"):
        mail["References"] = details["references"]
    # Programs that answer by themselves, such as absence notices, do not answer these.
    mail["Auto-Submitted"] = "auto-replied" if answers else "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    shown = text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + CUT
    mail.set_content(shown)
    mail.add_alternative(_html(shown), subtype="html")
    for file, data in files:
        kind, _, more = file.media_type.partition("/")
        mail.add_attachment(
            data, maintype=kind, subtype=more or "octet-stream", filename=printable(file.name)
        )
    return mail.as_bytes()


def answer_subject(subject: str) -> str:
    """Return the subject of an answer."""
    if not subject:
        return "Re: your mail"
    return subject if subject.lower().startswith(("re:", "aw:")) else f"Re: {subject}"


def _html(text: str) -> str:
    # A picture would be fetched when the mail is opened, and its address could carry away what the agent knows.
    renderer = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    renderer.disable("image")
    return f"<html><body>{renderer.render(text)}</body></html>"
