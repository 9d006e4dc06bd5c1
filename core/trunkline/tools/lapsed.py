"""Takes out what binds an agent to planning in a conversation that is gone, or that nobody came back to in time.

Only what the platform itself wrote there is touched; the owner's own rules are his.
"""

import logging
from datetime import UTC, datetime, timedelta

import anyio

from trunkline.errors import ToolError
from trunkline.messages.memory import DeleteMemory, MemoryFile
from trunkline.messages.policies import Policy
from trunkline.subjects import MEMORY_DELETE
from trunkline.tools.lineage import Lineage
from trunkline.tools.planning import BY, PREFIX, SECONDS
from trunkline.tools.rules import FOLDER, policy_files, policy_in
from trunkline_bus import Bus, BusError

log = logging.getLogger(__name__)

SWEEP_SECONDS, AGAIN_SECONDS = 3_600.0, 30.0
"""Between two looks, and after one for which memory was not there."""

GRACE = timedelta(days=7)
"""For how long a conversation may plan that memory has not: its first turn may wait for a person. Then it is gone, or
its block was put away; who restores that begins to plan anew."""


class Lapsed:
    """Of several tools workers each may look: what one has deleted the others do not find."""

    def __init__(self, bus: Bus, lineage: Lineage) -> None:
        self._bus = bus
        self._lineage = lineage

    async def keep_swept(self) -> None:
        """Look now and every hour. Runs until cancelled."""
        while True:
            done = await self._sweep()
            await anyio.sleep(SWEEP_SECONDS if done else AGAIN_SECONDS)

    async def _is_over(self, policy: Policy) -> bool:
        now, until = datetime.now(UTC), policy.conditions.until
        if until is not None and now >= until:
            return True
        fresh = policy.created is None or now - policy.created < GRACE
        block, conversation = policy.subject.removeprefix("block:"), policy.conditions.conversation or ""
        return not fresh and not await self._lineage.lives(block, conversation)

    async def _sweep(self) -> bool:
        try:
            for file in await policy_files(self._bus):
                if file.path.startswith(f"{FOLDER}/{PREFIX}"):
                    await self._look_at(file)
        except BusError as error:
            log.info("what bound agents to planning is looked through later: %s", error)
            return False
        return True

    async def _look_at(self, file: MemoryFile) -> None:
        try:
            policy = policy_in(file)
        except ToolError:
            return  # it refuses every call until a person has looked at it
        if (
            policy.created_by != BY
            or policy.conditions.conversation is None
            or not await self._is_over(policy)
        ):
            return
        reason = f"nobody plans any more in {policy.conditions.conversation}"
        wish = DeleteMemory(path=file.path, actor=BY, expected=file.hash, reason=reason)
        await self._bus.call(MEMORY_DELETE, wish, timeout=SECONDS)
