"""Notices to the owner: approvals and questions with words to answer, and notices."""

import math
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from trunkline import Unavailable, printable
from trunkline.api.channel import (
    DeliveryLedger,
    Gateway,
    OutboundDelivery,
    PostRefused,
    Sentences,
    approval_news,
)
from trunkline.api.tool import Approval
from trunkline_email.mail_decision import approval_delivery, new_token
from trunkline_email.mail_deliveries import insist, notice_state, send_mail
from trunkline_email.outbound_mail import MailContent

AGAIN = 2.0
"""Seconds after which the gateway is asked again."""


class OwnerMails:
    """Tells the owner. Each address of the owner gets each notice."""

    def __init__(
        self, ledger: DeliveryLedger, owners: Sequence[str], first_pause: float, say: Sentences
    ) -> None:
        self._ledger = ledger
        self._owners = owners
        self._first_pause = first_pause
        self._say = say

    async def tell(self, text: str) -> None:
        """Send the owner a text.

        Raises:
            Unavailable: no server accepts a mail to an owner.
            NotSent, MailInDoubt, MailboxFailure: the mail may have been sent.
        """
        reached = 0
        subject = printable(text).split("\n", 1)[0][:80]
        for owner in self._owners:
            delivery = await self._ledger.open(notice_state(f"notice:{uuid4()}", owner, subject))
            try:
                await delivery.post(MailContent(text=printable(text)).encode())
                reached += 1
            except PostRefused:
                continue
            finally:
                await delivery.finish()
        if not reached:
            raise Unavailable(
                "No mail reaches the owner: channels.email.owners is empty, or the server refuses them."
            )

    async def tell_of_approvals(
        self, gateway: Gateway, left: Sequence[OutboundDelivery], tasks: TaskGroup
    ) -> None:
        """Mail every call that waits, and what becomes of it. ``left`` are those that a former process mailed."""
        await self._withdraw(gateway, left)
        streams = []
        for owner in self._owners:
            changes, stream = anyio.create_memory_object_stream[Approval](math.inf)
            tasks.start_soon(self._mail_each, owner, stream)
            streams.append(changes)
        async with aclosing(gateway.approvals()) as approvals:
            async for approval in approvals:
                for changes in streams:
                    changes.send_nowait(approval)

    async def _mail_each(self, owner: str, changes: MemoryObjectReceiveStream[Approval]) -> None:
        """Mail the changes of approvals to one owner in their order. Another owner does not wait for this one."""
        async for approval in changes:
            delivery = await self._ledger.open(
                notice_state(
                    approval_delivery(approval.id, owner),
                    owner,
                    self._say(
                        "email.decision", question=printable(self._say.translate(approval.question))[:80]
                    ),
                    approval=approval.id,
                    token=new_token(),
                )
            )
            if not delivery.state.done:
                await self._mail(approval, delivery)

    async def _mail(self, approval: Approval, delivery: OutboundDelivery) -> None:
        """Mail the present state of an approval, unless the owner knows it."""
        details, sent = delivery.state.details, len(delivery.state.posts)
        if approval.settled is not None:
            if sent and not details.get("decided"):
                await self._write(
                    delivery, text=printable(approval_news(approval, say=self._say)), after=str(sent)
                )
                await self._insist(delivery, delivery.state.details["text"])
            await delivery.finish()
        elif sent == 0 or (approval.reminded_at is not None and not details.get("reminded")):
            if sent:
                await self._write(delivery, reminded="yes", after=str(sent))
            shown = msgspec.structs.replace(approval, id=f"{approval.id}-{details['token']}")
            await self._insist(
                delivery, f"{printable(approval_news(shown, say=self._say))}\n\n{self._say('email.how')}"
            )

    async def _insist(self, delivery: OutboundDelivery, text: str) -> None:
        send = partial(send_mail, delivery, MailContent(text=text))
        await insist(send, "a mail about an approval", self._first_pause)

    async def _write(self, delivery: OutboundDelivery, **more: str) -> None:
        async with self._ledger.locked(delivery.state.place):
            await delivery.write(details={**delivery.state.details, **more})

    async def _withdraw(self, gateway: Gateway, left: Sequence[OutboundDelivery]) -> None:
        """Tell of calls that were decided while this channel did not run."""
        while True:
            try:
                waiting = {approval.id for approval in await gateway.waiting()}
                break
            except Unavailable:
                await anyio.sleep(AGAIN)
        for delivery in left:
            if delivery.state.details.get("approval") not in waiting:
                details, sent = delivery.state.details, len(delivery.state.posts)
                if sent and not details.get("decided"):
                    if "text" not in details:
                        await self._write(delivery, text=self._say("decision.gone"), after=str(sent))
                    await self._insist(delivery, delivery.state.details["text"])
                await delivery.finish()
