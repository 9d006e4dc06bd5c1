"""The delivery data in the reply subject of a JetStream message. Parsing only, no I/O."""

from datetime import UTC, datetime

import msgspec


class DeliveryInfo(msgspec.Struct, frozen=True):
    """The number of deliveries of a message, its sequence in the stream and its sequence among the consumer's
    deliveries.
    """

    delivered: int
    seq: int
    consumer_seq: int
    time: datetime


def delivery_info(reply: str) -> DeliveryInfo:
    """Parse ``$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumer seq>.<time>.<pending>``, in its old or
    new form.
    """
    tokens = reply.split(".")
    start = 4 if len(tokens) == 9 else 6
    delivered, seq, consumer_seq, nanos = (int(token) for token in tokens[start : start + 4])
    return DeliveryInfo(delivered, seq, consumer_seq, datetime.fromtimestamp(nanos // 1000 / 1_000_000, UTC))
