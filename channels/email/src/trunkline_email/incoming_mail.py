"""A mail that arrived, as this channel reads it. Pure."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage, Message
from email.policy import default
from typing import cast

from trunkline.api.channel import IncomingFile
from trunkline_email.automatic_mail import automatic_reason
from trunkline_email.html_text import html_text
from trunkline_email.reply_text import reply_text
from trunkline_email.sender_check import MailSender, check_sender

MAX_FILES = 20
"""Attachments of a mail that are passed on."""

SIGNATURES = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
"""Parts that only prove who wrote the others."""

_ID = re.compile(r"<[^<>\s]{1,500}>")


@dataclass(frozen=True, slots=True)
class IncomingMail:
    """A mail. ``id`` is the same whenever the mail is delivered again. ``automatic`` says why no person wrote it, ""
    if one may have. ``references`` are the Message-IDs of the thread, the oldest first. ``left_out`` are the names of
    attachments that are not passed on.
    """

    id: str
    message_id: str
    sender: MailSender
    automatic: str
    subject: str
    references: tuple[str, ...]
    text: str
    files: tuple[IncomingFile, ...]
    left_out: tuple[str, ...]


def parse_mail(raw: bytes, server: str) -> IncomingMail:
    """Return what a mail says, its sender as ``server`` confirms it. Raises whatever the parser raises for nonsense."""
    message = message_from_bytes(raw, policy=default)
    message_id = next(iter(_ID.findall(str(message.get("Message-ID", "")))), "")
    sender = check_sender(raw, message, server)
    known_by = f"{sender.address} {message_id}".encode() if message_id else raw
    subject = " ".join(str(message.get("Subject", "")).split())[:200]
    references = _ID.findall(str(message.get("References", ""))) + _ID.findall(
        str(message.get("In-Reply-To", ""))
    )
    files = list(_files(message))
    return IncomingMail(
        id=hashlib.sha256(known_by).hexdigest()[:32],
        message_id=message_id,
        sender=sender,
        automatic=automatic_reason(message),
        subject=subject,
        references=tuple(dict.fromkeys(references)),
        text=_text(message, subject),
        files=tuple(files[:MAX_FILES]),
        left_out=tuple(file.name for file in files[MAX_FILES:]),
    )


def _text(message: EmailMessage, subject: str) -> str:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return ""
    content = _content(cast("EmailMessage", body))
    if body.get_content_type() == "text/html":
        return reply_text(html_text(content), subject) or html_text(content, quotes=True)
    return reply_text(content, subject)


def _content(part: EmailMessage) -> str:
    try:
        content = part.get_content()
    except LookupError:  # a character set that nobody knows
        content = _bytes(part).decode("utf-8", "replace")
    return str(content)


def _bytes(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _files(message: EmailMessage) -> Iterator[IncomingFile]:
    """Yield the attachments and the pictures inside the text, without the alternatives of the text."""
    if message.get_content_type() == "message/rfc822":
        inner = message.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        data = first.as_bytes() if isinstance(first, Message) else b""
        yield IncomingFile(
            media_type="message/rfc822", name=message.get_filename() or "message.eml", data=data
        )
    elif message.is_multipart():
        for part in message.iter_parts():
            yield from _files(cast("EmailMessage", part))
    elif message.get_content_type() not in SIGNATURES:
        name = message.get_filename()
        is_text = message.get_content_maintype() == "text" and not message.is_attachment()
        if name or not is_text:
            kind = message.get_content_type()
            named = name or f"attachment.{kind.rpartition('/')[2]}"
            yield IncomingFile(media_type=kind, name=named, data=_bytes(message))
