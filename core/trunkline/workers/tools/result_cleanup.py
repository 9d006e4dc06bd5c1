"""Deletes stored results together with their conversations."""

import logging
from datetime import UTC, datetime

import anyio

from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory.files import MemoryChanged
from trunkline.contracts.memory.subjects import MEMORY_CHANGED
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.result_store import BLOCK_KEY, CONVERSATION_KEY, ResultStore
from trunkline_bus import Bus, BusError, ObjectInfo, ReceivedMessage

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3_600.0

GRACE_SECONDS = 7 * 86_400.0
"""Seconds for which memory may lack a result's conversation: its first turn may wait for a person."""


class ResultCleanup:
    """Deletes orphaned results. Several tools workers may sweep concurrently: each result is deleted once."""

    def __init__(self, bus: Bus, results: ResultStore, ancestry: ConversationAncestry) -> None:
        self._bus = bus
        self._results = results
        self._ancestry = ancestry

    async def run(self) -> None:
        """Sweep now and every hour, until cancelled. The sweep also deletes results of conversations whose deletion
        event was missed.
        """
        while True:
            try:
                for found in await self._results.entries():
                    if _age(found) > GRACE_SECONDS:
                        await self._delete_if_orphaned(found)
            except BusError as error:
                log.warning("stored results could not be swept: %s", error)
            await anyio.sleep(SWEEP_SECONDS)

    async def open(self) -> None:
        """Subscribe to deletions of blocks."""
        await self._bus.subscribe(MEMORY_CHANGED, self._changed, limit=1, part="files")

    async def _changed(self, message: ReceivedMessage[MemoryChanged]) -> None:
        """Delete the results of a deleted block at once; an archived block keeps them."""
        folders = [path.split("/") for path in message.data.paths]
        if len(folders) != 1 or len(folders[0]) != 2 or folders[0][0] not in (BLOCKS_FOLDER, "archive"):
            return
        block = folders[0][1].partition("_")[0]
        try:
            for found in await self._results.entries():
                if found.metadata.get(BLOCK_KEY) == block:
                    await self._delete_if_orphaned(found)
        except BusError as error:
            log.warning("results of %s are deleted later: %s", block, error)

    async def _delete_if_orphaned(self, info: ObjectInfo) -> None:
        block, conversation = info.metadata.get(BLOCK_KEY, ""), info.metadata.get(CONVERSATION_KEY, "")
        if not await self._ancestry.exists(block, conversation):
            await self._results.delete(info)


def _age(info: ObjectInfo) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(info.mtime)).total_seconds()
