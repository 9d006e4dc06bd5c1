"""Compacts conversations in the background: follows the turns that end, in one monitor at a time.

The server pins the consumer to one live monitor. A turn is acknowledged after its conversation is compacted, so if the
monitor dies, the next one gets the turn again. The summary record names the turn, so the next one makes no second
record.
"""

import logging

import anyio

from trunkline.contracts.streams import COMPACTION_CONSUMER
from trunkline.contracts.turns.messages import TurnFact
from trunkline.contracts.turns.subjects import TURN_FACT
from trunkline.errors import TRANSIENT_CODES, CompletionError, ModelError, ToolError
from trunkline.workers.monitor.compaction_service import ACTOR, CompactionRequest, CompactionService
from trunkline_bus import Bus, BusError, Delivery, RemoteFault
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

RECONNECT_DELAY = 5.0
"""Seconds until turns are followed again after a failure."""

MAX_ATTEMPTS = 3
"""Attempts at one conversation. After the last one its next turn is tried."""

RETRY_DELAY, MAX_RETRY_DELAY = 0.5, 10.0
"""Seconds before the second attempt; twice as long before each further one."""


class CompactionConsumer:
    """Compacts each conversation whose last request came near the window of its model."""

    def __init__(self, bus: Bus, service: CompactionService) -> None:
        self._bus = bus
        self._service = service

    async def run(self) -> None:
        """Follow the turns that end, until cancelled."""
        while True:
            try:
                async with self._bus.pinned(COMPACTION_CONSUMER, TURN_FACT) as deliveries:
                    async for delivery in deliveries:
                        await self._handle(delivery)
            except Exception:  # whatever it is, such as a missing consumer: the monitor has turns to answer
                log.warning("finished turns cannot be followed right now", exc_info=True)
                await anyio.sleep(RECONNECT_DELAY)

    async def _handle(self, delivery: Delivery[TurnFact]) -> None:
        """Compact the conversation of one turn if it is due, and settle the turn."""
        if self._is_due(delivery.data):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_keep_in_progress, delivery)
                await self._compact_with_retry(delivery.data)
                tasks.cancel_scope.cancel()
        await delivery.ack(confirm=False)

    def _is_due(self, fact: TurnFact) -> bool:
        return fact.context > 0 and self._service.is_due(fact.context, fact.model)

    async def _compact_with_retry(self, fact: TurnFact) -> None:
        """Compact the conversation. A failure changes nothing: the next turn of the conversation is due, too."""
        backoff = Backoff(RETRY_DELAY, MAX_RETRY_DELAY)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._compact(fact)
            except (BusError, ToolError, ModelError) as error:
                log.warning("conversation %s was not compacted: %s", fact.conversation, error)
                if attempt == MAX_ATTEMPTS or not _is_transient(error):
                    return
            except Exception:  # a defect of the plugin's compactor must not end the monitor
                log.exception("the compactor failed in conversation %s", fact.conversation)
                return
            await backoff.sleep()

    async def _compact(self, fact: TurnFact) -> None:
        in_effect = await self._service.record_in_effect(fact.block, fact.conversation)
        if (in_effect.id if in_effect is not None else "") != fact.summary_record:
            return  # the turn was sent without this record, so its size says nothing about the next request
        record = await self._service.compact(
            CompactionRequest(
                block=fact.block,
                conversation=fact.conversation,
                turn=fact.turn,
                actor=ACTOR,
                model=fact.model,
                cause="automatic",
            )
        )
        if record is not None:
            log.info("conversation %s: %d messages are summarised", fact.conversation, record.count)


async def _keep_in_progress(delivery: Delivery[TurnFact]) -> None:
    while True:
        await anyio.sleep(COMPACTION_CONSUMER.ack_wait / 3)
        try:
            await delivery.in_progress()
        except BusError as error:  # then it comes again, and makes no second record
            log.debug("the redelivery of the running compaction could not be postponed: %s", error)


def _is_transient(error: Exception) -> bool:
    code = getattr(error, "code", None)
    return code in TRANSIENT_CODES if isinstance(error, RemoteFault | CompletionError) else True
