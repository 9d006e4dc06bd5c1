"""The fields of a multipart form that a vendor receives. Pure."""

from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any


def parse_form(content: bytes, content_type: str) -> dict[str, Any]:
    """Return the fields of a multipart form. A file is ``{"name", "type", "data"}`` with its bytes as text."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    parsed = BytesParser(policy=HTTP).parsebytes(head + content)
    fields: dict[str, Any] = {}
    for part in parsed.iter_parts() if parsed.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        fields[str(name)] = _value(part)
    return fields


def _value(part: Message) -> Any:
    data = part.get_payload(decode=True)
    text = data.decode(errors="replace") if isinstance(data, bytes) else ""
    filename = part.get_filename()
    return {"name": filename, "type": part.get_content_type(), "data": text} if filename else text
