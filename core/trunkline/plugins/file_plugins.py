"""Plugins that are one file in a folder of ``runtime.tool_sources``: drop one in, take one out, no restart."""

import hashlib
import os
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path

from trunkline.errors import PluginError


def plugin_files(folder: Path) -> list[Path]:
    """The plugin files of a folder, by name; those that begin with ``_`` or ``.`` are not plugins."""
    return [Path(entry.path) for entry in _entries(folder)]


def folders_stamp(folders: Iterable[Path]) -> str:
    """A stamp of the folders' plugin files that changes when one is added, removed or written.

    It is taken before every tool call, so no path is made for it.
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
    except OSError:  # no folder, or none to look into: said where plugins are loaded
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads round in a circle takes nothing from the files beside it
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
            f"{folder} is not a folder.", hint="Make it, or take it out of runtime.tool_sources."
        )

    return load


def writable_folder_of(file: Path, writable: Iterable[Path]) -> Path | None:
    """The folder that agents write to and that holds the file, if there is one: code there is not to be trusted."""
    real = file.resolve()
    return next((folder for folder in writable if real.is_relative_to(folder.resolve())), None)
