"""A mail that this channel sends. Pure."""

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from markdown_it import MarkdownIt

from trunkline import printable

MAX_CHARACTERS = 500_000
"""Characters of an answer that are sent."""

CUT = "\n\n(The rest is left out, because the answer is too long for a mail. It is in the conversation.)"


def build_mail(
    text: str, details: dict[str, str], *, sender: str, to: str, message_id: str, at: datetime
) -> bytes:
    """Return a mail with a Markdown text, as plain text and as HTML. ``details`` have the ``subject``, the
    ``references`` and the Message-ID ``in_reply_to`` if there are such.
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
