"""Plugins that are one file in a folder of ``runtime.tool_sources``. Files are added and removed without a restart."""

import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path

from trunkline.errors import PluginError


def plugin_files(folder: Path) -> list[Path]:
    """Return the plugin files of a folder, by name. Files whose names begin with ``_`` or ``.`` are not plugins."""
    return [Path(entry.path) for entry in _entries(folder)]


def folders_stamp(folders: Iterable[Path]) -> str:
    """Return a stamp of the folders' plugin files. It changes when a file is added, removed or written.

    Each tool call computes the stamp, so for speed no ``Path`` objects are created.
    """
    stamp = hashlib.sha256()
    for folder in folders:
        for file in _entries(folder):
            try:
                status = file.stat()
            except FileNotFoundError:
                continue
            stamp.update(f"{file.path}\0{status.st_mtime_ns}\0{status.st_size}\0{status.st_ino}\n".encode())
    return stamp.hexdigest()[:16]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            named = [one for one in found if one.name.endswith(".py") and one.name[0] not in "_."]
            return sorted(filter(_is_file, named), key=lambda one: one.name)
    except OSError:  # a missing or unreadable folder is reported when plugins are loaded
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a circular link does not affect the other files
        return False


def file_loader(file: Path) -> Callable[[], types.ModuleType]:
    """Return a loader that runs the file from its source as a module with a private name. It never reads a ``.pyc``."""

    def load() -> types.ModuleType:
        module = types.ModuleType(
            f"_trunkline_file_{hashlib.sha256(bytes(file)).hexdigest()[:12]}_{file.stem}"
        )
        module.__file__ = str(file)
        code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
        sys.modules[module.__name__] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            sys.modules.pop(module.__name__, None)
            raise
        return module

    return load


def missing_folder_loader(folder: Path) -> Callable[[], object]:
    """Return a loader that fails because its folder does not exist."""

    def load() -> object:
        raise PluginError(
            f"{folder} is not a folder.", hint="Create it, or remove it from runtime.tool_sources."
        )

    return load


def writable_folder_of(file: Path, writable: Iterable[Path]) -> Path | None:
    """Return the folder that agents can write to and that contains the file, or None. Code in such a folder is not
    trusted.
    """
    real = file.resolve()
    return next((folder for folder in writable if real.is_relative_to(folder.resolve())), None)
