"""Text files: partial reads without loading the whole file, and the distinction from binary files. No tools."""

import io
import os
from typing import BinaryIO

from trunkline import Folder, ToolError
from trunkline_files.file_types import image_media_type

LARGEST_EDIT = 10 * 1024 * 1024
"""Bytes of a file that is read whole to be changed or searched."""

HEAD = 8192
"""Bytes from the beginning of a file by which its type is recognized."""

_STEP = 1 << 20
_CONTINUING = bytes(range(0x80, 0xC0))
"""Bytes that begin no character."""


def read_part(file: BinaryIO, offset: int, limit: int) -> tuple[str, bool]:
    """The characters from ``offset`` on, at most ``limit``, and whether more follow. Line ends stay as they are.

    Raises:
        UnicodeDecodeError: it is not text in UTF-8.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    try:
        skipped = 0
        while skipped < offset:
            step = len(text.read(min(_STEP, offset - skipped)))
            if not step:
                break
            skipped += step
        found = text.read(limit + 1)
    finally:
        text.detach()
    return found[:limit], len(found) > limit


def count_lines(file: BinaryIO) -> int:
    """Return the number of lines. Text after the last line end counts as a line."""
    count, last = 0, b"\n"
    file.seek(0)
    while piece := file.read(_STEP):
        count += piece.count(b"\n")
        last = piece[-1:]
    return count + (last != b"\n")


def skip_lines(file: BinaryIO, lines: int) -> int | None:
    """Go behind so many line ends from the beginning; how many characters that were. None: there are fewer."""
    passed = 0
    file.seek(0)
    while lines:
        piece = file.read(_STEP)
        if not piece:
            return None
        ends = piece.count(b"\n")
        cut = len(piece) if ends < lines else _offset_after_lines(piece, lines)
        file.seek(cut - len(piece), os.SEEK_CUR)
        passed += len(piece[:cut].translate(None, _CONTINUING))
        lines -= min(ends, lines)
    return passed


def _offset_after_lines(piece: bytes, lines: int) -> int:
    at = 0
    for _ in range(lines):
        at = piece.index(b"\n", at) + 1
    return at


def read_whole(folder: Folder, path: str) -> str:
    """The text of a file that is to be changed.

    Raises:
        ToolError: it is a folder, binary, or larger than ``LARGEST_EDIT``.
    """
    if folder.stat(path).kind == "folder":
        raise ToolError(
            f"{path!r} is a folder. Name a file in it; list_directory shows them.", kind="invalid_arguments"
        )
    content = folder.read_bytes(path, limit=LARGEST_EDIT + 1)
    if len(content) > LARGEST_EDIT:
        raise ToolError(
            f"{path!r} is larger than {LARGEST_EDIT // 1024 // 1024} MB, too large to be changed in place.",
            kind="too_large",
        )
    refuse_binary(content[:HEAD], path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise not_text_error(path) from error


def encode_text(content: str) -> bytes:
    """The text as it goes to disk. Raises ToolError when it is no text that UTF-8 has."""
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "The content holds a lone surrogate, which no text file can contain. Nothing was written.",
            kind="invalid_arguments",
        ) from error


def is_binary(head: bytes) -> bool:
    """Report whether the beginning of a file is not that of a text: it holds NUL, or is not UTF-8."""
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
        raise not_text_error(path, head)


def not_text_error(path: str, head: bytes = b"") -> ToolError:
    """The error for a file that is not text; ``head`` is how it begins."""
    if kind := image_media_type(head):
        return ToolError(
            f"{path!r} is no text but a picture ({kind}). describe_image describes it.",
            kind="invalid_arguments",
        )
    return ToolError(
        f"{path!r} is not a text file in UTF-8 but binary, or text in another encoding. "
        "file_info shows more; it cannot be read, searched or changed as text.",
        kind="invalid_arguments",
    )


def pluralized(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
