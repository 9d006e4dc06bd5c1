"""Claim check: a body too large for a subject travels through an object store, the message carries its name."""

from collections.abc import Mapping

from trunkline_bus.errors import DecodeError
from trunkline_bus.streams.object_store import ObjectStore

CLAIM_HEADER = "Trunkline-Claim"
"""The header that names the object holding the real body."""


class ClaimCheckStore:
    """Stores and fetches large bodies. The bucket is made on first use."""

    def __init__(self, store: ObjectStore, threshold: int) -> None:
        self.threshold = threshold
        self._store = store

    async def put(self, name: str, body: bytes) -> str:
        """Store ``body``; returns the claim. Raises ``StreamError`` kinds when it cannot be stored."""
        await self._store.ensure()
        await self._store.put(name, body)
        return name

    async def resolve(self, headers: Mapping[str, str] | None, data: bytes) -> bytes:
        """The real body of a message. Raises ``DecodeError("claim_missing")`` when the object is gone."""
        claim = headers.get(CLAIM_HEADER) if headers else None
        if claim is None:
            return data
        body = await self._store.get(claim)
        if body is None:
            raise DecodeError("claim_missing", f"the object {claim[:100]!r} of this message is gone")
        return body

    async def erase(self, headers: Mapping[str, str] | None) -> None:
        """Overwrite and remove the body that a message names, if it names one. Raises ``StreamError`` kinds."""
        claim = headers.get(CLAIM_HEADER) if headers else None
        if claim is not None:
            await self._store.erase(claim)
