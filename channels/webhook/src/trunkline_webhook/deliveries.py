"""Sends answers, approvals and notices to the addresses of webhooks, however often an address fails meanwhile."""

import logging
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline import Unavailable, printable
from trunkline.api.channel import (
    DeliveryLedger,
    DeliveryState,
    Gateway,
    OutboundDelivery,
    PostRefused,
    Sentences,
    approval_news,
)
from trunkline.api.tool import Approval
from trunkline_webhook.answers import read_answer
from trunkline_webhook.events import (
    AnswerData,
    AnsweredFile,
    ApprovalData,
    EventType,
    NoticeData,
    encode_event,
)
from trunkline_webhook.posts import AddressUnreachable, WebhookPosts
from trunkline_webhook.settings import ACCOUNT, WebhookSettings

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 300.0
"""Seconds between two attempts: doubled each time, or more if the address asks for it."""


class WebhookDeliveries:
    """The deliveries of all webhooks.

    Guarantees: what was added is sent, whichever process is killed, until the address accepts or refuses it or
    ``give_up_hours`` are over. A repeated request has the same id and the same body.

    Not guaranteed: that a request is sent once: the receiver ignores an id that it knows.
    """

    def __init__(self, settings: WebhookSettings, gateway: Gateway, posts: WebhookPosts) -> None:
        self._settings = settings
        self._gateway = gateway
        self._ledger = DeliveryLedger(gateway.records(), ACCOUNT, posts)
        self._noticed = [name for name, webhook in settings.webhooks.items() if webhook.notices]
        self._tasks: TaskGroup

    async def run(self, tasks: TaskGroup) -> None:
        """Continue what a former process left, and tell of approvals until cancelled. Raises Unavailable if the bus
        does not answer.
        """
        self._tasks = tasks
        for delivery in await self._ledger.recover():
            tasks.start_soon(self._deliver, delivery)
        if self._noticed:
            tasks.start_soon(self._tell_of_approvals)

    async def find(self, id: str) -> DeliveryState | None:
        """Return a delivery that was added. Raises Unavailable if the bus does not answer."""
        delivery = await self._ledger.find(id)
        return None if delivery is None else delivery.state

    async def add(self, state: DeliveryState) -> None:
        """Record a delivery, and send it from now on. Raises Unavailable if the bus does not answer."""
        self._tasks.start_soon(self._deliver, await self._ledger.open(state))

    async def tell(self, text: str) -> None:
        """Send a notice to the owner. It is on disk when this returns. Raises Unavailable if no webhook has notices, or
        the bus does not answer.
        """
        if not self._noticed:
            raise Unavailable("No webhook of channels.webhook.webhooks has notices.")
        number = uuid4()
        for webhook in self._noticed:
            details = {"began": began_now(), "text": text}
            await self.add(DeliveryState(id=f"notice:{number}:{webhook}", place=webhook, details=details))

    async def _tell_of_approvals(self) -> None:
        async with aclosing(self._gateway.approvals()) as approvals:
            async for approval in approvals:
                for webhook in self._noticed:
                    await self._tell_of_approval(webhook, approval)

    async def _tell_of_approval(self, webhook: str, approval: Approval) -> None:
        """Record what a webhook is told of an approval, unless it was told that already."""
        kind: EventType = "approval.requested" if approval.settled is None else "approval.settled"
        id = f"{kind}:{approval.id}:{webhook}"
        if await self._ledger.find(id) is None:
            data = _approval_data(approval, self._gateway.sentences)
            details = {"began": began_now(), "kind": kind, "data": msgspec.json.encode(data).decode()}
            await self.add(DeliveryState(id=id, place=webhook, details=details))

    async def _deliver(self, delivery: OutboundDelivery) -> None:
        content = await self._content(delivery.state)
        pause = FIRST_PAUSE
        while True:
            wait = pause
            try:
                await delivery.post(content)
                break
            except PostRefused as refused:
                log.warning("%s %s", refused.sentence, refused.hint)
                break
            except AddressUnreachable as unreachable:
                wait = max(pause, unreachable.seconds)
                why = unreachable.sentence
            except Unavailable as unavailable:
                why = unavailable.sentence
            if self._is_too_old(delivery.state):
                log.error("%s Tried for %g hours, and given up.", why, self._settings.give_up_hours)
                break
            log.log(logging.WARNING if pause == FIRST_PAUSE else logging.INFO, "%s Next in %g s.", why, wait)
            await anyio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE)
        await delivery.finish()

    def _is_too_old(self, state: DeliveryState) -> bool:
        limit = timedelta(hours=self._settings.give_up_hours)
        return datetime.now(UTC) > datetime.fromisoformat(state.details["began"]) + limit

    async def _content(self, state: DeliveryState) -> str:
        """Return the body. It follows from what is stored, so that every process sends the same."""
        details = state.details
        began = datetime.fromisoformat(details["began"])
        if state.turn:
            reason, text, files = await read_answer(self._gateway, state.conversation, state.turn)
            answer = AnswerData(
                request=details["request"],
                thread=details["thread"],
                conversation=state.conversation,
                turn=state.turn,
                reason=reason,
                text=text,
                files=tuple(
                    AnsweredFile(name=one.name, media_type=one.media_type, size=one.size, stored=one)
                    for one in files
                ),
            )
            return encode_event("message.answered", began, answer)
        if "data" in details:
            data = msgspec.json.decode(details["data"], type=ApprovalData)
            return encode_event(
                "approval.requested" if data.allowed is None else "approval.settled", began, data
            )
        return encode_event("owner.notice", began, NoticeData(text=details["text"]))


def began_now() -> str:
    """Return the moment at which a delivery begins, for its details."""
    return datetime.now(UTC).isoformat()


def _approval_data(approval: Approval, say: Sentences) -> ApprovalData:
    return ApprovalData(
        id=approval.id,
        block=approval.block,
        channel=approval.channel or "",
        question=say.translate(approval.question),
        text=printable(approval_news(approval, say=say)),
        expires_at=approval.expires_at,
        allowed=None if approval.settled is None else approval.settled.allow,
    )
