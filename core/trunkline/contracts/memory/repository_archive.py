"""Archives the git history of a memory root, or of an unpacked export, unchanged."""

import re
import stat
from pathlib import Path

import trunkline
from trunkline._util.archives.manifest import MANIFEST, MEMORY, ArchiveManifest
from trunkline._util.archives.writer import write_archive
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.errors import TrunklineError

HISTORY_FILES = (
    "refs/heads/**/*",
    "refs/tags/**/*",
    "objects/[0-9a-f][0-9a-f]/*",
    "objects/pack/*.pack",
    "objects/pack/*.idx",
)
"""The files below ``.git`` that hold history. They do not include configuration, hooks and locks, because an archive
must not bring in a program that git would run.
"""


def find_memory_root(folder: Path) -> Path | None:
    """Return the memory root in ``folder``, which is an unpacked export or a memory root itself; None if it is
    neither.
    """
    for root in (folder / MEMORY, folder):
        if (root / ".git" / "HEAD").is_file() and (
            (root / "AGENT.md").is_file() or (root / BLOCKS_FOLDER).is_dir()
        ):
            return root
    return None


def archive_repository(root: Path, target: Path) -> None:
    """Write the history of the repository at ``root`` to an archive.

    Raises:
        TrunklineError: the clone is shallow, or borrows objects from another repository.
    """
    git = root / ".git"
    if (git / "objects" / "info" / "alternates").exists() or (git / "shallow").exists():
        raise TrunklineError(
            f"The history in {git} is incomplete: some of its objects are in another repository.",
            hint="Make a full clone of it first.",
        )
    with write_archive(target, 0) as out:
        out.add(MANIFEST, ArchiveManifest(version=trunkline.__version__, head=_head(git)).encode())
        for file in (git / "HEAD", git / "packed-refs"):
            if file.is_file() and not file.is_symlink():
                out.add_file(f"{MEMORY}/.git/{file.name}", file)
        for pattern in HISTORY_FILES:
            for file in sorted(git.glob(pattern)):
                name = file.relative_to(git).as_posix()
                if (
                    stat.S_ISREG(file.lstat().st_mode)
                    and not name.endswith(".lock")
                    and "tmp_obj" not in name
                ):
                    out.add_file(f"{MEMORY}/.git/{name}", file)


def _head(git: Path) -> str:
    """Return the commit of HEAD; "" if the refs do not name one."""
    text = (git / "HEAD").read_text("utf-8", "replace").strip()
    name = text.removeprefix("ref: ")
    loose = git / name
    if re.fullmatch(r"refs/heads/[\w./-]+", name) and ".." not in name and loose.is_file():
        return loose.read_text("utf-8", "replace").strip()
    packed = git / "packed-refs"
    lines = packed.read_text("utf-8", "replace").splitlines() if packed.is_file() else []
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")
