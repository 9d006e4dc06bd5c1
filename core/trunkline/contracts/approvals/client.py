"""Watch approvals for clients that show them: all that wait for a decision, then every change.

Live messages and the stored stream are merged into one order, also across outages: nothing is missed or repeated.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator

import anyio

from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.approvals.subjects import APPROVAL
from trunkline_bus import Bus, BusError, ReceivedMessage

log = logging.getLogger(__name__)

REMEMBERED = 10_000
PAUSE = 1.0

Stage = tuple[bool, bool]


async def watch_approvals(bus: Bus) -> AsyncGenerator[Approval, None]:
    """Yield the approvals that wait now, oldest first, then each that is requested, reminded of or settled, until
    closed.
    """
    send, receive = anyio.create_memory_object_stream[Approval | None](math.inf)
    reported: OrderedDict[str, Stage] = OrderedDict()

    async def heard(message: ReceivedMessage[Approval]) -> None:
        send.send_nowait(None if message.gap else message.data)

    async def look_again() -> None:
        send.send_nowait(None)

    undo = bus.on_reconnect(look_again)
    subscription = await bus.subscribe(APPROVAL, heard, limit=1)
    try:
        send.send_nowait(None)
        async for news in receive:
            for approval in await _stored(bus) if news is None else (news,):
                if _is_news(approval, reported):
                    yield approval
    finally:
        undo()
        await subscription.aclose()


def _is_news(approval: Approval, reported: "OrderedDict[str, Stage]") -> bool:
    """Report whether the approval has advanced since it was last reported. An approval that was settled before it was
    ever reported is not news.
    """
    stage = (approval.settled is not None, approval.reminded_at is not None)
    before = reported.get(approval.id)
    reported[approval.id] = max(stage, before or stage)
    reported.move_to_end(approval.id)
    if len(reported) > REMEMBERED:
        reported.popitem(last=False)
    return stage > before if before is not None else approval.settled is None


async def _stored(bus: Bus) -> tuple[Approval, ...]:
    while True:
        try:
            found = [stored.data async for stored in bus.history(APPROVAL, after=0)]
        except BusError as error:
            log.debug("what waits for a decision cannot be read now: %s", error)
            await anyio.sleep(PAUSE)
        else:
            return tuple(sorted(found, key=lambda approval: approval.asked_at))
