"""Looking for a text in every byte of a home: files as they are, and git repositories by what their objects say."""

import subprocess
from pathlib import Path


def files_holding(home: Path, text: bytes) -> set[str]:
    """Return the files that contain a text, relative to the home; a repository's objects as ``FOLDER/.git``.

    NATS stores messages unchanged, so its files are searched like all others.
    """
    files = (file for file in home.rglob("*") if file.is_file())
    found = {str(file.relative_to(home)) for file in files if text in file.read_bytes()}
    repositories = (folder.parent for folder in home.rglob(".git") if folder.is_dir())
    return found | {f"{one.relative_to(home)}/.git" for one in repositories if text in git_objects(one)}


def git_objects(repository: Path) -> bytes:
    """Every object that a repository holds, led to or not, as its content."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "-C",
        str(repository),
        "cat-file",
        "--batch-all-objects",
        "--batch",
    ]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout
