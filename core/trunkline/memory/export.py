"""Everything in one archive that a person can read with nothing but tar and git. Reads only.

The archive is a picture of one commit: whatever is written meanwhile is either wholly in it or not at all.
"""

import io
import os
import tarfile
import tempfile
from pathlib import Path

import pygit2

from trunkline.memory.packing import write_pack
from trunkline.memory.repository import Repository, commit_time, files_in

README = """This is a Trunkline memory, exported {when} at version {version}.

memory/        all files as they were, plain text: open them with any editor
memory/.git/   their whole history: who changed what, when, and in which conversation

Read the history:        git -C memory log --stat
One file's history:      git -C memory log -p -- AGENT.md
Conversations:           memory/blocks/<block>/conversations/*/*.jsonl
                         (one JSON object a line: the first is the header, each other one a message)
Use it with Trunkline:   unpack it, and set runtime.memory_root to the folder memory
Not in here:             passwords and keys (Trunkline keeps none in memory), and search indexes (they are made anew)
"""


def export(root: Path, target: Path) -> int:
    """Write the archive to ``target`` (a tar file) and return how many files of memory it holds.

    ``target`` appears when it is complete. Raises OSError.
    """
    repository = Repository(root)
    scratch = target.with_name(f".{target.name}.part")
    try:
        with tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent) as folder:
            with tarfile.open(scratch, "w") as tar:
                files = _Export(repository, tar, Path(folder)).write()
            with scratch.open("rb") as written:
                os.fsync(written.fileno())
            scratch.replace(target)
            return files
    finally:
        scratch.unlink(missing_ok=True)
        repository.close()


class _Export:
    def __init__(self, repository: Repository, tar: tarfile.TarFile, folder: Path) -> None:
        head = repository.head()
        assert head is not None
        self._repository = repository
        self._tar = tar
        self._folder = folder
        self._commit = repository.commit(head)
        self._time = self._commit.commit_time

    def write(self) -> int:
        when = commit_time(self._commit).strftime("%Y-%m-%d %H:%M:%S UTC")
        self._add("README.txt", README.format(when=when, version=self._commit.id).encode())
        self._git_folder()
        count = 0
        for path, entry in files_in(self._commit.tree):
            self._add(f"memory/{path}", self._repository.data(entry.blob), executable=entry.executable)
            count += 1
        return count

    def _git_folder(self) -> None:
        """A repository that holds all history in one pack, with an index, so that ``git status`` is clean."""
        branch = self._repository.branch()
        references = self._references(branch)
        self._add("memory/.git/HEAD", f"ref: {branch}\n".encode())
        self._add("memory/.git/config", b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        self._add("memory/.git/packed-refs", references.encode())
        for folder in ("refs/heads", "refs/tags", "objects/info"):
            self._add_folder(f"memory/.git/{folder}")
        index = pygit2.Index(str(self._folder / "index"))
        index.read_tree(self._commit.tree)
        index.write()
        self._tar.add(self._folder / "index", "memory/.git/index", filter=self._plain)
        names = write_pack(
            self._repository.folder.parent, self._folder / "pack", list(self._repository.git.odb)
        )
        for name in names:
            self._tar.add(
                self._folder / "pack" / name, f"memory/.git/objects/pack/{name}", filter=self._plain
            )

    def _references(self, branch: str) -> str:
        """All branches and tags; ours stands at the commit that is exported."""
        known = {branch: str(self._commit.id)}
        for name in self._repository.git.references:
            target = self._repository.git.references[name].target
            if isinstance(target, pygit2.Oid) and name.startswith(("refs/heads/", "refs/tags/")):
                known.setdefault(name, str(target))
        return "".join(f"{target} {name}\n" for name, target in sorted(known.items()))

    def _add(self, name: str, data: bytes, *, executable: bool = False) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = len(data), self._time, 0o755 if executable else 0o644
        self._tar.addfile(info, io.BytesIO(data))

    def _add_folder(self, name: str) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mtime, info.mode = tarfile.DIRTYPE, self._time, 0o755
        self._tar.addfile(info)

    @staticmethod
    def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mode = 0o644
        return info
