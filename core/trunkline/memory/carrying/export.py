"""Everything in one archive that a person can read with nothing but tar and git. Reads only.

The archive is a picture of one commit: whatever is written meanwhile is either wholly in it or not at all.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from types import MappingProxyType

import pygit2

import trunkline
from trunkline.archives.manifest import DERIVED, MANIFEST, MEMORY, README, Manifest
from trunkline.archives.reading import is_safe
from trunkline.archives.writing import ArchiveWriter, archive
from trunkline.memory.carrying.fit import unfit_in
from trunkline.memory.conversations import names_of
from trunkline.memory.packing import write_pack
from trunkline.memory.paths import ascii_safe
from trunkline.memory.repository import Repository, commit_time, files_in, walk_back
from trunkline_bus import Refusal

GIT = f"{MEMORY}/.git"
CARRIED = ("refs/heads/", "refs/tags/")
NONE: Mapping[str, str] = MappingProxyType({})

ABOUT = """This is a Trunkline memory, exported {when} at version {version}.

memory/        all files as they were, plain text: open them with any editor (what was committed with git under a
               name that not every system can have is in the history alone)
memory/.git/   their whole history: who changed what, when, and in which conversation
manifest.json  what this is and what made it
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
    root: Path, target: Path, *, plugins: Mapping[str, str] = NONE, derived: Path | None = None
) -> int:
    """Write the archive to ``target`` (a tar file) and return how many files of memory it holds.

    ``plugins`` are the installed ones with their versions, for whoever brings the archive in. ``derived`` is a copy of
    the search index to take along. ``target`` appears when it is complete.

    Raises:
        OSError: it cannot be written.
        Refusal: ``not_portable``: no other memory would take this history in, because somebody committed a link, a
            submodule or a name of git's by hand.
    """
    repository = Repository(root)
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as folder:
            return _Export(repository, Path(folder), plugins).write(target, derived)
    finally:
        repository.close()


def _insist_on_fit(repository: Repository, head: pygit2.Oid) -> None:
    """Raises Refusal ``not_portable``."""
    git = repository.git
    targets = (git.references[name].target for name in git.references if name.startswith(CARRIED))
    tips = [head, *(target for target in targets if isinstance(target, pygit2.Oid))]
    odd = sorted(dict.fromkeys(unfit_in(git, tips)))
    if odd:
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        raise Refusal(
            "not_portable",
            f"{ascii_safe(odd[0])!r}{more} is in the history, committed with git: no plain file, or a name of git's."
            f" No memory takes such an archive in. Take it out of history: trunkline memory purge {quote(odd[0])}",
        )


class _Export:
    def __init__(self, repository: Repository, folder: Path, plugins: Mapping[str, str]) -> None:
        head = repository.head()
        assert head is not None
        _insist_on_fit(repository, head)
        self._repository = repository
        self._folder = folder
        self._plugins = plugins
        self._commit = repository.commit(head)
        self._paths = [
            (path, entry) for path, entry in files_in(self._commit.tree) if is_safe(f"{MEMORY}/{path}")
        ]

    def write(self, target: Path, derived: Path | None) -> int:
        when = commit_time(self._commit).strftime("%Y-%m-%d %H:%M:%S UTC")
        about = ABOUT.format(when=when, version=self._commit.id)
        with archive(target, self._commit.commit_time) as out:
            out.add(MANIFEST, self._manifest().encode())
            out.add(README, about.encode())
            self._git_folder(out)
            for path, entry in self._paths:
                data = self._repository.data(entry.blob)
                out.add(f"{MEMORY}/{path}", data, executable=entry.executable)
            if derived is not None:
                out.add_file(f"{DERIVED}/{derived.name}", derived)
        return len(self._paths)

    def _manifest(self) -> Manifest:
        paths = [path for path, _ in self._paths]
        return Manifest(
            version=trunkline.__version__,
            head=str(self._commit.id),
            commits=sum(1 for _ in walk_back(self._repository, self._commit.id)),
            files=len(paths),
            conversations=sum(1 for path in paths if names_of(path) is not None),
            blocks=tuple(sorted({path.split("/")[1] for path in paths if path.startswith("blocks/")})),
            plugins=dict(self._plugins),
        )

    def _git_folder(self, out: ArchiveWriter) -> None:
        """A repository that holds all history in one pack, with an index, so that ``git status`` is clean."""
        branch = self._repository.branch()
        out.add(f"{GIT}/HEAD", f"ref: {branch}\n".encode())
        out.add(f"{GIT}/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        out.add(f"{GIT}/packed-refs", self._references(branch).encode())
        for folder in ("refs/heads", "refs/tags", "objects/info"):
            out.add_folder(f"{GIT}/{folder}")
        index = pygit2.Index(str(self._folder / "index"))
        index.read_tree(self._commit.tree)
        index.write()
        out.add_file(f"{GIT}/index", self._folder / "index")
        names = write_pack(
            self._repository.folder.parent, self._folder / "pack", list(self._repository.git.odb)
        )
        for name in names:
            out.add_file(f"{GIT}/objects/pack/{name}", self._folder / "pack" / name)
            (self._folder / "pack" / name).unlink()

    def _references(self, branch: str) -> str:
        """All branches and tags; ours stands at the commit that is exported."""
        known = {branch: str(self._commit.id)}
        for name in self._repository.git.references:
            target = self._repository.git.references[name].target
            if isinstance(target, pygit2.Oid) and name.startswith(CARRIED):
                known.setdefault(name, str(target))
        return "".join(f"{target} {name}\n" for name, target in sorted(known.items()))
