"""The status of each block in this monitor. The status is published to a bucket whose entries expire soon, so a block
whose monitor crashed does not stay BUSY."""

import logging
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from trunkline.contracts.blocks.messages import BlockStatus, BlockStatusHeartbeat
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.workers.subjects import PULSE_BUCKET
from trunkline_bus import Bus, BusError, key_of

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.5
ACTIVE_SECONDS = 300.0
"""Seconds that a block stays ACTIVE after its last turn before it is SLEEPING."""


@dataclass(slots=True)
class _BlockActivity:
    running: dict[str, datetime] = field(default_factory=dict)
    last_run: datetime | None = None
    error: str | None = None


class BlockStatusPublisher:
    """Counts running turns by block and publishes the status, at once on a change and then with each
    heartbeat."""

    def __init__(self, bus: Bus, monitor: str) -> None:
        self._bucket = bus.kv(PULSE_BUCKET)
        self._monitor = monitor
        self._blocks: dict[str, _BlockActivity] = {}
        self._changed = anyio.Event()

    def turn_started(self, block: str, turn: str) -> None:
        """Record that a turn has started."""
        self._blocks.setdefault(block, _BlockActivity()).running[turn] = utc_now()
        self._changed.set()

    def turn_ended(self, block: str, turn: str, error: str | None) -> None:
        """Record that the turn has ended; ``error`` is its code if it failed."""
        state = self._blocks.setdefault(block, _BlockActivity())
        state.running.pop(turn, None)
        state.last_run, state.error = utc_now(), error
        self._changed.set()

    async def run(self) -> None:
        """Publish the status of all blocks until cancelled."""
        while True:
            with anyio.move_on_after(HEARTBEAT_SECONDS):
                await self._changed.wait()
            self._changed = anyio.Event()
            for block in tuple(self._blocks):
                await self._publish(block)
            await anyio.sleep(0.1)  # turns that start and end together are published once

    async def _publish(self, block: str) -> None:
        beat = BlockStatusHeartbeat(
            block=block, monitor=self._monitor, pulse=self._status(self._blocks[block])
        )
        if beat.pulse.status == "SLEEPING":
            del self._blocks[block]
            return  # the entry expires by itself
        try:
            await self._bucket.put(key_of(block, self._monitor), beat)
        except BusError as error:
            log.debug("the status of block %s could not be published: %s", block, error)

    def _status(self, state: _BlockActivity) -> BlockStatus:
        task = next(iter(state.running), None)
        if task is not None:
            status = "BUSY"
        elif state.error is not None:
            status = "ERROR"
        else:
            idle = (utc_now() - state.last_run).total_seconds() if state.last_run else ACTIVE_SECONDS
            status = "ACTIVE" if idle < ACTIVE_SECONDS else "SLEEPING"
        return BlockStatus(
            status=status,  # type: ignore[arg-type]
            last_run=state.last_run,
            last_pulse=utc_now(),
            current_task=task,
            error=state.error,
        )
