"""The challenges of passkeys: nothing is stored when one is made, and one is taken once."""

import hmac
import secrets
import time
from hashlib import sha256
from typing import Literal

import msgspec

from trunkline.contracts.auth.passkeys import CHALLENGE_SECONDS, UsedChallenge
from trunkline.contracts.auth.subjects import PASSKEY_CHALLENGE_BUCKET
from trunkline.runtime.auth.token_key import TokenKey
from trunkline_bus import Bus, SequenceConflict

LONGEST = 200
"""The largest number of characters of a challenge that is looked at."""


class ChallengePurpose(msgspec.Struct, frozen=True, kw_only=True):
    """The purpose of a challenge, which counts for nothing else: no other page, ceremony or session.
    ``session`` is the access token that registers a passkey, "" for signing in.
    """

    ceremony: Literal["register", "sign-in"]
    origin: str
    session: str = ""


class PasskeyChallenges:
    """Makes challenges and takes each once, with any number of gateways.

    A challenge states its own expiry and proves by a keyed hash that a gateway of this home made it for this purpose.
    So requests of strangers fill no memory. Only the hash of a challenge that was answered is stored, until it expires.
    """

    def __init__(self, bus: Bus, key: TokenKey) -> None:
        self._used = bus.kv(PASSKEY_CHALLENGE_BUCKET)
        self._key = key

    def new(self, purpose: ChallengePurpose) -> str:
        """Return a new challenge. Raises StorageError without a key."""
        head = f"{secrets.token_hex(16)}.{int(time.time() + CHALLENGE_SECONDS)}"
        return f"{head}.{self._proof(head, purpose)}"

    async def take(self, challenge: str, purpose: ChallengePurpose) -> bool:
        """Report whether this is a challenge for this purpose that was not taken before and has not expired. Any answer
        takes it, a wrong one too. Raises BusError, and StorageError without a key.
        """
        head, _, proof = challenge.rpartition(".")
        if len(challenge) > LONGEST or not challenge.isascii():
            return False
        if not hmac.compare_digest(proof, self._proof(head, purpose)) or _expiry(head) <= time.time():
            return False
        try:
            name = sha256(challenge.encode()).hexdigest()
            await self._used.create(name, UsedChallenge())
        except SequenceConflict:
            return False
        return True

    def _proof(self, head: str, purpose: ChallengePurpose) -> str:
        text = msgspec.json.encode(("passkey challenge", head, purpose)).decode()
        return self._key.require_mac(text)


def _expiry(head: str) -> int:
    """Return when a challenge expires, in seconds since 1970. Its proof has been checked."""
    return int(head.rpartition(".")[2])
