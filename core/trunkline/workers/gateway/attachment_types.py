"""The media types of attachments, recognised by their content. The type that a client declares is not trusted.

A text may be in any language of people or machines. It is accepted as UTF-8 without control characters.
"""

from collections.abc import Mapping

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
PDF, TEXT = "application/pdf", "text/plain"

EXTENSIONS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    PDF: "pdf",
    TEXT: "txt",
}

TYPE_RULE = "It is a PNG, JPEG, GIF or WebP image, a PDF, or text in UTF-8."

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
)
_TEXT_CONTROLS = frozenset("\t\n\r\f\x1b")


def media_type_of(data: bytes) -> str | None:
    """Return the media type of a file; None for a type that models do not take."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return TEXT if _is_text(data) else None


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return all(letter >= " " or letter in _TEXT_CONTROLS for letter in set(text))
