"""Text files: read in part, without loading what is not asked for, and told from binary ones. No tool in here."""

import io
from typing import BinaryIO

from trunkline import Folder, ToolError

LARGEST_EDIT = 10 * 1024 * 1024
"""Bytes of a file that is read whole to be changed or searched."""

_HEAD = 8192
_STEP = 1 << 20


def part_of(file: BinaryIO, path: str, offset: int, limit: int) -> tuple[str, bool]:
    """The characters from ``offset`` on, at most ``limit``, and whether more follow. Line ends stay as they are."""
    refuse_binary(file.read(_HEAD), path)
    file.seek(0)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        skipped = 0
        while skipped < offset:
            step = len(text.read(min(_STEP, offset - skipped)))
            if not step:
                break
            skipped += step
        found = text.read(limit + 1)
    except UnicodeDecodeError as error:
        raise not_text(path) from error
    finally:
        text.detach()
    return found[:limit], len(found) > limit


def whole(folder: Folder, path: str) -> str:
    """The text of a file that is to be changed.

    Raises:
        ToolError: it is binary, or larger than ``LARGEST_EDIT``.
    """
    content = folder.read_bytes(path, limit=LARGEST_EDIT + 1)
    if len(content) > LARGEST_EDIT:
        raise ToolError(
            f"{path!r} is larger than {LARGEST_EDIT // 1024 // 1024} MB, too large to be changed in place."
        )
    refuse_binary(content[:_HEAD], path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise not_text(path) from error


def encoded(content: str) -> bytes:
    """The text as it goes to disk. Raises ToolError when it is no text that UTF-8 has."""
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "The content holds a lone surrogate, which no text file can hold. Nothing was written."
        ) from error


def is_binary(head: bytes) -> bool:
    """Whether the beginning of a file is not that of a text: it holds NUL, or is not UTF-8."""
    if b"\0" in head:
        return True
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3  # a character may be cut at the end of what was read
    return False


def refuse_binary(head: bytes, path: str) -> None:
    """Raise ToolError for what is not text."""
    if is_binary(head):
        raise not_text(path)


def not_text(path: str) -> ToolError:
    """The error for a file that is not text."""
    return ToolError(
        f"{path!r} is not a text file in UTF-8 but binary, or text in another encoding. "
        "file_info tells more; it cannot be read, searched or changed as text."
    )


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
