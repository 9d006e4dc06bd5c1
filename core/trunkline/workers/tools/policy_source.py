"""The sources of the rules for a block's calls: its tool limits, its permission table, and the owner's
policies."""

from typing import Protocol

from msgspec.structs import replace

from trunkline.contracts.policies.messages import PermissionTable
from trunkline.runtime.owner_policies import POLICY_FOLDER, OwnerPolicies, owner_policy_cache
from trunkline.workers.tools.block_tool_limits import BlockToolLimits, block_config_cache
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline_bus import Bus


class PolicySource(Protocol):
    """The rules for calls. Every method except ``wait_for_policies`` raises ToolError when the rules cannot be read;
    the call is then refused.
    """

    async def limits_of(self, block: str) -> BlockToolLimits:
        """Return the tools that a block may use."""
        ...

    async def table_of(self, block: str) -> PermissionTable:
        """Return the block's permission table, completed with the deployment's defaults."""
        ...

    async def owner_policies(self) -> OwnerPolicies:
        """Return the owner's policies."""
        ...

    async def wait_for_policies(self, block: str) -> None:
        """Wait for a limited time while memory is unavailable and the policies of the block were never
        read."""
        ...


class MemoryPolicies:
    """Reads the rules from memory. Call ``open`` before use."""

    def __init__(self, bus: Bus, remotes: RemoteToolIndex, defaults: PermissionTable) -> None:
        self._remotes = remotes
        self._defaults = defaults
        self._blocks = block_config_cache(bus)
        self.owner_cache = owner_policy_cache(bus)
        """The cache of the owner's policies. Code that writes a policy must clear it."""

    async def open(self) -> None:
        """Subscribe to changes of memory."""
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
    """The rules of a remote: its own configuration. The hub has checked its policies before it sends a call."""

    def __init__(self, permissions: PermissionTable) -> None:
        # A remote cannot ask a person: only the hub can (ADR 0009).
        self._table = replace(permissions, approvals="none")

    async def limits_of(self, block: str) -> BlockToolLimits:
        """Return no limits."""
        return BlockToolLimits()

    async def table_of(self, block: str) -> PermissionTable:
        """Return the table of this host's configuration, for every block."""
        return self._table

    async def owner_policies(self) -> OwnerPolicies:
        """Return no policies."""
        return ()

    async def wait_for_policies(self, block: str) -> None:
        """Return at once: nothing is read from memory."""
