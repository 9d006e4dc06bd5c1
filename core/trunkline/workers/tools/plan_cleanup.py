"""Deletes the plan mode policies of deleted conversations. They apply as long as the conversation may exist.

Only files that the platform wrote are deleted; the owner's policies are never changed.
"""

import logging
from datetime import UTC, datetime, timedelta

import anyio

from trunkline.contracts.memory.files import DeleteMemory, ListMemory, MemoryFile
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_LIST
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import ToolError
from trunkline.runtime.owner_policies import POLICY_FOLDER, read_policy_files, require_policy
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.planning import MEMORY_TIMEOUT, PLATFORM_ACTOR, POLICY_ID_PREFIX
from trunkline_bus import Bus, BusError, RemoteFault

log = logging.getLogger(__name__)

SWEEP_SECONDS, AGAIN_SECONDS = 3_600.0, 30.0
"""Seconds between two sweeps, and after a sweep for which memory did not answer."""

GRACE = timedelta(days=366)
"""The time for which memory may lack a planning conversation: its first turn may wait for a person, as long
as the owner lets questions wait."""

ARCHIVE_FOLDER = "archive"
"""The folder of archived blocks. The folder of each begins with the block's name and an underscore."""


class PlanCleanup:
    """Sweeps the policies of plan mode. Several tools workers may sweep concurrently: each file is deleted once."""

    def __init__(self, bus: Bus, ancestry: ConversationAncestry) -> None:
        self._bus = bus
        self._ancestry = ancestry

    async def run(self) -> None:
        """Sweep now and every hour, until cancelled."""
        while True:
            done = await self.sweep()
            await anyio.sleep(SWEEP_SECONDS if done else AGAIN_SECONDS)

    async def _is_over(self, policy: Policy) -> bool:
        if policy.created is None or datetime.now(UTC) - policy.created < GRACE:
            return False
        block, conversation = policy.subject.removeprefix("block:"), policy.conditions.conversation or ""
        if await self._ancestry.exists(block, conversation) or await self._is_archived(block):
            return False
        return not await self._ancestry.exists(
            block, conversation
        )  # the block may have been restored meanwhile

    async def _is_archived(self, block: str) -> bool:
        """Report whether a block of that name can be restored, with its conversations."""
        try:
            request = ListMemory(path=ARCHIVE_FOLDER)
            found = await self._bus.call(MEMORY_LIST, request, timeout=MEMORY_TIMEOUT, repeatable=True)
        except RemoteFault as fault:
            if fault.code == "not_found":
                return False
            raise
        return any(
            one.path.removeprefix(f"{ARCHIVE_FOLDER}/").startswith(f"{block}_") for one in found.entries
        )

    async def sweep(self) -> bool:
        """Sweep once. Return whether memory answered."""
        try:
            for file in await read_policy_files(self._bus):
                if file.path.startswith(f"{POLICY_FOLDER}/{POLICY_ID_PREFIX}"):
                    await self._sweep_file(file)
        except BusError as error:
            log.info("the policies of plan mode are swept later: %s", error)
            return False
        return True

    async def _sweep_file(self, file: MemoryFile) -> None:
        try:
            policy = require_policy(file)
        except ToolError:
            return  # an invalid policy refuses every call until a person repairs it
        if (
            policy.created_by != PLATFORM_ACTOR
            or policy.conditions.conversation is None
            or not await self._is_over(policy)
        ):
            return
        reason = f"the conversation {policy.conditions.conversation} was deleted"
        request = DeleteMemory(path=file.path, actor=PLATFORM_ACTOR, expected=file.hash, reason=reason)
        await self._bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)
