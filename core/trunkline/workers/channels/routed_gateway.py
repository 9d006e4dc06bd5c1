"""The gateway as a channel sees it that a worker runs: approvals come when the owner wants to be told of them here."""

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.blocks.notice_preferences import NoticePreferences
from trunkline.contracts.gateway.client import GatewayClient
from trunkline.contracts.sentences.sentences import ENGLISH_SENTENCES, Sentences
from trunkline_bus import Bus


class RoutedGateway(GatewayClient):
    """A gateway client whose ``approvals`` follow the owner's preferences (``[notices]``).

    Guarantees: an approval that still waits appears at its time, and then each of its changes. When it appears follows
    from the approval and the preferences alone, so a restart changes nothing. One that is settled before its time does
    not appear.

    Not guaranteed: that a change of the preferences counts for approvals that were announced before.

    Args:
        tasks: The tasks that wait for the time of an approval.
        preferences: Returns how the owner wants to be told; None while that is not known: then this channel tells.
    """

    def __init__(
        self,
        bus: Bus,
        channel: str,
        tasks: TaskGroup,
        preferences: Callable[[], Awaitable[NoticePreferences | None]],
        *,
        shows: str = "",
        sentences: Sentences = ENGLISH_SENTENCES,
    ) -> None:
        super().__init__(bus, channel, shows=shows, sentences=sentences)
        self._name = channel
        self._tasks = tasks
        self._preferences = preferences

    async def approvals(self) -> AsyncGenerator[Approval, None]:
        """Yield the approvals of which this channel tells the owner, as ``Gateway.approvals`` does. Raises nothing."""
        send, receive = anyio.create_memory_object_stream[Approval](math.inf)
        scope = anyio.CancelScope()
        self._tasks.start_soon(self._route, send, scope)
        try:
            async for approval in receive:
                yield approval
        finally:
            scope.cancel()

    async def _route(self, send: MemoryObjectSendStream[Approval], scope: anyio.CancelScope) -> None:
        held: dict[str, Approval] = {}
        shown: set[str] = set()

        async def hold(approval: Approval, due: datetime) -> None:
            await anyio.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
            latest = held.pop(approval.id)
            if latest.settled is None:
                shown.add(latest.id)
                send.send_nowait(latest)

        with scope, send:
            async with anyio.create_task_group() as tasks, aclosing(super().approvals()) as approvals:
                async for approval in approvals:
                    if approval.id in held:
                        held[approval.id] = approval
                    elif approval.id in shown:
                        send.send_nowait(approval)
                    elif approval.settled is None:
                        preferences = await self._preferences() or NoticePreferences()
                        due = preferences.due("approval", self._name, approval.asked_at)
                        if due is not None:
                            held[approval.id] = approval
                            tasks.start_soon(hold, approval, due)
