"""SenderLinks: a code that the owner shows links, once, whoever sends it to the account of a channel."""

import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from trunkline._util.text import printable
from trunkline.contracts.auth.linked_senders import (
    MOST_LINKED,
    MOST_WRONG_OF_CHANNEL,
    MOST_WRONG_OF_SENDER,
    SENDER_BUCKET,
    ChannelSenders,
    LinkedSender,
    LinkSender,
    PendingLink,
    SenderLinked,
    StartLinking,
    UnlinkSender,
)
from trunkline.contracts.auth.messages import PairingStarted
from trunkline.contracts.auth.pairing_codes import MOST_PENDING, PAIRING_SECONDS, new_code, normalize_code
from trunkline.errors import ErrorCode
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.errors import refusal
from trunkline_bus import Bus, SequenceConflict

_CHANNEL = re.compile("[a-z0-9_-]{1,40}")

ATTEMPTS = 20
"""The number of times that a change is tried again after another gateway changed the record."""


class SenderLinks:
    """Starts and completes links, and ends them.

    Guarantees: a code links one sender, of one channel, and not after its expiry. After a few wrong codes no code of
    their sender counts while a code waits. All of this holds for any number of gateways, and after a restart. A link
    is on disk when ``link`` returns.

    Methods raise Refusal with a fixed code, and BusError when the bus does not answer.
    """

    def __init__(self, bus: Bus, key: TokenKey, audit: AuthAudit) -> None:
        self._bucket = bus.kv(SENDER_BUCKET)
        self._key = key
        self._audit = audit

    async def start(self, request: StartLinking) -> PairingStarted:
        """Return a new code. Refused with ``rate_limited`` while too many wait or are linked, and with
        ``invalid_request`` for a name that no channel has.
        """
        if _CHANNEL.fullmatch(request.channel) is None:
            raise refusal(ErrorCode.INVALID_REQUEST, "A channel is named by a-z, 0-9, - and _.")
        code = new_code()
        pending = PendingLink(
            mac=self._mac(request.channel, code),
            expires=datetime.now(UTC) + timedelta(seconds=PAIRING_SECONDS),
            by=request.actor,
        )

        def added(state: ChannelSenders) -> ChannelSenders:
            if len(state.codes) >= MOST_PENDING:
                raise refusal(
                    ErrorCode.RATE_LIMITED,
                    f"{MOST_PENDING} codes of the channel {request.channel} wait already. Use one, or wait "
                    f"{PAIRING_SECONDS / 60:.0f} minutes.",
                )
            if len(state.linked) >= MOST_LINKED:
                raise refusal(
                    ErrorCode.RATE_LIMITED,
                    f"{MOST_LINKED} people are linked by {request.channel}. Remove one: trunkline channels unpair",
                )
            return replace(state, codes=(*state.codes, pending))

        await self._change(request.channel, added)
        await self._audit.record(
            "pairing_started", request.actor, f"a code for the channel {request.channel}."
        )
        return PairingStarted(code=code, expires=pending.expires)

    async def link(self, channel: str, request: LinkSender) -> SenderLinked:
        """Use up a code, and report whether its sender is linked. The same request may be repeated."""
        mac = self._mac(channel, normalize_code(request.code))
        new = LinkedSender(
            sender=request.sender,
            place=request.place,
            name=printable(request.name),
            linked=datetime.now(UTC),
            by="",
            code=mac,
        )
        before, after = await self._change(channel, lambda state: _linked(state, new))
        by_code = [one for one in after.linked if one.sender == new.sender and one.code == mac]
        if by_code and before != after:
            why = f"{channel}: the sender {new.sender} ({new.name}) by a pairing code of {by_code[0].by}."
            await self._audit.record("paired", by_code[0].by, why)
        elif before != after:
            await self._audit.refused(
                "pairing_refused", f"A pairing code for {channel} was wrong, used or expired."
            )
        return SenderLinked(linked=bool(by_code))

    async def senders(self, channel: str) -> tuple[LinkedSender, ...]:
        """Return the linked senders of a channel, the oldest first."""
        if _CHANNEL.fullmatch(channel) is None:
            return ()
        entry = await self._bucket.get(channel)
        return entry.value.linked if entry is not None and entry.value is not None else ()

    async def unlink(self, request: UnlinkSender) -> None:
        """Remove a linked sender, and end the codes that wait. Refused with ``not_found``."""

        def removed(state: ChannelSenders) -> ChannelSenders:
            left = tuple(one for one in state.linked if one.sender != request.sender)
            return ChannelSenders(linked=left)

        if not any(one.sender == request.sender for one in await self.senders(request.channel)):
            raise refusal(
                ErrorCode.NOT_FOUND, f"No sender {request.sender} is linked by the channel {request.channel}."
            )
        await self._change(request.channel, removed)
        why = f"{request.channel}: the sender {request.sender} is no longer linked."
        await self._audit.record("access_revoked", request.actor, why)

    def _mac(self, channel: str, code: str) -> str:
        """Return the keyed hash of a code of a channel, which is the code of no other channel."""
        return self._key.require_mac(f"{channel} {code}")

    async def _change(
        self, channel: str, change: Callable[[ChannelSenders], ChannelSenders]
    ) -> tuple[ChannelSenders, ChannelSenders]:
        """Change the record of a channel, and return it as it was without the expired codes, and as it is."""
        for _ in range(ATTEMPTS):
            entry = await self._bucket.get(channel)
            before = _current(
                entry.value if entry is not None and entry.value is not None else ChannelSenders()
            )
            after = change(before)
            if after == before:
                return before, after
            try:
                if entry is None:
                    await self._bucket.create(channel, after)
                else:
                    await self._bucket.update(channel, after, entry.revision)
            except SequenceConflict:
                continue
            return before, after
        raise refusal(ErrorCode.CONFLICT)


def _current(state: ChannelSenders) -> ChannelSenders:
    """Return the record without the codes that have expired; without codes, wrong attempts are forgotten."""
    now = datetime.now(UTC)
    codes = tuple(one for one in state.codes if now < one.expires)
    return replace(state, codes=codes, wrong=state.wrong if codes else ())


def _linked(state: ChannelSenders, new: LinkedSender) -> ChannelSenders:
    """Return the record after an attempt to link. Every code that waits is compared, in constant time."""
    known = any(one.sender == new.sender for one in state.linked)
    blocked = (
        state.wrong.count(new.sender) >= MOST_WRONG_OF_SENDER or len(state.wrong) >= MOST_WRONG_OF_CHANNEL
    )
    matches = [one for one in state.codes if hmac.compare_digest(one.mac, new.code)]
    if not state.codes or blocked:
        return state
    if not matches:  # whoever is linked may write words that look like a code
        return state if known else replace(state, wrong=(*state.wrong, new.sender))
    others = tuple(one for one in state.linked if one.sender != new.sender)
    return ChannelSenders(
        linked=(*others, replace(new, by=matches[0].by)),
        codes=tuple(one for one in state.codes if one not in matches),
        wrong=state.wrong,
    )
