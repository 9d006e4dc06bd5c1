"""What stands for every turn of a block until somebody changes it: its tools, its choices, the owner's preferences,
and the files that context sources read."""

import logging
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import msgspec

from trunkline.messages.blocks import BlockConfig, Discovery
from trunkline.messages.memory import UNREADABLE, MemoryFile, ReadManyMemory
from trunkline.messages.tools import ListTools, ToolSpec
from trunkline.runtime.known import Known
from trunkline.seed import is_untouched
from trunkline.subjects import LIST_TOOLS, MEMORY_READ_MANY
from trunkline.toml import read_toml
from trunkline_bus import Bus

log = logging.getLogger(__name__)

S = TypeVar("S", bound=msgspec.Struct)

PATIENCE = 10.0
"""Seconds to wait for another worker's reply before the lane tries the turn again: who had the request may be gone."""

FRESH_FOR = 0.2
"""Seconds for which it is not asked for again. What memory commits counts at once; an edit by hand and another
catalogue of tools, of which nobody tells, after this time."""

PREFERENCES = "preferences.toml"


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's choices that a turn heeds (conflict C37). What is unknown here belongs to others."""

    model: str | None = None
    vision_model: str | None = None
    discovery: Discovery | None = None
    always_send: tuple[str, ...] | None = None


class Tools(msgspec.Struct, frozen=True):
    """A block's tools, and the platform's ``own``. ``version`` is the catalogue's; None before the first."""

    version: str | None = None
    specs: tuple[ToolSpec, ...] = ()
    own: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands for a block. ``files`` are those that context sources name, by the names that they use."""

    tools: Tools
    block: BlockConfig
    preferences: Preferences
    files: Mapping[str, MemoryFile] = field(default_factory=dict)


class Standings:
    """Asks the tools worker and memory, both at once; each once, whatever number of ``files`` is read besides.
    ``open`` before use."""

    def __init__(self, bus: Bus, files: Iterable[str] = ()) -> None:
        self._bus = bus
        self._files = tuple(dict.fromkeys(files))
        self._tools: dict[str, Tools] = {}
        self._known = Known(bus, self._ask, counts=self._counts, fresh_for=FRESH_FOR)
        self.open = self._known.open
        self.close = self._known.close

    async def of(self, block: str) -> Standing:
        """What stands for a block. Raises BusError when a worker does not answer for PATIENCE seconds."""
        return await self._known.of(block)

    async def _ask(self, block: str) -> Standing:
        files: dict[str, MemoryFile] = {}
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._load_tools, block)
                tasks.start_soon(self._load_files, block, files)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        return Standing(
            tools=self._tools[block],
            block=_decoded(BlockConfig, files.get(_block_file(block))),
            preferences=_decoded(Preferences, files.get(PREFERENCES)),
            files={name: file for name in self._files if (file := _said(files.get(_place(block, name))))},
        )

    async def _load_tools(self, block: str) -> None:
        known = self._tools.setdefault(block, Tools())
        wish = ListTools(block=block, version=known.version)
        found = await self._bus.call(LIST_TOOLS, wish, timeout=PATIENCE, repeatable=True)
        if found.tools is not None:
            self._tools[block] = Tools(found.version, found.tools, found.own)

    async def _load_files(self, block: str, files: dict[str, MemoryFile]) -> None:
        named = (_place(block, name) for name in self._files)
        wish = ReadManyMemory(paths=(PREFERENCES, _block_file(block), *named))
        found = await self._bus.call(MEMORY_READ_MANY, wish, timeout=PATIENCE, repeatable=True)
        files.update({file.path: file for file in found.files})

    def _counts(self, path: str) -> bool:
        """Whether a change of this file changes what stands."""
        if path == PREFERENCES or path.rpartition("/")[2] == "block.toml":
            return True
        inside = path.removeprefix("blocks/").partition("/")[2]
        return f"/{path}" in self._files or (path.startswith("blocks/") and inside in self._files)


def _block_file(block: str) -> str:
    """Where a block's configuration lies in memory."""
    return f"blocks/{block}/block.toml"


def _place(block: str, name: str) -> str:
    """Where a file lies that is named as ``Memory`` names files."""
    return name[1:] if name.startswith("/") else f"blocks/{block}/{name}"


def _said(file: MemoryFile | None) -> MemoryFile | None:
    """The file, if somebody wrote in it: it is there, it is text, and it is not as memory began with it."""
    if file is None or file.content == UNREADABLE or is_untouched(file.path, file.content):
        return None
    return file


def _decoded(type: type[S], file: MemoryFile | None) -> S:
    """The file's settings; a file that cannot be read is a reported gap, not an error (PA-F43)."""
    if file is None:
        return type()
    try:
        return msgspec.convert(read_toml(file.content), type)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        log.warning("%s is not usable and is left out of account: %s", file.path, error)
        return type()
