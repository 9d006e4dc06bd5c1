"""Keeps purged data from returning with an older archive."""

from collections.abc import Iterable, Iterator

import msgspec
import pygit2

from trunkline.api.archive import InvalidArchive
from trunkline.api.store import PURGE_LOG_PATH
from trunkline_git_store.repository import Repository, entry_at, id_at


class PurgedTarget(msgspec.Struct, frozen=True):
    """As much of a note as tells what was purged."""

    target: str
    paths: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()


def refuse_purged(own: Repository, arrived: Repository, commits: Iterable[pygit2.Oid]) -> None:
    """Refuse an archive whose history has what this memory was purged of. Raises InvalidArchive."""
    head = own.head()
    entry = None if head is None else entry_at(own.tree(head), PURGE_LOG_PATH)
    notes = [] if entry is None else list(_purged_targets(own.data(entry.blob)))
    whole = {(path, "") for note in notes for path in note.paths}
    wanted = sorted(whole.union(*(note.versions for note in notes)))
    for commit in commits if wanted else ():
        tree = arrived.commit(commit).tree
        for path, blob in wanted:
            found = id_at(tree, path)
            if found is not None and blob in ("", str(found)):
                raise InvalidArchive(
                    f"its history holds {path[:120]!r}, which was purged here, and it would come back",
                    hint="Nothing was changed. Purge it in the other memory too, and export again.",
                )


def _purged_targets(data: bytes) -> Iterator[PurgedTarget]:
    """Raises InvalidArchive for a line that is none: what it names could come back."""
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.strip():
                yield msgspec.json.decode(line, type=PurgedTarget)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise InvalidArchive(
                f"{PURGE_LOG_PATH}:{number} of this memory cannot be read, so purged data could come back",
                hint=f'Nothing was changed. "trunkline memory history {PURGE_LOG_PATH}" shows its versions; '
                "revert it first.",
            ) from None
