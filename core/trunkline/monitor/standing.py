"""What stands for every turn of a block until somebody changes it: its tools, its choices, the owner's preferences."""

import logging
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import anyio
import msgspec

from trunkline.messages.blocks import BlockConfig
from trunkline.messages.memory import MemoryFile, ReadManyMemory
from trunkline.messages.tools import ListTools, ToolSchema, ToolSpec
from trunkline.runtime.known import Known
from trunkline.subjects import LIST_TOOLS, MEMORY_READ_MANY
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


class Tools:
    """A block's tools. ``version`` is the catalogue's; None before the first."""

    def __init__(self, version: str | None = None, specs: tuple[ToolSpec, ...] = ()) -> None:
        self.version = version
        self._specs = specs

    @cached_property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What a model is offered."""
        return tuple(spec.schema for spec in self._specs)


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands for a block."""

    tools: Tools
    block: BlockConfig
    preferences: Preferences


class Standings:
    """Asks the tools worker and memory, both at once. ``open`` before use."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._tools: dict[str, Tools] = {}
        self._known = Known(bus, self._ask, counts=_is_choice, fresh_for=FRESH_FOR)
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
        )

    async def _load_tools(self, block: str) -> None:
        known = self._tools.setdefault(block, Tools())
        wish = ListTools(block=block, version=known.version)
        found = await self._bus.call(LIST_TOOLS, wish, timeout=PATIENCE, repeatable=True)
        if found.tools is not None:
            self._tools[block] = Tools(found.version, found.tools)

    async def _load_files(self, block: str, files: dict[str, MemoryFile]) -> None:
        wish = ReadManyMemory(paths=(PREFERENCES, _block_file(block)))
        found = await self._bus.call(MEMORY_READ_MANY, wish, timeout=PATIENCE, repeatable=True)
        files.update({file.path: file for file in found.files})


def _block_file(block: str) -> str:
    """Where a block's configuration lies in memory."""
    return f"blocks/{block}/block.toml"


def _is_choice(path: str) -> bool:
    return path == PREFERENCES or path.rpartition("/")[2] == "block.toml"


def _decoded(type: type[S], file: MemoryFile | None) -> S:
    """The file's settings; a file that cannot be read is a reported gap, not an error (PA-F43)."""
    if file is None:
        return type()
    try:
        return msgspec.convert(tomllib.loads(file.content), type)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        log.warning("%s is not usable and is left out of account: %s", file.path, error)
        return type()
