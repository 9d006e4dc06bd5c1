"""The contract of a passkey verifier: checks what an authenticator signed for a page of the gateway."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import msgspec


class PasskeyCeremony(msgspec.Struct, frozen=True, kw_only=True):
    """The data that a response has to be about.

    ``challenge`` are the bytes that the gateway asked to sign, ``origin`` is the origin of its page, such as
    ``https://agents.example.com``, ``host`` the host name of that (WebAuthn's id of the relying party), and ``user``
    the handle of the identity.
    """

    challenge: bytes
    origin: str
    host: str
    user: bytes


class NewPasskey(msgspec.Struct, frozen=True, kw_only=True):
    """A passkey that an authenticator made: its name of it, the public key in COSE form, and its signature counter."""

    credential: bytes
    public_key: bytes
    counter: int


class PasskeyVerifier(ABC):
    """Checks the responses of authenticators by the rules of WebAuthn.

    The gateway calls the methods in threads. It makes the challenges and takes each once, keeps passkeys and their
    counters, and decides whom a passkey signs in. The responses come from anybody who reaches the port.

    Guarantees: a method returns only if the response is of the right kind and its challenge, origin and host are those
    of the ceremony; if the page was not within a page of another origin; and if a person was present and was verified
    by the authenticator. A check needs no network, clock or state.

    Not guaranteed: that the make of an authenticator is known. The gateway asks for no attestation.
    """

    algorithms: tuple[int, ...]
    """COSE's numbers of the signature algorithms that are accepted, the preferred one first."""

    @abstractmethod
    def check_registration(self, response: Mapping[str, Any], ceremony: PasskeyCeremony) -> NewPasskey:
        """Return the passkey of a ``RegistrationResponseJSON``.

        Raises:
            Exception: the response is refused.
        """

    @abstractmethod
    def check_sign_in(self, response: Mapping[str, Any], ceremony: PasskeyCeremony, known: NewPasskey) -> int:
        """Return the signature counter of an ``AuthenticationResponseJSON`` that the key of ``known`` signed. A user
        handle in the response must be that of the ceremony. The gateway compares the counter with the earlier one.

        Raises:
            Exception: the response is refused.
        """
