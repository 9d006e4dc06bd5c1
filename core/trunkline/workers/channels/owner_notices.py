"""Notices to the owner: approvals and questions with buttons, and notices."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from uuid import uuid4

import anyio

from trunkline._util.text import printable
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.channels.channel import Gateway
from trunkline.errors import Unavailable
from trunkline.workers.channels.answer_writer import PostWriter
from trunkline.workers.channels.approval_buttons import approval_buttons
from trunkline.workers.channels.approval_text import approval_news
from trunkline.workers.channels.chat_account import ChatAccount
from trunkline.workers.channels.chat_posts import ChatPosts
from trunkline.workers.channels.delivery_ledger import (
    DeliveryLedger,
    DeliveryState,
    OutboundDelivery,
    PostRefused,
)

log = logging.getLogger(__name__)

AGAIN = 2.0
"""Seconds after which a notice is tried again when the service does not answer."""

_REMEMBERED = "notice-id:"

GONE = "This call no longer waits for a decision."


class OwnerNotices:
    """Tells the owner of an account, in the places of the owner's private chats."""

    def __init__(self, ledger: DeliveryLedger, posts: ChatPosts, account: ChatAccount) -> None:
        self._ledger = ledger
        self._posts = posts
        self._account = account

    async def tell(self, text: str, id: str = "") -> None:
        """Send a text to the owner. A text with an ``id`` is sent once, however often this is called with the id: also
        after an error and in another process.

        Raises:
            Unavailable: no chat of the owner accepts it.
            Exception: the service does not answer; the text may have been sent.
        """
        reached = 0
        for place in self._account.owners:
            name = f"{_REMEMBERED}{id}:{place}" if id else f"notice:{uuid4()}"
            delivery = await self._ledger.open(DeliveryState(id=name, place=place))
            if delivery.state.done:
                reached += bool(delivery.state.posts)
                continue
            try:
                await PostWriter(self._posts, delivery).show(self._posts.plain(text))
                reached += 1
            except PostRefused as refused:
                log.warning("%s", refused)
            except BaseException:
                if not id:
                    await delivery.finish()
                raise
            await delivery.finish()
        if not reached:
            raise Unavailable(self._account.unreached)

    async def tell_of_approvals(self, gateway: Gateway, left: Sequence[OutboundDelivery]) -> None:
        """Show every call that waits, and what becomes of it. ``left`` are those that a former process showed."""
        await self._withdraw(gateway, left)
        async with aclosing(gateway.approvals()) as approvals:
            async for approval in approvals:
                for place in self._account.owners:
                    await self._show(approval, place)

    async def _show(self, approval: Approval, place: str) -> None:
        id = f"approval:{approval.id}:{place}"
        delivery = await self._ledger.open(
            DeliveryState(id=id, place=place, details={"approval": approval.id})
        )
        if delivery.state.done:
            return
        text = printable(approval_news(approval, before=self._account.before))
        if approval.settled is not None:  # after a crash the outcome is shown like any other text
            await delivery.write(details={"text": text})
        if approval.settled is None or delivery.state.posts:
            await self._write(delivery, self._posts.plain(text, approval_buttons(approval)))
        if approval.settled is not None:
            await delivery.finish()

    async def _write(self, delivery: OutboundDelivery, contents: Sequence[str]) -> None:
        """Show these contents, however often the service fails meanwhile."""
        while True:
            try:
                return await PostWriter(self._posts, delivery).show(contents)
            except PostRefused as refused:
                return log.warning("an approval is not shown: %s", refused)
            except self._posts.away as error:
                log.warning("an approval is shown later: %s", error)
            await anyio.sleep(AGAIN)

    async def _withdraw(self, gateway: Gateway, left: Sequence[OutboundDelivery]) -> None:
        """Take the buttons from calls that were decided while this channel did not run."""
        while True:
            try:
                waiting = {approval.id for approval in await gateway.waiting()}
                break
            except Unavailable:
                await anyio.sleep(AGAIN)
        for delivery in left:
            if delivery.state.details.get("approval") not in waiting:
                if delivery.state.posts:
                    await self._write(delivery, self._posts.plain(GONE))
                await delivery.finish()


def is_remembered_notice(delivery: OutboundDelivery) -> bool:
    """Report whether this is a notice with an id, which is told again after a crash. Raises nothing."""
    return delivery.state.id.startswith(_REMEMBERED)
