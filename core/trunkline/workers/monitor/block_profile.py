"""The profile of a block: the data that all turns of the block use. A profile contains the tools, the block's settings,
the owner's preferences, and the files that context sources read."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import msgspec

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.model_choice import CHAT, preferred_model
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_file_path, is_block_file
from trunkline.contracts.blocks.preferences import PREFERENCES, Preferences
from trunkline.contracts.memory.cache import MemoryCache
from trunkline.contracts.memory.files import UNREADABLE, MemoryFile, ReadManyMemory
from trunkline.contracts.memory.initial_files import INSTRUCTIONS, is_untouched
from trunkline.contracts.memory.paths import root_path
from trunkline.contracts.memory.subjects import MEMORY_READ_MANY
from trunkline.contracts.tools.messages import ListTools, ToolCatalogue, ToolSchema, ToolSpec
from trunkline.contracts.tools.subjects import LIST_TOOLS
from trunkline.errors import ErrorCode, ModelError
from trunkline.workers.monitor.tool_schema import compact_schema
from trunkline.workers.monitor.tool_selection import unknown_tool_names
from trunkline_bus import Bus

log = logging.getLogger(__name__)

S = TypeVar("S", bound=msgspec.Struct)

REPLY_TIMEOUT = 10.0
"""Seconds to wait for another worker's reply before the queue tries the turn again; the worker may have
crashed."""

FRESH_SECONDS = 0.2
"""Seconds for which a profile is cached. Commits of memory invalidate it at once. Edits by hand and changes
of the tool catalogue are not announced, so they take effect after this time."""


@dataclass(frozen=True, slots=True)
class BlockTools:
    """The tools of a block, and the platform's ``own`` tools.

    ``version`` is the version of the catalogue; None before the first catalogue. ``restricted`` are the names of the
    tools that the block may not use. ``schemas`` maps each name to the definition that models receive.
    """

    version: str | None = None
    specs: tuple[ToolSpec, ...] = ()
    own: tuple[ToolSpec, ...] = ()
    restricted: frozenset[str] = frozenset()
    schemas: Mapping[str, ToolSchema] = field(default_factory=dict)

    @classmethod
    def from_catalogue(cls, catalogue: ToolCatalogue) -> "BlockTools":
        """Return the tools of a received catalogue."""
        specs = catalogue.tools or ()
        schemas = {spec.name: compact_schema(spec) for spec in (*specs, *catalogue.own)}
        return cls(catalogue.version, specs, catalogue.own, frozenset(catalogue.restricted), schemas)


@dataclass(frozen=True, slots=True)
class BlockProfile:
    """The profile of a block.

    ``files`` maps the names that context sources use to the files. ``problem`` describes the first file of
    the block or the owner that cannot be read, "" when all can. ``exists`` is whether the block has a
    ``block.toml``; without one it has default settings.
    """

    tools: BlockTools
    block: BlockConfig
    preferences: Preferences
    files: Mapping[str, MemoryFile] = field(default_factory=dict)
    problem: str = ""
    exists: bool = True

    def preferred_model(
        self, requested: str | None, purpose: str = CHAT, chosen: str | None = None
    ) -> str | None:
        """Return the preferred model: the one that the request names, else that of the settings for the purpose, where
        ``chosen`` is the conversation's (``model_choice``); None without any.

        Raises:
          ModelError: a file that may name the model cannot be read, so no model is sent the text.
        """
        self.raise_if_unreadable()
        return requested or preferred_model(purpose, self.block, self.preferences, chosen).model

    def raise_if_unreadable(self) -> None:
        """Raise ModelError when the chosen models are unknown because a file cannot be read."""
        if self.problem:
            raise ModelError(ErrorCode.NOT_SENT, "refused", f"No model was called. {self.problem}")

    @property
    def always_send(self) -> tuple[str, ...] | None:
        """The tools that the model is always shown: by the block's setting, else by the owner's for all
        blocks."""
        return self.preferences.always_send if self.block.always_send is None else self.block.always_send


class BlockProfileCache:
    """Loads profiles from the tools worker and memory concurrently, with one request to each. Call ``open``
    before use."""

    def __init__(self, bus: Bus, files: Iterable[str] = ()) -> None:
        self._bus = bus
        self._files = tuple(dict.fromkeys(files))
        self._tools: dict[str, BlockTools] = {}
        self._logged_missing: dict[str, tuple[str, ...]] = {}
        self._cache = MemoryCache(bus, self._load, counts=self._is_relevant, fresh_for=FRESH_SECONDS)
        self.open = self._cache.open
        self.close = self._cache.close

    async def get(self, block: str) -> BlockProfile:
        """Return the profile of a block. Raises BusError when a worker does not answer within REPLY_TIMEOUT
        seconds."""
        return await self._cache.get(block)

    async def _load(self, block: str) -> BlockProfile:
        files: dict[str, MemoryFile] = {}
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._load_tools, block)
                tasks.start_soon(self._load_files, block, files)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        own, block_problem = _decoded(BlockConfig, files.get(block_file_path(block)))
        preferences, problem = _decoded(Preferences, files.get(PREFERENCES))
        profile = BlockProfile(
            tools=self._tools[block],
            block=own,
            preferences=preferences,
            problem=block_problem or problem or self._unreadable_problem(block, files),
            exists=block_file_path(block) in files,
            files={
                name: file for name in self._files if (file := _non_empty(files.get(root_path(block, name))))
            },
        )
        self._log_unknown_tools(block, profile)
        return profile

    def _unreadable_problem(self, block: str, files: Mapping[str, MemoryFile]) -> str:
        """Return the problem of the first context file that exists and cannot be read: it may contain the
        owner's prohibitions."""
        found = (files.get(root_path(block, name)) for name in self._files)
        return next((file.unread for file in found if file is not None and file.unread), "")

    def _log_unknown_tools(self, block: str, profile: BlockProfile) -> None:
        """Log once which names in ``always_send`` match no tool."""
        tools = profile.tools
        missing = unknown_tool_names(profile.always_send or (), tools.specs, tools.own)
        if missing != self._logged_missing.get(block, ()):
            self._logged_missing[block] = missing
            if missing:
                log.warning(
                    "always_send of block %s names tools that do not exist: %s", block, ", ".join(missing)
                )

    async def _load_tools(self, block: str) -> None:
        known = self._tools.setdefault(block, BlockTools())
        request = ListTools(block=block, version=known.version)
        found = await self._bus.call(LIST_TOOLS, request, timeout=REPLY_TIMEOUT, repeatable=True)
        if found.tools is not None:
            self._tools[block] = BlockTools.from_catalogue(found)

    async def _load_files(self, block: str, files: dict[str, MemoryFile]) -> None:
        named = (root_path(block, name) for name in self._files)
        request = ReadManyMemory(paths=tuple(dict.fromkeys((PREFERENCES, block_file_path(block), *named))))
        found = await self._bus.call(MEMORY_READ_MANY, request, timeout=REPLY_TIMEOUT, repeatable=True)
        files.update({file.path: file for file in found.files})

    def _is_relevant(self, path: str) -> bool:
        """Report whether a change of this file changes a profile."""
        if path == PREFERENCES or is_block_file(path):
            return True
        inside = path.removeprefix(f"{BLOCKS_FOLDER}/").partition("/")[2]
        return f"/{path}" in self._files or (path.startswith(f"{BLOCKS_FOLDER}/") and inside in self._files)


def _non_empty(file: MemoryFile | None) -> MemoryFile | None:
    """Return the file if it is text and contains instructions or something that a person wrote, else None."""
    if file is None or file.content == UNREADABLE:
        return None
    return file if file.path == INSTRUCTIONS or not is_untouched(file.path, file.content) else None


def _decoded(kind: type[S], file: MemoryFile | None) -> tuple[S, str]:
    """Return the file's settings and its problem. A file that cannot be read has default settings."""
    if file is None:
        return kind(), ""
    if file.unread:
        return kind(), file.unread
    try:
        return read_settings(file.path, file.content, kind), ""
    except SettingsFileError as error:
        return kind(), str(error)
