"""Who asks the gateway: the channel, known by the bus subject or the HTTP surface, and the identity behind it."""

from dataclasses import dataclass

from trunkline.abc.gateway import Identity

OWNER = Identity(id="owner", type="owner")


@dataclass(frozen=True, slots=True)
class Sender:
    """``channel`` never comes from a message: it is the subject key that the worker's credentials allow."""

    channel: str
    identity: Identity = OWNER
