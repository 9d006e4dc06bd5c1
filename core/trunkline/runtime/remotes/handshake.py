"""The exchange of an enrolment, without I/O: what each side sends and checks.

Both sides know only the one-time code. They connect over TLS with a certificate that is not authenticated
yet::

    joiner                                   hub
    │  Hello(nonce)                 ────>   │
    │  <────      Challenge(nonce, proof)   │   proof: HMAC(code, "hub", certificate, both nonces)
    │  Answer(key, address, proof)  ────>   │   proof: HMAC(code, "joiner", certificate, both nonces, key, address)
    │  <────    Welcome(name, authority, …) │

Each proof covers the fingerprint of the certificate that the side sees. A man in the middle has another
certificate, so a forwarded proof does not match, and without the code none can be computed. The joiner sends
only a nonce before the hub has proved that it knows the code. The code has 80 random bits, so a recorded
proof cannot be searched for. No secret is transmitted: the joiner sends the public half of a key that it
generated.
"""

import hashlib
import hmac
import secrets

import msgspec

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""32 letters and digits that are not mistaken for each other."""

LETTERS, GROUP = 16, 4
MAX_LINE_BYTES = 64 * 1024


class Hello(msgspec.Struct, frozen=True, tag="hello.v1"):
    """The joiner's first message."""

    nonce: str


class Challenge(msgspec.Struct, frozen=True, tag="challenge.v1"):
    """The hub's proof that it knows the code."""

    nonce: str
    proof: str


class ChallengeResponse(msgspec.Struct, frozen=True, tag="answer.v1"):
    """The joiner's proof, with its public key and the name or address under which it reaches the hub."""

    key: str
    address: str
    proof: str


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome.v1"):
    """The joiner is enrolled. ``authority`` is the certificate that signs the hub's leaf listener."""

    name: str
    port: int
    authority: str


class EnrolmentRefused(msgspec.Struct, frozen=True, tag="refused.v1"):
    """The joiner is refused, with the reason."""

    reason: str


HandshakeMessage = Hello | Challenge | ChallengeResponse | Welcome | EnrolmentRefused


def new_code() -> str:
    """Return a new one-time code, such as ``K7QM-2XVA-9TRE-WB4N``."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(LETTERS))
    return "-".join(letters[at : at + GROUP] for at in range(0, LETTERS, GROUP))


def normalize_code(text: str) -> str:
    """Return the typed code in its original form. Raises ValueError when the code is not valid."""
    letters = "".join(text.upper().replace("-", "").split())
    if len(letters) != LETTERS or set(letters) - set(ALPHABET):
        raise ValueError(f"a code has {LETTERS} letters and digits in groups of {GROUP}")
    return letters


def new_nonce() -> str:
    """Return a value that is used once."""
    return secrets.token_hex(16)


class HandshakeTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """The data that the proofs of one enrolment cover: the code, the certificate's fingerprint, and both nonces."""

    code: str
    certificate: bytes
    joiner: str
    hub: str

    def hub_proof(self) -> str:
        """Return the proof that the hub shows."""
        return self._proof("hub")

    def joiner_proof(self, key: str, address: str) -> str:
        """Return the proof that the joiner shows."""
        return self._proof("joiner", key, address)

    def _proof(self, *parts: str) -> str:
        digest = hmac.new(normalize_code(self.code).encode(), digestmod=hashlib.sha256)
        texts = (part.encode() for part in ("trunkline remote v1", self.joiner, self.hub, *parts))
        for raw in (self.certificate, *texts):
            digest.update(len(raw).to_bytes(4, "big") + raw)
        return digest.hexdigest()


def proofs_match(shown: str, expected: str) -> bool:
    """Report whether two proofs are the same, compared in constant time."""
    return hmac.compare_digest(shown.encode(), expected.encode())
