"""The contract of a push sender: encrypts a notice for one browser and gives it to the service of its vendor."""

from abc import ABC, abstractmethod
from typing import Literal

import msgspec

PushOutcome = Literal["delivered", "gone", "failed"]
"""The outcome of a notice: the vendor's service accepted it, has ended the subscription, or did not accept it."""


class PushTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a browser receives notices, as it stated itself: the address at its vendor's service, its public
    key (``p256dh``, 65 bytes) and the secret ``auth`` (16 bytes) of the subscription.

    Whoever knows ``endpoint`` can use it, so it is in no log.
    """

    endpoint: str
    p256dh: bytes
    auth: bytes


class PushNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice. ``seconds`` is how long the vendor's service keeps it for a browser that is not reached. A later notice
    with the same ``topic`` replaces one that waits there.
    """

    content: bytes
    topic: str
    seconds: int


class PushSender(ABC):
    """Sends notices by Web Push. ``secret`` is the secret of the home from which the sender derives its signing key.

    Guarantees: a notice is sent only with https, to an address of the public internet that the connection itself uses,
    so a host that changes its address after ``check`` reaches nothing else. No redirect is followed. The vendor cannot
    read the content. Neither ``endpoint`` nor a key is in a log or an exception.

    Not guaranteed: that a person sees the notice, or that it is shown once only if it was sent twice.
    """

    @abstractmethod
    def public_key(self, secret: str) -> bytes:
        """Return the public key to which a browser binds a subscription (65 bytes). The gateway calls it in a thread.

        Raises:
            Exception: no key can be derived.
        """

    @abstractmethod
    async def check(self, target: PushTarget) -> None:
        """Return if notices may be sent to a target.

        Raises:
            Exception: the address is not https, its host is not of the public internet, or a key is not valid.
        """

    @abstractmethod
    async def send(self, target: PushTarget, notice: PushNotice, secret: str) -> PushOutcome:
        """Send one notice, once.

        Raises:
            Exception: the notice was not sent. The gateway treats it as ``failed``.
        """
