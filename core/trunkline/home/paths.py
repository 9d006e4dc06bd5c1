"""The home folder: the paths of everything that belongs to one installation, and their creation. No contents.
::
    trunkline.toml  form.json  memory/  workspaces/<block>/  cache/  bus/  run/  tasks/<block>/  token  token-key
    logs/
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline._util.private_folders import make_private
from trunkline.config.home_format import require_known_format
from trunkline.errors import StorageError

if TYPE_CHECKING:
    from trunkline.config import Config

PROBE, RESTORING = ".write-", ".restore-"
"""The prefixes of temporary files and folders."""


@dataclass(frozen=True, slots=True)
class Home:
    """The paths of one home. The settings may place ``memory`` and ``workspaces`` elsewhere."""

    path: Path
    memory: Path
    workspaces: Path

    @classmethod
    def at(cls, path: Path) -> "Home":
        """Return the home at a path, with all parts at their default paths."""
        return cls(path, path / "memory", path / "workspaces")

    @classmethod
    def of(cls, config: "Config") -> "Home":
        """Return the home of a configuration."""
        settings = config.settings
        return cls(config.home, settings.runtime.memory_root, settings.tools.workspaces)

    @property
    def config_file(self) -> Path:
        """``trunkline.toml``."""
        return self.path / "trunkline.toml"

    @property
    def cache(self) -> Path:
        """The folder of derived indexes. They are rebuilt if it is deleted."""
        return self.path / "cache"

    @property
    def bus(self) -> Path:
        """The embedded server's store."""
        return self.path / "bus"

    @property
    def run(self) -> Path:
        """The folder of the running instance: its run file and lock."""
        return self.path / "run"

    @property
    def token_file(self) -> Path:
        """The file of the bearer token. Only its owner can read it."""
        return self.path / "token"

    @property
    def token_key(self) -> Path:
        """The file of the key with which access tokens are hashed. Only its owner can read it."""
        return self.path / "token-key"

    @property
    def push_key(self) -> Path:
        """The file of the secret from which the key of push notices is derived. Only its owner can read it."""
        return self.path / "push-key"

    @property
    def remotes(self) -> Path:
        """The folder of the remotes whose tools this host uses: a file for each remote, and the certificates of the
        leaf listener.
        """
        return self.path / "remotes"

    @property
    def hub(self) -> Path:
        """The folder of the hub that uses this host's tools: this host's key and the hub's address."""
        return self.path / "hub"

    @property
    def templates(self) -> Path:
        """The folder of the owner's block templates. No agent's tool reaches it."""
        return self.path / "templates"

    @property
    def logs(self) -> Path:
        """The folder of log files."""
        return self.path / "logs"

    def workspace(self, block: str) -> Path:
        """Return the folder in which a block's tools work."""
        return self.workspaces / block

    def prepare(self) -> None:
        """Create the folders, which only the owner can read, and test that they can be written.

        Raises:
            NewerFormatError: a newer version wrote the home; nothing was changed.
            StorageError: a folder cannot be created or written; existing files are not changed.
        """
        require_known_format(self.path)
        for folder in (self.path, self.memory, self.workspaces, self.cache, self.bus, self.run, self.logs):
            make_folder(folder)
        probe = self.run / f"{PROBE}{os.getpid()}"
        with storage_errors(self.run):
            probe.write_bytes(b"x")
            probe.unlink()

    def remove_leftovers(self) -> None:
        """Remove temporary files of processes that were killed. Only the holder of the instance lock may call this
        method.
        """
        for folder in self.path.glob(f"{RESTORING}*"):
            shutil.rmtree(folder, ignore_errors=True)
        for pattern in (".carry-*", ".bring-*", ".transfer-*"):  # archives and documents on their way
            for folder in self.cache.glob(pattern):
                shutil.rmtree(folder, ignore_errors=True)
        for probe in self.run.glob(f"{PROBE}*"):
            probe.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents with mode 0700. An existing folder keeps its mode. Raises StorageError."""
    with storage_errors(folder):
        make_private(folder)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert an ``OSError`` about ``path`` into a ``StorageError`` with the reason and a remedy."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"Cannot write to {path}: {_reason(error)}.", hint=_storage_hint(error)) from error


def _reason(error: OSError) -> str:
    known = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.ENOTDIR: "something on the way is a file, not a folder",
        errno.EEXIST: "a file is in the way",
    }
    return known.get(error.errno or 0) or (error.strerror or type(error).__name__).lower()


def _storage_hint(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space and start again; nothing was half-written."
    return "Make the folder writable for you, or set TRUNKLINE_HOME to another one."
