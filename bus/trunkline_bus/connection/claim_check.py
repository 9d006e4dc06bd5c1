"""Claim check: a body that is too large for a message is stored as an object, and the message has the object's name."""

from collections.abc import Mapping

from trunkline_bus.errors import DecodeError
from trunkline_bus.streams.object_store import ObjectStore

CLAIM_HEADER = "Trunkline-Claim"
"""The header that names the object with the body."""


class ClaimCheckStore:
    """Stores and reads large bodies. The bucket is created on first use."""

    def __init__(self, store: ObjectStore, threshold: int) -> None:
        self.threshold = threshold
        self._store = store

    async def put(self, name: str, body: bytes) -> str:
        """Store ``body`` and return the claim. Raises ``StreamError`` if the body cannot be stored."""
        await self._store.ensure()
        await self._store.put(name, body)
        return name

    async def resolve(self, headers: Mapping[str, str] | None, data: bytes) -> bytes:
        """Return the body of a message. Raises ``DecodeError("claim_missing")`` if the claimed object is deleted."""
        claim = headers.get(CLAIM_HEADER) if headers else None
        if claim is None:
            return data
        body = await self._store.get(claim)
        if body is None:
            raise DecodeError("claim_missing", f"the object {claim[:100]!r} of this message is missing")
        return body

    async def erase(self, headers: Mapping[str, str] | None) -> None:
        """Overwrite and delete the body that a message claims, if any. Raises ``StreamError``."""
        claim = headers.get(CLAIM_HEADER) if headers else None
        if claim is not None:
            await self._store.erase(claim)
