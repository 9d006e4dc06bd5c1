"""The tools that a block may use: the ``tools`` setting of its ``block.toml``, read through memory and never from the
disk.

The tools worker enforces the setting, because every call passes its policy stage. A block whose file cannot be read
has no tools: guards fail closed.
"""

import logging
from dataclasses import dataclass

from trunkline._util.toml import SettingsFileError, read_settings
from trunkline.contracts.blocks.messages import BlockConfig
from trunkline.contracts.blocks.paths import block_file_path, is_block_file
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.subjects import MEMORY_READ
from trunkline.contracts.tools.messages import PLATFORM_SOURCE, REMOTE_SOURCE, ToolSpec
from trunkline.errors import ToolError, ToolErrorKind
from trunkline.runtime.guard_cache import GuardCache
from trunkline_bus import Bus, RemoteFault

log = logging.getLogger(__name__)

TIMEOUT = 5.0


class BrokenBlockConfig(ToolError):
    """The block's ``block.toml`` exists and is not valid. A retry does not help."""

    kind: ToolErrorKind = "unsupported"


@dataclass(frozen=True, slots=True)
class BlockToolLimits:
    """The limits of a block: the names of the tools that it may use, or None for all; the remotes whose tools it may
    use; and the block's name, for tools that only certain blocks have.
    """

    names: frozenset[str] | None = None
    remotes: frozenset[str] = frozenset()
    block: str = ""

    def allow(self, spec: ToolSpec) -> bool:
        """Report whether the block may use the tool."""
        if spec.blocks and self.block not in spec.blocks:
            return False
        if spec.is_remote and spec.source.removeprefix(REMOTE_SOURCE) not in self.remotes:
            return False
        return self.names is None or spec.name in self.names or (bool(self.names) and _is_platform_tool(spec))


def _is_platform_tool(spec: ToolSpec) -> bool:
    """Report whether the tool is the platform's own. A block that may use at least one tool may also use these, since
    they support the others.
    """
    return spec.source == PLATFORM_SOURCE


def block_config_cache(bus: Bus) -> GuardCache[BlockConfig]:
    """Return a cache of the ``block.toml`` of every block. It raises BrokenBlockConfig for a file that is not valid."""

    async def read(block: str) -> BlockConfig:
        try:
            file = await bus.call(MEMORY_READ, ReadMemory(path=block_file_path(block)), timeout=TIMEOUT)
        except RemoteFault as fault:
            if fault.code == "not_found":
                return BlockConfig()
            if fault.code == "invalid_path":
                raise _broken(block, fault) from fault
            raise
        return _config(block, file.content)

    unknown = "The tools that this block may use cannot be read now."
    return GuardCache(bus, read, counts=is_block_file, unknown=unknown)


def _config(block: str, text: str) -> BlockConfig:
    try:
        return read_settings(block_file_path(block), text, BlockConfig)
    except SettingsFileError as error:
        raise _broken(block, error) from error


def _broken(block: str, error: Exception) -> BrokenBlockConfig:
    log.error("block %s may use no tool: %s", block, error)
    return BrokenBlockConfig(
        f"This block's block.toml is not valid, so the block may use no tools until a person repairs it. {error}"
    )
