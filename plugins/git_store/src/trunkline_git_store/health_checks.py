"""The checks of a memory root behind ``trunkline doctor``: its history, files and chunks. They change nothing."""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread
import apsw
import pygit2

from trunkline import HealthCheck, HealthResult
from trunkline_git_store.external_edits import MAX_FILE_BYTES as KEPT
from trunkline_git_store.index.passage import MAX_INDEXED_BYTES as SEARCHED

BROKEN_CHUNKS = (
    "SELECT files.path, chunks.fault FROM chunks JOIN passages ON passages.id = chunks.passage"
    " JOIN files ON files.id = passages.file WHERE chunks.fault != '' ORDER BY files.path"
)


def health_checks(root: Path, cache: Path) -> Iterable[HealthCheck]:
    """The checks of a root and its cache."""
    for name, check in CHECKS.items():
        yield HealthCheck(name, partial(check, root, cache))


async def memory_history(root: Path, cache: Path) -> HealthResult:
    """memory.history: the memory root is a git repository. Its last version can be read, and new versions can be
    added."""
    if not (root / ".git").exists():
        return HealthResult("ok", f"The first start creates the history of {root}")
    try:
        repository = pygit2.Repository(str(root))
        if repository.head_is_unborn:
            return HealthResult("ok", "The history is empty so far")
        head = repository.head.peel(pygit2.Commit)
        await anyio.to_thread.run_sync(_read_folders, head.tree)
    except (pygit2.GitError, KeyError, ValueError) as error:
        return HealthResult(
            "error",
            f"The history of {root} cannot be read: {error}.",
            "Run: trunkline memory doctor. It repairs what can be repaired; restore the rest from a backup.",
        )
    shut = [folder for folder in (root / ".git", root / ".git" / "objects") if not os.access(folder, os.W_OK)]
    if shut:
        return HealthResult(
            "error", f"The history cannot be extended: you may not write to {shut[0]}.", CHMOD
        )
    return HealthResult("ok", f"The history of {root} ends at {str(head.id)[:10]}")


CHMOD = "Run: chmod -R u+rwX on that folder, as its owner. Until then, answers are kept on the bus and stored later."


def _read_folders(tree: pygit2.Tree) -> None:
    """Read all folders of a version. Raises KeyError and pygit2.GitError for a folder that is lost."""
    waiting = [tree]
    while waiting:
        waiting += [item for item in waiting.pop() if isinstance(item, pygit2.Tree)]


async def memory_files(root: Path, cache: Path) -> HealthResult:
    """memory.files: every file of memory can be read, is small enough for history, and is fully indexed."""
    sizes, closed = await anyio.to_thread.run_sync(_looked_through, root, SEARCHED)
    left = [path for path, size in sizes if size > KEPT]
    before = await anyio.to_thread.run_sync(_committed, root, left)
    cut = [path for path, size in sizes if size <= KEPT]
    groups = (
        (
            f"Not in history, because they are larger than {KEPT >> 20} MiB",
            [p for p in left if p not in before],
        ),
        (f"In history only in a version from before they grew larger than {KEPT >> 20} MiB", before),
        (f"Only their first {SEARCHED >> 20} MiB are searched", cut),
        ("You may not open these, so their changes are not recorded in history", closed),
    )
    if not any(paths for _, paths in groups):
        return HealthResult("ok", "All files of memory can be read, are in history and are fully searched")
    hints = [
        "Split large files into smaller ones, or move them out of memory." if left or cut else "",
        "Run: chmod -R u+rwX on the files and folders that cannot be opened." if closed else "",
    ]
    said = " ".join(f"{what}: {_named(paths)}." for what, paths in groups if paths)
    return HealthResult("warning", said, " ".join(filter(None, hints)))


def _looked_through(root: Path, than: int) -> tuple[list[tuple[str, int]], list[str]]:
    """The files of memory above a size, with their sizes in bytes; and the files and folders that cannot be opened."""
    found, closed = [], []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        closed += [
            Path(folder, name) for name in folders if not os.access(Path(folder, name), os.R_OK | os.X_OK)
        ]
        for name in names:
            with suppress(OSError):
                path = Path(folder, name)
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_size > than:
                    found.append((path.relative_to(root).as_posix(), status.st_size))
                if stat.S_ISREG(status.st_mode) and not os.access(path, os.R_OK):
                    closed.append(path)
    return sorted(found), sorted(path.relative_to(root).as_posix() for path in closed)


def _committed(root: Path, paths: list[str]) -> list[str]:
    """Return the files of the last commit; none when it cannot be read (memory.history reports why)."""
    with suppress(pygit2.GitError, KeyError, ValueError):
        tree = pygit2.Repository(str(root)).head.peel(pygit2.Tree)
        return [path for path in paths if path in tree]
    return []


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more


async def memory_chunks(root: Path, cache: Path) -> HealthResult:
    """memory.chunks: every chunk file that the search index knows is valid."""
    index = cache / "memory.db"
    if not index.exists():
        return HealthResult("ok", "Chunks are checked when memory first starts")
    try:
        connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
        broken = list(connection.execute(BROKEN_CHUNKS))
        connection.close()
    except apsw.Error as error:
        return HealthResult(
            "warning", f"{index} cannot be read: {error}.", "Memory rebuilds it at the next start."
        )
    if not broken:
        return HealthResult("ok", "Every chunk file is valid")
    first = ", ".join(f"{path} ({code})" for path, code in broken[:3])
    return HealthResult(
        "warning",
        f"{len(broken)} of the files in the folder of chunks are not valid chunks and are ignored: {first}.",
        "Correct them with an editor, or restore an earlier version: trunkline memory history, "
        "trunkline memory revert.",
    )


CHECKS: dict[str, Callable[[Path, Path], Awaitable[HealthResult]]] = {
    "memory.history": memory_history,
    "memory.files": memory_files,
    "memory.chunks": memory_chunks,
}
