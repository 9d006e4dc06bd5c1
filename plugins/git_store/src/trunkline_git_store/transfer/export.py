"""Exports the whole memory into one archive, which tar and git can read. Reads only.

The archive is a picture of one commit: whatever is written meanwhile is either wholly in it or not at all. Nothing that
somebody committed keeps it from being made: what cannot be carried is left out, and the manifest names it.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import apsw
import pygit2

import trunkline
from trunkline.api.archive import (
    DERIVED,
    MANIFEST,
    MEMORY,
    README,
    ArchiveManifest,
    ArchiveWriter,
    is_safe,
    write_archive,
)
from trunkline.api.bus import Refusal
from trunkline.api.importer import ImportGap
from trunkline.api.memory import BLOCKS_FOLDER
from trunkline.api.store import ascii_safe, parse_conversation_path
from trunkline_git_store.packer import write_pack
from trunkline_git_store.repository import Repository, commit_time, files_in, walk_commits
from trunkline_git_store.transfer.export_history import ExportHistory
from trunkline_git_store.transfer.tree_rows import FOLDER, SPECIAL_MODES, parse_rows

GIT = f"{MEMORY}/.git"
NONE: Mapping[str, str] = MappingProxyType({})

ABOUT = """This is a Trunkline memory, exported {when} at version {version}.

memory/        all files as they were, plain text: open them with any editor (what was committed with git under a
               name that not every system can have is in the history alone)
memory/.git/   their whole history: who changed what, when, and in which conversation
manifest.json  what this is, what made it, and what could not come along ("gaps")
SHA256SUMS     the sums of all files here

Check that it is whole:  sha256sum -c --quiet SHA256SUMS
Read the history:        git -C memory log --stat
One file's history:      git -C memory log -p -- AGENT.md
Conversations:           memory/blocks/<block>/conversations/*/*.jsonl
                         (one JSON object a line: the first is the header, each other one a message)
Bring it into Trunkline: trunkline memory import <this archive, or this folder>
Not in here:             passwords and keys (Trunkline keeps none in memory). Search indexes are in the folder derived
                         if they were asked for; nobody needs them, they are made anew
"""


def export(
    root: Path,
    target: Path,
    *,
    plugins: Mapping[str, str] = NONE,
    derived: Path | None = None,
    gaps: Sequence[ImportGap] = (),
) -> int:
    """Write the archive to ``target`` (a tar file) and return how many files of memory it holds.

    ``plugins`` are the installed ones with their versions, for whoever brings the archive in. ``derived`` is a copy of
    the search index to take along. ``gaps`` are what is known not to be in it. ``target`` appears when it is complete.

    Raises:
        OSError: it cannot be written.
        Refusal: ``history_damaged``: what git stored cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as folder:
        try:
            repository = Repository(root)
            try:
                history = ExportHistory(repository, Path(folder) / "history.git")
            finally:
                repository.close()
            try:
                return _ExportWriter(history, Path(folder), plugins, gaps).write(target, derived)
            finally:
                history.close()
        except (pygit2.GitError, KeyError, ValueError) as error:
            raise Refusal(
                "history_damaged",
                f"Memory's history cannot be read ({error}). Run: trunkline memory doctor. The files are as they were.",
            ) from error


class _ExportWriter:
    def __init__(
        self, history: ExportHistory, folder: Path, plugins: Mapping[str, str], gaps: Sequence[ImportGap]
    ) -> None:
        self._history = history
        self._repository = history.repository
        self._folder = folder
        self._plugins = plugins
        self._commit = self._repository.commit(history.head)
        found = list(files_in(self._commit.tree))
        self._paths = [(path, entry) for path, entry in found if is_safe(f"{MEMORY}/{path}")]
        safe = {path for path, _ in self._paths}
        unsafe = (
            ImportGap(
                what=ascii_safe(path), why="not every system allows that name: it is only in the history"
            )
            for path, _ in found
            if path not in safe
        )
        self._gaps = (
            *gaps,
            *history.left_out,
            *unsafe,
            *_special_entries(self._repository, self._commit.tree_id),
        )

    def write(self, target: Path, derived: Path | None) -> int:
        when = commit_time(self._commit).strftime("%Y-%m-%d %H:%M:%S UTC")
        about = ABOUT.format(when=when, version=self._commit.id)
        with write_archive(target, self._commit.commit_time) as out:
            out.add(MANIFEST, self._manifest().encode())
            out.add(README, about.encode())
            self._git_folder(out)
            for path, entry in self._paths:
                data = self._repository.data(entry.blob)
                out.add(f"{MEMORY}/{path}", data, executable=entry.executable)
            if derived is not None:
                out.add_file(f"{DERIVED}/{derived.name}", derived)
        return len(self._paths)

    def _manifest(self) -> ArchiveManifest:
        paths = [path for path, _ in self._paths]
        return ArchiveManifest(
            version=trunkline.__version__,
            head=str(self._commit.id),
            commits=sum(1 for _ in walk_commits(self._repository, self._commit.id)),
            files=len(paths),
            conversations=sum(1 for path in paths if parse_conversation_path(path) is not None),
            blocks=tuple(
                sorted({path.split("/")[1] for path in paths if path.startswith(f"{BLOCKS_FOLDER}/")})
            ),
            plugins=dict(self._plugins),
            gaps=self._gaps,
        )

    def _git_folder(self, out: ArchiveWriter) -> None:
        """A repository that holds all history in one pack, with an index, so that ``git status`` is clean."""
        branch = self._history.branch
        out.add(f"{GIT}/HEAD", f"ref: {branch}\n".encode())
        out.add(f"{GIT}/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        out.add(f"{GIT}/packed-refs", self._references().encode())
        for folder in ("refs/heads", "refs/tags", "objects/info"):
            out.add_folder(f"{GIT}/{folder}")
        index = pygit2.Index(str(self._folder / "index"))
        index.read_tree(self._commit.tree)
        index.write()
        out.add_file(f"{GIT}/index", self._folder / "index")
        names = write_pack(self._history.root, self._folder / "pack", self._history.objects)
        for name in names:
            out.add_file(f"{GIT}/objects/pack/{name}", self._folder / "pack" / name)
            (self._folder / "pack" / name).unlink()

    def _references(self) -> str:
        """All branches and tags; ours stands at the commit that is exported."""
        return "".join(f"{target} {name}\n" for name, target in sorted(self._history.references.items()))


def _special_entries(repository: Repository, top: pygit2.Oid) -> Iterator[ImportGap]:
    """Yield the entries of the last commit that are not files."""
    waiting = [(top, "")]
    while waiting:
        tree, place = waiting.pop()
        for row in parse_rows(repository.git.odb.read(tree)[1]):
            if row.mode == FOLDER:
                waiting.append((row.oid, f"{place}{row.display_name}/"))
            elif row.mode in SPECIAL_MODES:
                yield ImportGap(
                    what=f"{place}{row.display_name}",
                    why=f"it is {SPECIAL_MODES[row.mode]}: it is in history alone",
                )


@contextmanager
def copied_index(index: Path) -> Iterator[Path | None]:
    """A copy that stays as it is for as long as the block lasts; None when there is no index that can be read."""
    with tempfile.TemporaryDirectory(prefix=".index-", dir=index.parent) as folder:
        copy = Path(folder) / index.name
        try:
            connection = apsw.Connection(str(index), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                connection.execute("VACUUM INTO ?", (str(copy),))
            finally:
                connection.close()
        except apsw.Error:
            yield None
        else:
            yield copy
