"""The rules for the text of a path, before a file is opened. Does not read the disk."""

import os
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from trunkline.errors import ToolError, ToolErrorKind

MAX_PATH, MAX_NAME = 4096, 255

PROTECTED_NAMES = ("auth.json", ".env", "id_rsa", "id_ed25519", ".git-credentials", ".netrc")
"""Names, and endings of names, that no path may have."""

PROTECTED_FILES = ((".ssh", "config"), (".aws", "credentials"), (".memoryblock", "auth.json"))
"""Files within certain folders that no path may name; the folders themselves cannot be renamed."""

GIT = ".git"
"""A folder that may not be entered. Writing its files would have the effect ``exec``, because they make git run
programs."""


class PathRefused(ToolError):
    """The path leaves the folder, passes through a link, or names a protected file. The text states a
    permitted form."""

    kind: ToolErrorKind = "permission_denied"


def is_absolute_path(path: str) -> bool:
    """Report whether the path is absolute, or in a person's home directory."""
    return path.startswith(("/", "~"))


def check_path(path: str) -> str:
    """Return the path in its normal form, by its text alone, for policies that check a path before it is opened.

    Raises:
        PathRefused: the path is absolute, has ``..`` or ``~``, is too long, is not text, or names a protected file.
    """
    return "/".join(relative_names(path))


def relative_names(path: str) -> tuple[str, ...]:
    """Return the names of a relative path. Raises PathRefused."""
    check_text(path)
    if path.startswith("/"):
        raise PathRefused(f"{path!r} is absolute. Name a path relative to the workspace.")
    if path.startswith("~"):
        raise PathRefused(
            f"{path!r} begins with '~', which is not expanded. Name a path relative to the workspace."
        )
    names = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in names:
        raise PathRefused(f"{path!r} has '..' in it. Name a path below the workspace.")
    return check_names(path, names)


def check_names(path: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, if none is too long or protected. ``path`` is shown in the refusal. Raises PathRefused."""
    if any(len(os.fsencode(name)) > MAX_NAME for name in names):
        raise PathRefused(f"A name in the path is longer than {MAX_NAME} bytes. Choose a shorter one.")
    if is_protected(names):
        raise PathRefused(
            f"{path!r} is a protected name, where secrets are kept. It can be neither read nor written."
        )
    if any(_plain(name) == GIT for name in names):
        raise PathRefused(
            f"{path!r} is a file of git. Such files can make git run programs, so tools neither read nor write them."
        )
    return tuple(names)


def check_text(path: str) -> None:
    """Raise PathRefused for text that cannot be a path."""
    if "\0" in path:
        raise PathRefused("The path holds a NUL character.")
    try:
        size = len(path.encode())
    except UnicodeEncodeError as error:
        raise PathRefused("The path is not valid text.") from error
    if size > MAX_PATH:
        raise PathRefused(f"The path is longer than {MAX_PATH} bytes.")


def check_movable(path: str, names: Sequence[str]) -> None:
    """Raise PathRefused for a path that may not be moved or replaced, because a protected file is identified by it."""
    folders = {folder for folder, _ in PROTECTED_FILES}
    if any(_plain(name) in folders for name in names):
        raise PathRefused(f"{path!r} lies in a protected folder. It can be neither moved nor replaced.")


def is_protected(names: Sequence[str]) -> bool:
    """Report whether the names of a path end in one that contains secrets."""
    plain = tuple(map(_plain, names))
    if plain and plain[-1].endswith(PROTECTED_NAMES):
        return True
    return any(pair in pairwise(plain) for pair in PROTECTED_FILES)


def _plain(name: str) -> str:
    """Return the name as the most lenient file system would compare it: without case, look-alikes and invisible
    characters.
    """
    if (
        name.isascii()
    ):  # a fast path, because nearly all names are ASCII and a whole workspace may be searched
        return name.casefold().rstrip(". ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")
    return seen.rstrip(". ")
