"""E-mails as they are saved (EML): who wrote to whom and when, and what. Attachments are named, not read."""

from collections.abc import Iterator
from email.message import EmailMessage
from typing import BinaryIO

from trunkline.api.documents import Document, Reader, Section, UnreadableDocument

SHOWN_HEADERS = ("From", "To", "Cc", "Date", "Subject")


class MailReader(Reader):
    """The plain text where there is one, else the web page that it is."""

    name = "mail"
    suffixes = (".eml",)

    def read(self, file: BinaryIO, name: str) -> Document:
        """See ``Reader.read``."""
        from email import message_from_binary_file, policy

        mail = message_from_binary_file(file, _class=EmailMessage, policy=policy.default)
        if not mail["From"] and not mail["Subject"]:
            raise UnreadableDocument("it is broken: it is not an e-mail")
        head = "\n".join(f"- {field}: {mail[field]}" for field in SHOWN_HEADERS if mail[field])
        title = str(mail["Subject"] or "")
        sections = tuple(_body(mail, title))
        return Document(sections=(Section(text=head, heading=(title,)), *sections), title=title)


def _body(mail: EmailMessage, title: str) -> Iterator[Section]:
    body = mail.get_body(("plain", "html"))
    if body is not None and body.get_content_subtype() == "html":
        from trunkline_documents.html import read_html

        for section in read_html(str(body.get_content()).encode())[1]:
            yield Section(text=section.text, heading=(title, *section.heading))
    elif body is not None:
        yield Section(text=str(body.get_content()), heading=(title,))
    if names := [one.get_filename() or "?" for one in mail.iter_attachments()]:
        yield Section(text=f"Attachments: {', '.join(names)}", heading=(title,))
