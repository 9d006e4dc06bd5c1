"""The deliveries of a mailbox: what each mail needs besides its text, and how it is sent however often that fails."""

import logging
from collections.abc import Awaitable, Callable

import anyio

from trunkline import Unavailable
from trunkline.api.channel import DeliveryState, OutboundDelivery, PostRefused
from trunkline_email.mail_transport import MailInDoubt, NotSent
from trunkline_email.mailbox import MailboxFailure
from trunkline_email.outbound_mail import MailContent
from trunkline_email.posts import new_key
from trunkline_email.threads import thread_key

log = logging.getLogger(__name__)

LONGEST_PAUSE = 300.0
"""Seconds between two attempts to send a mail at most, which servers that greylist want; the pause is doubled each
time.
"""

FAILURES = (NotSent, MailInDoubt, MailboxFailure, Unavailable)
"""After these a mail is tried again."""


def notice_state(id: str, owner: str, subject: str, **details: str) -> DeliveryState:
    """Return a new delivery of a mail that answers no other."""
    key = new_key()
    wanted = {"key": key, "thread": thread_key(key), "subject": subject, **details}
    return DeliveryState(id=id, place=owner.lower(), details=wanted)


async def send_mail(delivery: OutboundDelivery, content: MailContent) -> None:
    """Send the next mail of a delivery. Raises as ``OutboundDelivery.post`` does.

    ``after`` in the details is how many mails there were before it, so that a repetition after a crash sends nothing.
    """
    if len(delivery.state.posts) <= int(delivery.state.details.get("after", "0")):
        await delivery.post(content.encode())


async def insist(send: Callable[[], Awaitable[None]], what: str, first_pause: float) -> None:
    """Call ``send`` until it succeeds, or until the server refuses the mail for good, which is logged."""
    pause = first_pause
    while True:
        try:
            await send()
            return
        except PostRefused as refused:
            log.warning("%s is not sent: %s", what, refused)
            return
        except FAILURES as error:
            log.warning("%s is sent later, after %g s: %s", what, pause, error)
        await anyio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
