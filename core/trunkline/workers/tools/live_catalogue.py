"""The current catalogue. It is rebuilt whenever a folder in ``tool_sources`` changes (SWAP-3).

``*.py``
    a plugin in one file, loaded by ``trunkline.plugins``. Its tools and guards come and go with the file.
``tool.json``, also one folder down
    a program with its definition, run in the sandbox; see ``tool_manifest.py``.

Broken files are logged and left out; removed files lose their tools.
"""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from trunkline.config import Config
from trunkline.contracts.tools.tool import Tool
from trunkline.errors import PluginError
from trunkline.plugins import OwnedItem, Plugins
from trunkline.workers.tools.catalogue import PLATFORM_OWNER, Catalogue
from trunkline.workers.tools.dispatch import Dispatch, Guard
from trunkline.workers.tools.isolated_tools import IsolatedToolIndex
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline.workers.tools.tool_manifest import load_manifest_tool
from trunkline.workers.tools.tool_sources import ToolSourceRunner, with_distinct_names, without_alias_clashes

log = logging.getLogger(__name__)

MANIFEST_FILE = "tool.json"
T = TypeVar("T")
FILE_OWNER_PREFIX = "file:"
"""The prefix of the owner of a file plugin."""

ManifestStamp = tuple[Path, int, int, int]
"""The state of a manifest file: its path, inode, size, and modification time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class ToolSupply:
    """The origins of tools: the worker's plugins, its configuration (for ``tool_sources``), the built-in guards, the
    tools of isolated plugins, the tools of tool sources, and the platform's ``own`` tools.
    """

    plugins: Plugins
    config: Config
    built_in: tuple[Guard, ...]
    isolated: IsolatedToolIndex
    sources: ToolSourceRunner
    own: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangingTools:
    """The tools that change while the worker runs, as they were at ``versions``."""

    versions: tuple[int, int, int]
    isolated: tuple[OwnedItem[Tool], ...]
    sources: tuple[OwnedItem[Tool], ...]
    remote: tuple[OwnedItem[Tool], ...]


class LiveCatalogue:
    """Keeps the catalogue, and builds a new one when the tool sources or the tools of remotes change."""

    def __init__(self, supply: ToolSupply, remotes: RemoteToolIndex) -> None:
        self._supply = supply
        self._remotes = remotes
        self._folders = supply.config.settings.runtime.tool_sources
        self._files = supply.plugins
        self._lock = anyio.Lock()
        changing = self._changing_tools()
        self._versions, self._stamps = changing.versions, tuple(_manifest_stamps(self._folders))
        self._catalogue = self._build(changing, self._stamps, self._files)

    async def current(self) -> Catalogue:
        """Return the current tools and guards. Waits for a rebuild that is due, and for the first tools of sources."""
        await self._supply.sources.settle()
        if self._is_stale():
            async with self._lock:
                if self._is_stale():
                    # The tools and their versions are read together, on the event loop: a change during the rebuild
                    # makes the new catalogue stale, and the next caller rebuilds it.
                    await anyio.to_thread.run_sync(self._renew, self._changing_tools())
        return self._catalogue

    def _current_versions(self) -> tuple[int, int, int]:
        return self._supply.isolated.version, self._supply.sources.version, self._remotes.version

    def _changing_tools(self) -> ChangingTools:
        return ChangingTools(
            versions=self._current_versions(),
            isolated=tuple(self._supply.isolated.tools()),
            sources=tuple(self._supply.sources.tools()),
            remote=tuple(self._remotes.tools()),
        )

    def _is_stale(self) -> bool:
        if self._current_versions() != self._versions:
            return True
        return bool(self._folders) and (
            self._files.is_outdated() or tuple(_manifest_stamps(self._folders)) != self._stamps
        )

    def _renew(self, changing: ChangingTools) -> None:
        """Rebuild the catalogue. After a failure the former catalogue is used until the next change.

        Until the new catalogue is in place the former one stays stale, so that callers during the rebuild wait for it.
        """
        stamps, files = tuple(_manifest_stamps(self._folders)), self._files
        try:
            if self._folders and files.is_outdated():
                files = Plugins.load(self._supply.config)
            self._catalogue = self._build(changing, stamps, files)
        finally:
            self._files, self._versions, self._stamps = files, changing.versions, stamps

    def _build(self, changing: ChangingTools, stamps: Sequence[ManifestStamp], files: Plugins) -> Catalogue:
        fixed = self._supply.plugins
        guards = _merge_owned(fixed.tool_middleware(), files.tool_middleware())
        tools = _merge_owned(fixed.tools(), files.tools())
        owned = (Guard(one.owner, one.item) for one in guards)
        dispatch = Dispatch((*self._supply.built_in, *owned), fixed.record_activity)
        isolated = without_alias_clashes(tools, changing.isolated)
        own = (OwnedItem(PLATFORM_OWNER, tool) for tool in self._supply.own)
        tools_in_order = (*own, *tools, *isolated, *_programs(stamps), *changing.remote)
        return Catalogue((*tools_in_order, *with_distinct_names(tools_in_order, changing.sources)), dispatch)


def _programs(stamps: Sequence[ManifestStamp]) -> Iterator[OwnedItem[Tool]]:
    for file, *_ in stamps:
        try:
            yield OwnedItem(f"{FILE_OWNER_PREFIX}{file}", load_manifest_tool(file))
        except PluginError as error:
            log.error("a tool is left out: %s", error)


def _merge_owned(fixed: Sequence[OwnedItem[T]], files: Sequence[OwnedItem[T]]) -> list[OwnedItem[T]]:
    """Return the items of installed plugins as first loaded, and the items of file plugins as they are now."""
    kept = [owned for owned in fixed if not owned.owner.startswith(FILE_OWNER_PREFIX)]
    return kept + [owned for owned in files if owned.owner.startswith(FILE_OWNER_PREFIX)]


def find_manifests(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the manifests of tools in the tool sources, readable or not."""
    return tuple(file for file, *_ in _manifest_stamps(folders))


def _manifest_stamps(folders: Sequence[Path]) -> Iterator[ManifestStamp]:
    for folder in folders:
        for subfolder in (str(folder), *_folders_in(folder)):
            file = Path(subfolder, MANIFEST_FILE)
            try:
                status = file.stat()
            except OSError:
                continue
            yield file, status.st_ino, status.st_size, status.st_mtime_ns


def _folders_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return sorted(one.path for one in found if _is_folder(one))
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link affects only its own folder
        return False
