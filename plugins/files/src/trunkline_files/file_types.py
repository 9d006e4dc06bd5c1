"""Detect the type of a file by its first bytes, whatever its name is. Opens no file."""

_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_DOCUMENTS = (b"%PDF-", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


def image_media_type(head: bytes) -> str | None:
    """The media type of a picture that models look at; None for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _PICTURES if head.startswith(begin)), None)


def is_document(head: bytes) -> bool:
    """Report whether it is PDF, or in a format that office programs pack their documents in."""
    return head.startswith(_DOCUMENTS)
