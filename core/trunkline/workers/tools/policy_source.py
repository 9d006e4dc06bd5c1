"""What the calls of a block are judged by: its tool limits, its permission table, and the owner's policies."""

from typing import Protocol

from msgspec.structs import replace

from trunkline.contracts.policies.messages import PermissionTable
from trunkline.workers.tools.block_tool_limits import BlockToolLimits, block_config_cache
from trunkline.workers.tools.owner_policies import POLICY_FOLDER, OwnerPolicies, owner_policy_cache
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline_bus import Bus


class PolicySource(Protocol):
    """Each method but ``wait_for_policies`` raises ToolError when its answer cannot be known. The call is refused
    then."""

    async def limits_of(self, block: str) -> BlockToolLimits:
        """The tools that a block may use."""
        ...

    async def table_of(self, block: str) -> PermissionTable:
        """The block's permission table, with the deployment's values where it has none."""
        ...

    async def owner_policies(self) -> OwnerPolicies:
        """The owner's policies."""
        ...

    async def wait_for_policies(self, block: str) -> None:
        """Wait for a limited time while memory is away and the policies of the block were never read."""
        ...


class MemoryPolicies:
    """Reads them from memory. Call ``open`` before use."""

    def __init__(self, bus: Bus, remotes: RemoteToolIndex, defaults: PermissionTable) -> None:
        self._remotes = remotes
        self._defaults = defaults
        self._blocks = block_config_cache(bus)
        self.owner_cache = owner_policy_cache(bus)
        """The owner's policies by folder. Whoever writes a policy invalidates it."""

    async def open(self) -> None:
        """Listen for changes of memory from now on."""
        await self._blocks.open()
        await self.owner_cache.open()

    def close(self) -> None:
        """Stop watching for reconnections."""
        self._blocks.close()
        self.owner_cache.close()

    async def limits_of(self, block: str) -> BlockToolLimits:
        """See ``PolicySource.limits_of``. Raises BrokenBlockConfig when the block's file is not valid."""
        names = (await self._blocks.get(block)).tools
        return BlockToolLimits(
            None if names is None else frozenset(names), self._remotes.allowed_for(block), block
        )

    async def table_of(self, block: str) -> PermissionTable:
        """See ``PolicySource.table_of``."""
        return (await self._blocks.get(block)).permissions.with_defaults(self._defaults)

    async def owner_policies(self) -> OwnerPolicies:
        """See ``PolicySource.owner_policies``."""
        return await self.owner_cache.get(POLICY_FOLDER)

    async def wait_for_policies(self, block: str) -> None:
        """See ``PolicySource.wait_for_policies``."""
        await self._blocks.wait_until_known(block)
        await self.owner_cache.wait_until_known(POLICY_FOLDER)


class HostPolicies:
    """What a remote judges calls by: its own configuration. The hub has checked the rest, in its memory."""

    def __init__(self, permissions: PermissionTable) -> None:
        # A question of this host would reach nobody: people are asked at the hub (ADR 0009).
        self._table = replace(permissions, approvals="none")

    async def limits_of(self, block: str) -> BlockToolLimits:
        """No limits."""
        return BlockToolLimits()

    async def table_of(self, block: str) -> PermissionTable:
        """The table of this host's configuration, for every block."""
        return self._table

    async def owner_policies(self) -> OwnerPolicies:
        """No policies."""
        return ()

    async def wait_for_policies(self, block: str) -> None:
        """Returns at once: nothing is read from memory."""
