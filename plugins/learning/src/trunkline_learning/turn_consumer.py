"""Follows the turns that end and has the learner learn from each, off the hot path, in one monitor at a time.

Turns come from a durable consumer that the server pins to one live worker. A turn is acknowledged once what it taught
is committed, so a worker that dies leaves nothing out: the next one is given the turn again, and passes over it when
the commit was made.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import anyio
import msgspec

from trunkline import LifespanContext, RemoteFault, ToolError
from trunkline.api.bus import Backoff, Bus, BusError, Delivery
from trunkline.api.memory import MEMORY_READ_MANY, ReadManyMemory, block_file_path
from trunkline.api.turn import LEARNER_CONSUMER, TURN_FACT, TurnFact
from trunkline_learning import preferences
from trunkline_learning.errors import TRANSIENT_KINDS, WriteConflict
from trunkline_learning.preferences import LearningPreferences

if TYPE_CHECKING:
    from trunkline_learning.learner import Learner

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 3
"""Attempts at a turn that fails permanently. After the last one it is skipped and logged."""

RETRY_DELAY, MAX_RETRY_DELAY = 0.5, 30.0
"""Seconds before the next try; twice as long each time."""

RECONNECT_DELAY = 5.0
"""Seconds until turns are followed again after a failure."""

_TRANSIENT_CODES = ("engine_unavailable", "storage_failure", "write_failure")
"""Error codes of a memory that is temporarily unavailable. ``internal`` is a defect, so it is not one of them."""

READ_TIMEOUT = 10.0
"""Seconds to wait for memory to read the preferences and the block."""


class _Learning:
    """The learning of one monitor. The learner and its modules are loaded when a turn is learned from."""

    def __init__(self, context: LifespanContext) -> None:
        self.bus = context.bus
        self._context = context

    @cached_property
    def learner(self) -> "Learner":
        from trunkline_learning.learner import Learner

        return Learner(self._context)


@asynccontextmanager
async def learning_lifespan(context: LifespanContext) -> AsyncIterator[None]:
    """The lifespan: learns for as long as the monitor lives."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_consume, context)
        yield
        tasks.cancel_scope.cancel()


async def _consume(context: LifespanContext) -> None:
    learning = _Learning(context)
    while True:
        try:
            async with learning.bus.pinned(LEARNER_CONSUMER, TURN_FACT) as deliveries:
                async for delivery in deliveries:
                    await _handle(learning, delivery)
        except Exception:  # whatever it is: the monitor has turns to answer, and lives
            log.warning("finished turns cannot be followed right now", exc_info=True)
            await anyio.sleep(RECONNECT_DELAY)


async def _handle(learning: _Learning, delivery: Delivery[TurnFact]) -> None:
    """Learn from one turn, and settle it. It is kept from coming again while it is in work."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_keep_in_progress, delivery)
        await _learn_with_retry(learning, delivery.data)
        tasks.cancel_scope.cancel()
    await delivery.ack(confirm=False)


async def _keep_in_progress(delivery: Delivery[TurnFact]) -> None:
    while True:
        await anyio.sleep(LEARNER_CONSUMER.ack_wait / 3)
        try:
            await delivery.in_progress()
        except BusError as error:  # then it comes again, and is passed over if it was learned from
            log.debug("the redelivery of the running turn could not be postponed: %s", error)


async def _learn_with_retry(learning: _Learning, fact: TurnFact) -> None:
    """Try until it is learned from; while others are away it waits, since a turn left out is never learned from."""
    backoff, tries = Backoff(RETRY_DELAY, MAX_RETRY_DELAY), 0
    while True:
        try:
            choices = await _choices(learning.bus, fact.block)
            if choices.on and await learning.learner.learn(fact, choices):
                log.debug("learned from turn %s", fact.turn)
            return
        except (BusError, ToolError, WriteConflict) as error:
            tries += not _is_transient(error)
            log.info("turn %s waits to be learned from: %s", fact.turn, error)
        except Exception:
            tries += 1
            log.exception("learning from turn %s failed", fact.turn)
        if tries >= MAX_ATTEMPTS:
            log.warning("turn %s is skipped: it could not be learned from", fact.turn)
            return
        await backoff.sleep()


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ToolError):
        return error.kind in TRANSIENT_KINDS
    return not isinstance(error, RemoteFault) or error.code in _TRANSIENT_CODES


async def _choices(bus: Bus, block: str) -> LearningPreferences:
    """The owner's choices as they are now, asked for each turn, so that a switch needs no restart. Nothing is learned
    in a block whose policy turns remembering off."""
    block_file = block_file_path(block)
    request = ReadManyMemory(paths=(preferences.FILE, block_file))
    found = (await bus.call(MEMORY_READ_MANY, request, timeout=READ_TIMEOUT, repeatable=True)).files
    texts = {file.path: file.content for file in found}
    choices = preferences.parse_preferences(texts.get(preferences.FILE))
    remembered = preferences.is_remembered(texts.get(block_file))
    return choices if remembered else msgspec.structs.replace(choices, on=False)
