"""Notices to the owner: approvals and questions with buttons, and notices."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from uuid import uuid4

import anyio
from telegram.error import TelegramError

from trunkline import Unavailable, printable
from trunkline.api.channel import (
    DeliveryLedger,
    DeliveryState,
    Gateway,
    OutboundDelivery,
    PostRefused,
    approval_buttons,
    approval_news,
)
from trunkline.api.tool import Approval
from trunkline_telegram.answer_writer import PostWriter
from trunkline_telegram.content import plain_contents
from trunkline_telegram.posts import TelegramPosts

log = logging.getLogger(__name__)

AGAIN = 2.0
"""Seconds after which a notice is tried again when Telegram does not answer."""

GONE = "This call no longer waits for a decision."


class OwnerNotices:
    """Tells the owner. ``owners`` are the owner's Telegram ids, which are the ids of the private chats too."""

    def __init__(self, ledger: DeliveryLedger, posts: TelegramPosts, owners: Sequence[int]) -> None:
        self._ledger = ledger
        self._posts = posts
        self._owners = owners

    async def tell(self, text: str) -> None:
        """Send a text to the owner.

        Raises:
            Unavailable: no chat of the owner accepts it.
            TelegramError: Telegram does not answer; the text may have been sent.
        """
        reached = 0
        for owner in self._owners:
            delivery = await self._ledger.open(DeliveryState(id=f"notice:{uuid4()}", place=str(owner)))
            try:
                await PostWriter(self._posts, delivery).show(plain_contents(text))
                reached += 1
            except PostRefused as refused:
                log.warning("%s", refused)
            finally:
                await delivery.finish()
        if not reached:
            raise Unavailable(
                "Telegram sends nothing to the owner: nobody in channels.telegram.owners has started the bot, or all "
                "have blocked it."
            )

    async def tell_of_approvals(self, gateway: Gateway, left: Sequence[OutboundDelivery]) -> None:
        """Show every call that waits, and what becomes of it. ``left`` are those that a former process showed."""
        await self._withdraw(gateway, left)
        async with aclosing(gateway.approvals()) as approvals:
            async for approval in approvals:
                for owner in self._owners:
                    await self._show(approval, owner)

    async def _show(self, approval: Approval, owner: int) -> None:
        id = f"approval:{approval.id}:{owner}"
        delivery = await self._ledger.open(
            DeliveryState(id=id, place=str(owner), details={"approval": approval.id})
        )
        if delivery.state.done:
            return
        text = printable(approval_news(approval, before="/"))
        contents = plain_contents(text, approval_buttons(approval))
        if approval.settled is not None:  # after a crash the outcome is shown like any other text
            await delivery.write(details={"text": text})
        while True:
            try:
                if approval.settled is None or delivery.state.posts:
                    await PostWriter(self._posts, delivery).show(contents)
            except PostRefused as refused:
                log.warning("the approval %s is not shown: %s", approval.id, refused)
            except TelegramError as error:
                log.warning("the approval %s is shown later: %s", approval.id, error)
                await anyio.sleep(AGAIN)
                continue
            break
        if approval.settled is not None:
            await delivery.finish()

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
                    await PostWriter(self._posts, delivery).show(plain_contents(GONE))
                await delivery.finish()
