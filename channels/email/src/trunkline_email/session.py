"""One session of the mailbox: from the moment at which this process has the lease until it is cancelled."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup

from trunkline import ConfigError, Unavailable
from trunkline.api.channel import (
    AccountReport,
    Chats,
    DeliveryLedger,
    DeliveryState,
    Gateway,
    OutboundDelivery,
)
from trunkline_email.answer_mail import answer_mail
from trunkline_email.incoming_mail import IncomingMail, parse_mail
from trunkline_email.mail_deliveries import insist, notice_state, send_mail
from trunkline_email.mail_transport import MailTransport
from trunkline_email.mailbox import MailboxFailure, MailFolder
from trunkline_email.outbound_mail import MailContent
from trunkline_email.owner_mails import OwnerMails
from trunkline_email.owner_requests import OwnerRequests, mail_delivery
from trunkline_email.posts import MailPosts
from trunkline_email.settings import EmailSettings
from trunkline_email.threads import MailThreads

log = logging.getLogger(__name__)

T = TypeVar("T")

LONGEST_PAUSE = 60.0
"""Seconds between two attempts to reach the mailbox or the gateway at most; the pause is doubled each time."""


class EmailSession:
    """Takes mails to the gateway, and answers to people."""

    def __init__(
        self, settings: EmailSettings, gateway: Gateway, report: AccountReport, first_pause: float
    ) -> None:
        records, account = gateway.records(), settings.account
        self._settings = settings
        self._gateway = gateway
        self._report = report
        self._first_pause = first_pause
        posts = MailPosts(settings, MailTransport(settings), lambda: MailFolder(settings), gateway.file)
        self._ledger = DeliveryLedger(records, account, posts)
        self._threads = MailThreads(settings.domain)
        self._chats = Chats(records, account, settings.block)
        self._requests = OwnerRequests(settings, gateway, self._ledger, self._chats)
        self._owners = {owner.lower() for owner in settings.owners}
        self._uid_validity = 0
        self._problem = ""
        self.notices = OwnerMails(self._ledger, settings.owners, first_pause, gateway.sentences)

    async def run(self) -> None:
        """Serve until cancelled. Raises ConfigError if the server refuses the login, and what the records raise."""
        left = await self._ledger.recover()
        async with anyio.create_task_group() as tasks:
            await self._go_on(tasks, left)
            await self._receive(tasks)

    async def _go_on(self, tasks: TaskGroup, left: Sequence[OutboundDelivery]) -> None:
        """Continue what a former process left."""
        approvals = [one for one in left if "approval" in one.state.details]
        for delivery in left:
            if delivery.state.turn or ("text" in delivery.state.details and delivery not in approvals):
                tasks.start_soon(self._deliver, delivery)
            elif delivery not in approvals:  # a notice, whose sender was told that it may have arrived
                tasks.start_soon(self._settle, delivery)
        tasks.start_soon(self.notices.tell_of_approvals, self._gateway, approvals, tasks)

    async def _settle(self, delivery: OutboundDelivery) -> None:
        async def settle() -> None:
            async with self._ledger.locked(
                delivery.state.place
            ):  # a post to the same person may settle it, too
                await self._ledger.settle(delivery.state.place)

        await insist(settle, "a notice of a former process", self._first_pause)
        await delivery.finish()

    # Mails ------------------------------------------------------------------------------------------------------

    async def _receive(self, tasks: TaskGroup) -> None:
        """Take the mails that arrive, and connect again whenever the connection is lost."""
        pause = self._first_pause
        while True:
            try:
                async with MailFolder(self._settings) as mailbox:
                    self._compare(mailbox.uid_validity)
                    while True:
                        for uid in await mailbox.new_mails():
                            await self._take(tasks, mailbox, uid)
                        await self._tell_state()
                        pause = self._first_pause
                        await mailbox.wait()
            except ConfigError as error:
                await self._report.failing(error.sentence)
                raise
            except MailboxFailure as failure:
                await self._report.failing("the mail server does not answer")
                log.warning("the mailbox is opened again after %g s: %s", pause, failure)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _tell_state(self) -> None:
        if self._problem:
            await self._report.failing(self._problem)
        else:
            await self._report.serving()

    def _compare(self, uid_validity: int) -> None:
        if self._uid_validity not in (0, uid_validity):
            log.warning("the mail server has numbered the mails anew; each is known by its Message-ID")
        self._uid_validity = uid_validity

    async def _take(self, tasks: TaskGroup, mailbox: MailFolder, uid: int) -> None:
        """Bring one mail to where no crash loses it, and mark it as taken then."""
        found = await mailbox.fetch(uid)
        if found is None:
            return
        raw, size = found
        try:
            mail = parse_mail(raw, self._settings.authentication_server)
        except Exception:
            log.exception("mail %d cannot be read and is skipped", uid)
            await mailbox.mark_taken(uid)
            return
        if self._is_copy(mail):
            await mailbox.file_copy(uid)
            return
        await self._handle(tasks, mail, too_large=size > self._settings.max_mail_bytes)
        await mailbox.mark_taken(uid)

    def _is_copy(self, mail: IncomingMail) -> bool:
        return mail.sender.address == self._settings.address.lower() and self._threads.is_own(mail.message_id)

    async def _handle(self, tasks: TaskGroup, mail: IncomingMail, *, too_large: bool) -> None:
        sender = mail.sender
        if mail.automatic:
            log.info("a mail of %s is not answered: %s", sender.address or "nobody", mail.automatic)
        elif sender.address not in self._owners:
            await self._meet_stranger(tasks, mail)
        elif sender.doubt:
            self._problem = f"those of {sender.address} are refused: {sender.doubt}"
            log.warning("a mail that claims to be from %s is refused: %s", sender.address, sender.doubt)
        else:
            self._problem = ""
            await self._open(tasks, mail, lambda: self._requests.answer(mail, too_large=too_large))

    async def _meet_stranger(self, tasks: TaskGroup, mail: IncomingMail) -> None:
        """Tell a stranger once that the mailbox is private, if the owner wants that and the sender is confirmed."""
        address = mail.sender.address
        if (
            not self._settings.answer_strangers
            or mail.sender.doubt
            or address == self._settings.address.lower()
        ):
            log.info("a mail of the stranger %s is not answered", address or "without an address")
        elif await self._when_available(lambda: self._chats.meet_stranger(address)):
            state = notice_state(
                mail_delivery(mail),
                address,
                self._gateway.sentences("email.private"),
                text=self._gateway.sentences("person.private.mailbox"),
                in_reply_to=mail.message_id,
            )
            await self._open(tasks, mail, lambda: _immediately(state))

    async def _open(
        self, tasks: TaskGroup, mail: IncomingMail, answer: Callable[[], Awaitable[DeliveryState]]
    ) -> None:
        """Record what answers a mail, unless that was done before. The order makes each step harmless to repeat."""
        if await self._when_available(lambda: self._ledger.find(mail_delivery(mail))) is None:
            state = await self._when_available(answer)
            tasks.start_soon(self._deliver, await self._ledger.open(state))

    async def _when_available(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the gateway or the bus until it answers. Meanwhile the mail server keeps what people write."""
        pause = self._first_pause
        while True:
            try:
                return await ask()
            except Unavailable as unavailable:
                log.info("mails wait for the gateway: %s", unavailable)
            await anyio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    # Answers ----------------------------------------------------------------------------------------------------

    async def _deliver(self, delivery: OutboundDelivery) -> None:
        """Send an answer, however often the server does not take it."""
        state = delivery.state
        if state.turn:
            content = await answer_mail(self._gateway, state)
        else:
            content = MailContent(text=state.details["text"])
        send = partial(send_mail, delivery, content)
        await insist(send, f"an answer to {state.place}", self._first_pause)
        await delivery.finish()


async def _immediately(state: DeliveryState) -> DeliveryState:
    return state
