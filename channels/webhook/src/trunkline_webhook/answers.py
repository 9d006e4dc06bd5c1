"""Reads the answer of a turn to its end."""

import anyio

from trunkline import RemoteFault, Unavailable
from trunkline.api.channel import Attachment, Gateway, TurnText
from trunkline.api.turn import ApprovalRequested, TurnEnded

AGAIN = 1.0
"""Seconds after which a feed is read again that could not be read."""


async def read_answer(
    gateway: Gateway, conversation: str, turn: str
) -> tuple[str, str, tuple[Attachment, ...]]:
    """Return how a turn ended, its text and its files, when it has ended. A turn that is no longer kept ended with
    ``error``, and the text says so. Raises nothing.
    """
    text, position = TurnText(say=gateway.sentences), ""
    while True:
        watch = gateway.watch(conversation, turn, after=position)
        try:
            async for event in watch:
                if not isinstance(event, ApprovalRequested):
                    text.apply(event, None)
                if isinstance(event, TurnEnded):
                    return event.reason, text.text, text.files
        except RemoteFault as fault:
            return "error", text.say.translate(fault.message), ()
        except Unavailable:
            await anyio.sleep(AGAIN)
        position = watch.position
