"""The mail that answers a mail: the text and the files of a turn, read to its end."""

import anyio

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import DeliveryState, Gateway, TurnText, nothing_said
from trunkline.api.turn import ApprovalRequested, TurnEnded
from trunkline_email.outbound_mail import MailContent, answer_content

AGAIN = 1.0
"""Seconds after which a feed that cannot be read is read again."""


async def answer_mail(gateway: Gateway, delivery: DeliveryState) -> MailContent:
    """Wait until a turn has ended, and return what to send."""
    text, reason, position = TurnText(say=gateway.sentences), "", ""
    while not reason:
        watch = gateway.watch(delivery.conversation, delivery.turn, after=position)
        try:
            async for event in watch:
                if not isinstance(event, ApprovalRequested):  # the owner gets a mail of its own about it
                    text.apply(event, None)
                if isinstance(event, TurnEnded):
                    reason = event.reason
        except RemoteFault as fault:
            return MailContent(text=text.say.translate(fault.message))
        except Unavailable:
            position = watch.position
            await anyio.sleep(AGAIN)
    nothing = "" if text.files else nothing_said(reason, text.say)
    return answer_content(text.text.strip() or nothing, text.files)
