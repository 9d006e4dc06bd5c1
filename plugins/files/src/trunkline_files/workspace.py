"""A block's workspace as the tools see it: opened below its folder, with errors that help. No tool in here."""

import difflib
import errno
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline import Folder, ToolContext, ToolError
from trunkline.api.tool import error_kind_for_os

MEMORY_HINT = "Memory is not part of the workspace: memory_read reads it."

_ENDINGS = {
    errno.ENOSPC: "The disk is full; nothing was changed.",
    errno.EDQUOT: "The disk quota is used up; nothing was changed.",
    errno.EROFS: "The workspace is read-only.",
    errno.EACCES: "The system does not permit it.",
    errno.EPERM: "The system does not permit it.",
    errno.ENOTEMPTY: "The folder is not empty.",
    errno.EEXIST: "It exists already.",
}


@contextmanager
def open_workspace(context: ToolContext) -> Iterator[Folder]:
    """The block's workspace, and by absolute paths what its scope has.

    Raises:
        ToolError: in the place of every OSError inside the block; the text says what would do.
    """
    with context.files() as folder:
        try:
            yield folder
        except OSError as error:
            raise ToolError(_error_text(folder, error), kind=error_kind_for_os(error)) from error


def parent_path(path: str) -> str:
    """The folder that a path is in; "" is the workspace itself, or the root of everything."""
    return path.rstrip("/").rpartition("/")[0]


def _error_text(folder: Folder, error: OSError) -> str:
    path = str(error.filename or "")
    if isinstance(error, FileNotFoundError):
        return _missing(folder, path)
    if isinstance(error, IsADirectoryError):
        return f"{path!r} is a folder. list_directory shows what is in it."
    if isinstance(error, NotADirectoryError):
        return f"{path!r} is not a folder, or a part of its path is a file."
    reason = _ENDINGS.get(error.errno or 0, f"{error.strerror or 'The system refused it'}.")
    return f"{path!r}: {reason}"


def _missing(folder: Folder, path: str) -> str:
    near = _similar_paths(folder, path.strip("/"))
    meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"There is no {path!r} in the workspace.{meant} {MEMORY_HINT}"


def _similar_paths(folder: Folder, path: str) -> list[str]:
    """Paths that look like the missing one: of the same name elsewhere, or of a like name in the same place."""
    name = path.rpartition("/")[2].lower()
    known = []
    for count, entry in enumerate(folder.walk(depth=8)):
        known.append(entry.path)
        if count > 5_000:
            break
    same = [one for one in known if one.rpartition("/")[2].lower() == name]
    return (same + [one for one in difflib.get_close_matches(path, known, 3, 0.7) if one not in same])[:3]
