"""Mentions of files in a message: ``@notes.md``, or ``@"my notes.md"`` for a name with spaces. Sends nothing."""

import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trunkline import TrunklineError
from trunkline.api.channel import IncomingFile

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is read, in bytes. The gateway has a limit of its own."""

MENTION = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|([^\s"@][^\s"]*))')
"""A mention, at the beginning of a line or after a space, so that an address is none."""

TYPED = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]*)|([^\s"]*))$')
"""A mention that is being typed, up to the cursor."""


@dataclass(frozen=True, slots=True)
class FileMention:
    """A file that a message mentions."""

    written: str
    path: Path


def mentioned_files(text: str) -> list[FileMention]:
    """Return the files that a text mentions, each once. What names no file is text: a person's name, a folder."""
    found: dict[Path, FileMention] = {}
    for mention in MENTION.finditer(text):
        for written in _readings(mention[1], mention[2]):
            path = Path(written).expanduser()
            if _is_file(path):
                found.setdefault(path.resolve(), FileMention(written, path))
                break
    return list(found.values())


def _readings(quoted: str | None, bare: str | None) -> Iterator[str]:
    """Yield what a mention may name: a sentence may end right after it."""
    if quoted is not None:
        yield quoted
    elif bare:
        yield bare
        yield bare.rstrip(".,;:!?)")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def mention_of(path: str) -> str:
    """Return the mention of a path."""
    return f'@"{path}"' if re.search(r"\s|^$", path) else f"@{path}"


def read_mentioned(mention: FileMention) -> IncomingFile:
    """Return a file that was mentioned. Raises TrunklineError if it cannot be read or is too large."""
    path = mention.path
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TrunklineError(
                f"{path} is larger than {MAX_FILE_BYTES // 1024 // 1024} MB.", hint="Nothing was sent."
            )
        data = path.read_bytes()
    except OSError as error:
        raise TrunklineError(f"Cannot read {path}: {error.strerror}.", hint="Nothing was sent.") from error
    if not data:
        raise TrunklineError(f"{path} is empty.", hint="Nothing was sent.")
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return IncomingFile(path.name, media_type, data)
