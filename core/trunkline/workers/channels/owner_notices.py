"""Notices to the owner: approvals and questions with buttons, and notices."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar
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

T = TypeVar("T")

AGAIN = 2.0
"""Seconds after which a notice is tried again when the service does not answer."""

_REMEMBERED = "notice-id:"


class OwnerNotices:
    """Tells the owner of an account, in the places of the owner's private chats: those of the settings, and those of
    linked senders.
    """

    def __init__(
        self, ledger: DeliveryLedger, posts: ChatPosts, account: ChatAccount, gateway: Gateway
    ) -> None:
        self._gateway = gateway
        self._showing = anyio.Lock()
        self._ledger = ledger
        self._posts = posts
        self._account = account

    async def tell(self, text: str, id: str = "") -> None:
        """Send a text to the owner. A text with an ``id`` is sent once, however often this is called with the id: also
        after an error and in another process.

        Raises:
            Unavailable: no chat of the owner accepts it, or no gateway says whose they are.
            Exception: the service does not answer; the text may have been sent.
        """
        reached = 0
        for place in await self._places():
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

    async def _places(self) -> Sequence[str]:
        linked = await self._gateway.senders()
        return tuple(dict.fromkeys((*self._account.owners, *(one.place for one in linked))))

    async def show_waiting(self, place: str) -> None:
        """Show the calls that wait now in a place, for example after its person was linked."""
        for approval in await self._until_available(self._gateway.waiting):
            await self._show(approval, place)

    async def tell_of_approvals(self, left: Sequence[OutboundDelivery]) -> None:
        """Show every call that waits, and what becomes of it. ``left`` are those that a former process showed."""
        await self._withdraw(left)
        async with aclosing(self._gateway.approvals()) as approvals:
            async for approval in approvals:
                for place in await self._until_available(self._places):
                    await self._show(approval, place)

    async def _show(self, approval: Approval, place: str) -> None:
        async with self._showing:  # a delivery is opened by one task
            await self._show_next(approval, place)

    async def _show_next(self, approval: Approval, place: str) -> None:
        id = f"approval:{approval.id}:{place}"
        delivery = await self._ledger.open(
            DeliveryState(id=id, place=place, details={"approval": approval.id})
        )
        if delivery.state.done:
            return
        say = self._gateway.sentences
        text = printable(approval_news(approval, before=self._account.before, say=say))
        if approval.settled is not None:  # after a crash the outcome is shown like any other text
            await delivery.write(details={"text": text})
        if approval.settled is None or delivery.state.posts:
            await self._write(delivery, self._posts.plain(text, approval_buttons(approval, say)))
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

    async def _until_available(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except Unavailable:
                await anyio.sleep(AGAIN)

    async def _withdraw(self, left: Sequence[OutboundDelivery]) -> None:
        """Take the buttons from calls that were decided while this channel did not run."""
        waiting = {approval.id for approval in await self._until_available(self._gateway.waiting)}
        for delivery in left:
            if delivery.state.details.get("approval") not in waiting:
                if delivery.state.posts:
                    await self._write(delivery, self._posts.plain(self._gateway.sentences("decision.gone")))
                await delivery.finish()


def is_remembered_notice(delivery: OutboundDelivery) -> bool:
    """Report whether this is a notice with an id, which is told again after a crash. Raises nothing."""
    return delivery.state.id.startswith(_REMEMBERED)
