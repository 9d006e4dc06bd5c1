"""The conversation queues of this monitor: opens them, starts their work, and closes those of lost partitions."""

import logging
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from trunkline.contracts.streams import FAILOVER_SECONDS
from trunkline.workers.monitor.claimed_item import ClaimedItem, nak_all
from trunkline.workers.monitor.conversation_queue import ConversationQueue
from trunkline.workers.monitor.journal import Fenced
from trunkline_bus import BusError

log = logging.getLogger(__name__)

MAX_IDLE_QUEUES = 512


class QueueRegistry:
    """Contains one queue for each conversation. ``handover_timeout`` is the number of seconds that the new owner of a
    partition should wait for a turn that still runs here."""

    def __init__(
        self, tasks: TaskGroup, new_queue: Callable[[str], ConversationQueue], handover_timeout: float
    ) -> None:
        self._tasks = tasks
        self._new_queue = new_queue
        self._handover_timeout = handover_timeout
        self._queues: dict[str, ConversationQueue] = {}
        """The queues by conversation, the least recently used first."""
        self._finishing: dict[str, float] = {}
        """For each conversation, the time until which its new owner waits for the turn that runs here."""
        self._draining = False
        self._idle = anyio.Event()

    async def offer(self, claimed: ClaimedItem) -> None:
        """Put an item into the queue of its conversation, and start the queue's work."""
        conversation = claimed.conversation
        self._finishing.pop(conversation, None)
        queue = self._queues.pop(conversation, None)
        if queue is None:
            queue = self._new_queue(conversation)
        self._queues[conversation] = queue
        queue.offer(claimed)
        if not queue.working and not self._draining:
            queue.working = True
            self._tasks.start_soon(self._work, conversation, queue)

    async def _work(self, conversation: str, queue: ConversationQueue) -> None:
        try:
            await queue.work()
        except Fenced as error:
            log.info("conversation %s has another owner now: %s", conversation, error)
            self._forget(conversation)
        finally:
            queue.working = False
            self._idle.set()
            self._forget_idle_queues()
        if queue.closed:
            self._forget(conversation)
            await nak_all(queue.drop())

    def _forget(self, conversation: str) -> None:
        self._queues.pop(conversation, None)
        self._finishing.pop(conversation, None)

    def _forget_idle_queues(self) -> None:
        oldest = list(self._queues.items())[: max(0, len(self._queues) - MAX_IDLE_QUEUES)]
        for conversation, queue in oldest:
            if not queue.working and not queue.waiting:
                del self._queues[conversation]

    def release_partition(self, partition: int) -> list[ClaimedItem]:
        """Start nothing more of a partition, and return the items that have not started.

        Running turns are finished here, and ``finishing_conversations`` names them. Other queues are removed,
        because another owner may write to their journals.
        """
        returned: list[ClaimedItem] = []
        for conversation, queue in tuple(self._queues.items()):
            if queue.partition == partition:
                returned.extend(queue.close())
                if queue.working:
                    self._finishing[conversation] = anyio.current_time() + self._handover_timeout
                else:
                    self._forget(conversation)
        return returned

    @property
    def finishing_conversations(self) -> tuple[str, ...]:
        """The conversations of lost partitions whose turns still run here.

        After the handover timeout a conversation is no longer listed, so that the new owner takes its turn over.
        """
        now = anyio.current_time()
        return tuple(conversation for conversation, deadline in self._finishing.items() if now < deadline)

    async def drop_stale_items(self) -> None:
        """Drop items that wait in a conversation with another owner, until cancelled.

        A monitor that was suspended or disconnected gets no notice that it lost a partition.
        """
        while True:
            await anyio.sleep(FAILOVER_SECONDS)
            for queue in tuple(self._queues.values()):
                try:
                    if await queue.has_stale_items():
                        self._drop_stale(queue)
                except BusError as error:
                    log.debug("the owner of a conversation could not be read: %s", error)

    def _drop_stale(self, queue: ConversationQueue) -> None:
        for claimed in queue.drop():
            log.info("conversation %s has another owner now: %s is dropped", claimed.conversation, claimed.id)
            if self._queues.get(claimed.conversation) is queue:
                self._forget(claimed.conversation)

    async def drain(self) -> None:
        """Start nothing more, return the items that have not started, and wait until the running turns have
        ended."""
        self._draining = True
        for queue in tuple(self._queues.values()):
            await nak_all(queue.close())
        while any(queue.working for queue in self._queues.values()):
            self._idle = anyio.Event()
            await self._idle.wait()
