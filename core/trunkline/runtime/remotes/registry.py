"""The registry of remotes: one file per remote in the home's ``remotes`` folder. A person can read and edit the files.

The files are in the home and not in memory, because agents can write memory, and a file that an agent can write must
not decide which hosts the agent reaches.
"""

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from trunkline._util.private_folders import make_private
from trunkline._util.regular_file import read_regular
from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.paths import is_block_name
from trunkline.errors import ConfigError
from trunkline.runtime.remotes.nkeys import is_public_key

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,14}[a-z0-9])?")
SEPARATOR = "__"
"""The separator between a remote's name and its tool's: ``laptop__read_file``. Remotes' names contain no
underscore."""

RegistryStamp = tuple[tuple[str, int, int], ...]


class Remote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An enrolled host. ``key`` is its public key; ``blocks`` are the blocks whose agents may use the host's tools."""

    name: str
    key: str
    blocks: tuple[str, ...]
    enrolled_at: datetime


class RemoteRegistry:
    """The remotes of one home. The files are read again whenever they change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark: RegistryStamp | None = None
        self._remotes: tuple[Remote, ...] = ()

    def all(self) -> tuple[Remote, ...]:
        """Return every remote, by name.

        Raises:
          ConfigError: a file is not valid. The host of an invalid file is not admitted.
        """
        mark = self.stamp()
        if mark != self._mark:
            self._remotes = tuple(_read(file) for file in self._files())
            self._mark = mark
        return self._remotes

    def find(self, name: str) -> Remote | None:
        """Return the remote of that name, or None."""
        return next((remote for remote in self.all() if remote.name == name), None)

    def stamp(self) -> RegistryStamp:
        """Return a value that changes whenever the files do."""
        return tuple(_stamps(self._files()))

    def add(self, remote: Remote) -> None:
        """Add a remote. Return after the remote is on disk. Raises ConfigError when the name is taken."""
        make_private(self.folder)
        file = self._file(remote.name)
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
                target.write(_written(remote))
                target.flush()
                os.fsync(target.fileno())
        except FileExistsError as error:
            raise ConfigError(
                f"There is a remote called {remote.name} already.",
                hint=f'Choose another name, or "trunkline remote revoke {remote.name}" first.',
            ) from error

    def remove(self, name: str) -> None:
        """Remove a remote. Raises ConfigError when there is none of that name."""
        check_name(name)
        try:
            self._file(name).unlink()
        except FileNotFoundError as error:
            raise ConfigError(
                f"There is no remote called {name}.", hint="See: trunkline remote list"
            ) from error

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.toml"))


def check_name(name: str) -> str:
    """Return the name when it is valid. Raises ConfigError."""
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name!r} cannot be a remote's name.",
            hint="Use 1 to 16 of a-z, 0-9 and -, as in laptop or build-2.",
        )
    return name


def _read(file: Path) -> Remote:
    try:
        remote = read_settings(str(file), read_regular(file).decode("utf-8"), Remote)
    except (OSError, SettingsFileError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be used: {error}", hint="Correct it, or delete it and invite again."
        ) from error
    wrong = [block for block in remote.blocks if not is_block_name(block)]
    if (
        remote.name != file.stem
        or NAME.fullmatch(remote.name) is None
        or not is_public_key(remote.key)
        or wrong
    ):
        raise ConfigError(
            f"{file} cannot be used: its name, key or blocks are not valid.",
            hint="Correct it, or delete it and invite again.",
        )
    return remote


def _written(remote: Remote) -> str:
    blocks = ", ".join(f'"{block}"' for block in remote.blocks)
    return (
        f'# Let in by "trunkline remote invite". Deleting this file, or "trunkline remote revoke", shuts it out.\n'
        f'name = "{remote.name}"\nkey = "{remote.key}"\n'
        f"# The blocks whose agents may use its tools.\nblocks = [{blocks}]\n"
        f"enrolled_at = {remote.enrolled_at.isoformat(timespec='seconds')}\n"
    )


def _stamps(files: list[Path]) -> Iterator[tuple[str, int, int]]:
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        yield file.name, status.st_ino, status.st_mtime_ns
