"""The push subscriptions: adds, lists and removes them, and decides which of them still count."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import anyio
import msgspec

from trunkline.contracts.auth.tokens import AccessTokenRecord
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.push.push_sender import PushNotice, PushOutcome, PushSender, PushTarget
from trunkline.contracts.push.subjects import PUSH_SUBSCRIPTION_BUCKET
from trunkline.contracts.push.subscriptions import (
    MOST_SUBSCRIPTIONS,
    PushSubscriptionRecord,
    push_host,
    subscription_id,
)
from trunkline.errors import ErrorCode
from trunkline.home.secret_file import load_secret
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus

log = logging.getLogger(__name__)

TEST_SECONDS = 300
"""Seconds for which a vendor's service keeps a notice that somebody sent to try it."""

CHECK_SECONDS = 10.0
"""Seconds that the look-up of a new subscription's host may take."""

SEND_SECONDS = 20.0
"""Seconds that a vendor's service may take to accept a notice."""


class PushService:
    """Keeps the subscriptions, and sends notices with the push sender of a plugin.

    Guarantees: nobody is subscribed who did not ask. A subscription counts only while the access token does whose
    session asked for it. A record that was changed in the bucket without the key of the home does not count.

    Methods raise Refusal with a fixed code, BusError when the bus does not answer, StorageError when a key cannot be
    read, and Unavailable while the access tokens cannot be read.
    """

    def __init__(
        self, bus: Bus, key: TokenKey, registry: TokenRegistry, sender: PushSender | None, secret: Path
    ) -> None:
        self._bucket = bus.kv(PUSH_SUBSCRIPTION_BUCKET)
        self._key = key
        self._registry = registry
        self._sender = sender
        self._secret = secret

    @property
    def has_sender(self) -> bool:
        """Report whether a plugin sends notices."""
        return self._sender is not None

    async def public_key(self) -> bytes:
        """Return the key to which browsers bind a subscription; b"" if no plugin sends notices."""
        sender = self._sender
        if sender is None:
            return b""
        return await anyio.to_thread.run_sync(lambda: sender.public_key(load_secret(self._secret)))

    async def records(self, identity: str | None = None) -> list[PushSubscriptionRecord]:
        """Return the subscriptions that are signed, the oldest first; with ``identity`` only its own."""
        found = [entry.value for entry in await self._bucket.entries() if entry.value is not None]
        own = [one for one in found if identity in (None, one.identity) and self._is_own(one)]
        return sorted(own, key=lambda one: (one.created, one.id))

    async def subscribe(
        self, session: AccessTokenRecord, target: PushTarget, label: str, language: str
    ) -> PushSubscriptionRecord:
        """Store the subscription of a session's browser, in place of an earlier one at the same address. Refused with
        ``invalid_request`` if nothing may be sent there, and with ``conflict`` if the identity has too many.
        """
        await self._check(target)
        id = subscription_id(target.endpoint)
        others = [one for one in await self.records(session.identity) if one.id != id]
        if len(others) >= MOST_SUBSCRIPTIONS:
            raise refusal(
                ErrorCode.CONFLICT, f"{MOST_SUBSCRIPTIONS} browsers get notices already. Remove one first."
            )
        record = PushSubscriptionRecord(
            id=id, identity=session.identity, token=session.id, label=label, language=language,
            created=datetime.now(UTC), **msgspec.structs.asdict(target),
        )  # fmt: skip
        record = msgspec.structs.replace(record, mac=self._mac(record))
        await self._bucket.put(id, record)
        return record

    async def find(self, id: str, identity: str) -> PushSubscriptionRecord:
        """Return a subscription of an identity. Refused with ``not_found``, also for that of another identity."""
        for record in await self.records(identity):
            if record.id == id:
                return record
        raise refusal(ErrorCode.NOT_FOUND)

    async def remove(self, record: PushSubscriptionRecord) -> None:
        """Remove a subscription."""
        await self._bucket.delete(record.id)

    async def identity_of(self, record: PushSubscriptionRecord) -> Identity | None:
        """Return who gets the notices of a subscription; None for nobody now. A subscription whose access token has
        ended is removed.
        """
        identity = await self._registry.identity_of(record.token)
        if identity is not None:
            return identity if identity.id == record.identity else None
        await self._registry.refresh([record.token])  # another gateway may have issued it a moment ago
        token = self._registry.record(record.token)
        if token is None or not token.is_valid(datetime.now(UTC)):
            await self.remove(record)
        return None

    async def remove_ended(self) -> None:
        """Remove the subscriptions whose access tokens have ended."""
        for record in await self.records():
            await self.identity_of(record)

    async def test(self, record: PushSubscriptionRecord) -> PushOutcome:
        """Send a notice that says only that it works. A subscription that its vendor has ended is removed."""
        content = msgspec.json.encode({"language": record.language, "test": True})
        return await self.send(record, PushNotice(content=content, topic="test", seconds=TEST_SECONDS))

    async def send(self, record: PushSubscriptionRecord, notice: PushNotice) -> PushOutcome:
        """Send a notice once. A subscription that its vendor has ended is removed."""
        outcome: PushOutcome = "failed"
        target = PushTarget(endpoint=record.endpoint, p256dh=record.p256dh, auth=record.auth)
        try:
            secret = await anyio.to_thread.run_sync(load_secret, self._secret)
            with anyio.fail_after(SEND_SECONDS):
                outcome = await self._require_sender().send(target, notice, secret)
        except Exception as error:  # its text may have the address, which lets anyone send
            log.warning("%s did not accept a notice: %s", push_host(record), type(error).__name__)
        if outcome == "gone":
            log.info("%s has ended the subscription %s", push_host(record), record.id)
            await self.remove(record)
        return outcome

    async def _check(self, target: PushTarget) -> None:
        sender = self._require_sender()
        try:
            with anyio.fail_after(CHECK_SECONDS):
                await sender.check(target)
        except (
            Exception
        ) as error:  # a sentence of its own, because the reason would describe the owner's network
            log.info("a push subscription is refused: %s", type(error).__name__)
            raise InvalidField(
                ("endpoint",),
                "Notices go only to an https address of a browser's vendor on the internet, with its keys.",
            ) from error

    def _require_sender(self) -> PushSender:
        if self._sender is None:
            raise InvalidField((), "No plugin sends push notices here. Install trunkline-push.")
        return self._sender

    def _is_own(self, record: PushSubscriptionRecord) -> bool:
        """Report whether a record was written with the key of the home."""
        return record.mac == self._mac(record)

    def _mac(self, record: PushSubscriptionRecord) -> str:
        text = msgspec.json.encode(("push", msgspec.structs.replace(record, mac=""))).decode()
        return self._key.require_mac(text)
