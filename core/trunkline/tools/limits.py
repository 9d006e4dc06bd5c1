"""Which tools a block may use: the ``tools`` line of its ``block.toml`` (read through memory, never from the disk).

It is enforced here and not by the asker, because every call must pass policy in the tools worker. What is known of a
block is kept until memory tells of a change; a block whose limits cannot be read has no tools: guards fail closed.
"""

import logging
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import msgspec

from trunkline.errors import ToolError
from trunkline.messages.blocks import BlockConfig
from trunkline.messages.memory import MemoryChanged, ReadMemory
from trunkline.messages.tools import REMOTE_SOURCE, ToolSpec
from trunkline.subjects import MEMORY_CHANGED, MEMORY_READ
from trunkline_bus import Bus, BusError, Received, RemoteFault

log = logging.getLogger(__name__)

FRESH_FOR = 30.0
"""Seconds after which what is known is read again, in case a change was missed."""

STALE_FOR = 300.0
"""Seconds for which the last known limits still count while memory does not answer."""

PATIENCE = 5.0


class BrokenLimits(ToolError):
    """The block's ``block.toml`` is there and cannot be used; waiting does not help."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A block's limits: the names it may use, or None for all, and the remotes whose tools may be among them."""

    names: frozenset[str] | None = None
    remotes: frozenset[str] = frozenset()

    def allow(self, spec: ToolSpec) -> bool:
        """Whether the block may use the tool."""
        if spec.away and spec.source.removeprefix(REMOTE_SOURCE) not in self.remotes:
            return False
        return self.names is None or spec.name in self.names


class BlockLimits:
    """Reads and remembers limits. ``open`` before use."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[str, tuple[float, Limits]] = {}
        self._changes = 0
        self._undo: Callable[[], None] | None = None

    async def open(self) -> None:
        """Listen for changes from now on."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1, part="files")
        self._undo = self._bus.on_reconnect(self._forget)

    def close(self) -> None:
        """Stop watching for reconnections; the subscription ends with the bus."""
        if self._undo is not None:
            self._undo()

    async def of(self, block: str) -> Limits:
        """The limits of a block.

        Raises:
            BrokenLimits: the block has none that can be used, and so no tools.
            ToolError: they cannot be known now.
        """
        at, known = self._known.get(block, (-STALE_FOR, None))
        age = anyio.current_time() - at
        if known is not None and age < FRESH_FOR:
            return known
        changes = self._changes
        try:
            limits = await self._read(block)
        except BusError as error:
            if known is not None and age < STALE_FOR:
                return known
            log.error("the limits of block %s cannot be read: %s", block, error)
            raise ToolError("Which tools this block may use cannot be read now. Try again later.") from error
        if changes == self._changes:
            self._known[block] = (anyio.current_time(), limits)
        return limits

    async def _read(self, block: str) -> Limits:
        try:
            file = await self._bus.call(MEMORY_READ, ReadMemory(path=_file(block)), timeout=PATIENCE)
        except RemoteFault as fault:
            if fault.code == "not_found":
                return Limits()
            if fault.code == "invalid_path":
                raise _broken(block, fault) from fault
            raise
        return _limits(block, file.content)

    async def _changed(self, message: Received[MemoryChanged]) -> None:
        if any(path.endswith("block.toml") for path in message.data.paths):
            await self._forget()

    async def _forget(self) -> None:
        """Look again at the next use; what was known stays usable while memory does not answer."""
        self._changes += 1
        now = anyio.current_time()
        self._known = {
            block: (min(at, now - FRESH_FOR), limits) for block, (at, limits) in self._known.items()
        }


def _file(block: str) -> str:
    return f"blocks/{block}/block.toml"


def _limits(block: str, text: str) -> Limits:
    try:
        config = msgspec.convert(tomllib.loads(text), BlockConfig)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _broken(block, error) from error
    return Limits(None if config.tools is None else frozenset(config.tools))


def _broken(block: str, error: Exception) -> BrokenLimits:
    log.error("%s is not valid: %s", _file(block), error)
    return BrokenLimits(
        "This block's block.toml is not valid, so none of its tools may be used until a person mends it."
    )
