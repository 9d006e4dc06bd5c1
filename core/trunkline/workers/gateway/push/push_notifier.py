"""PushNotifier: sends one notice about each approval that waits to each subscription that may decide about it."""

import logging
import math
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from trunkline.contracts.approvals.client import watch_approvals
from trunkline.contracts.approvals.messages import Approval
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.push.push_sender import PushNotice
from trunkline.contracts.push.subjects import PUSH_CLAIM_BUCKET
from trunkline.contracts.push.subscriptions import PushClaim, PushSubscriptionRecord
from trunkline.errors import TrunklineError
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.push.push_service import PushService
from trunkline_bus import Bus, BusError, Refusal, SequenceConflict
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

BUNDLE_SECONDS = 2.0
"""Seconds for which approvals are gathered, so that many at once are one notice."""

CLEAN_SECONDS = 300.0
"""Seconds after which subscriptions are removed whose access tokens have ended."""

MOST_ATTEMPTS = 5
"""Attempts to send a notice, of which the last is half a minute after the first."""

RETRY_SECONDS = 2.0
"""Seconds until what failed is tried again; twice as long each time, up to a minute."""

LONGEST_SECONDS = 86_400.0
"""The largest number of seconds for which a vendor's service keeps a notice."""

FAILURES = (BusError, Refusal, TrunklineError)


class PushNotifier:
    """Watches the approvals and sends the notices.

    Guarantees: an approval leads to one notice at most for each subscription, at any number of gateways and after a
    restart, because a claim is stored before the notice is sent. It goes only to whoever may decide about the approval
    at that moment. It has no argument of a call and no text of a conversation.

    Not guaranteed: that a notice arrives. One is lost if the gateway dies while it sends, or if the vendor's service
    refuses it ``MOST_ATTEMPTS`` times.
    """

    def __init__(self, bus: Bus, subscriptions: PushService, access: BlockAccess) -> None:
        self._bus = bus
        self._claims = bus.kv(PUSH_CLAIM_BUCKET)
        self._subscriptions = subscriptions
        self._access = access
        self._pending: dict[str, Approval] = {}

    async def run(self) -> None:
        """Send notices until cancelled; without a sender, do nothing."""
        if not self._subscriptions.has_sender:
            return
        send, receive = anyio.create_memory_object_stream[Approval](math.inf)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._clean)
            tasks.start_soon(self._notify, receive, tasks)
            async with send, aclosing(watch_approvals(self._bus)) as approvals:
                async for approval in approvals:
                    if approval.settled is not None:
                        self._pending.pop(approval.id, None)
                    elif approval.reminded_at is None or approval.id not in self._pending:
                        self._pending[approval.id] = approval
                        send.send_nowait(approval)

    async def _notify(self, approvals: MemoryObjectReceiveStream[Approval], tasks: TaskGroup) -> None:
        async for first in approvals:
            await anyio.sleep(BUNDLE_SECONDS)
            bundle = [first, *_waiting(approvals)]
            backoff = Backoff(RETRY_SECONDS, 60.0)
            while bundle := [one for one in bundle if self._waits(one)]:
                try:
                    await self._start_sending(bundle, tasks)
                except FAILURES as error:
                    log.warning("push notices wait: %s", type(error).__name__)
                    await backoff.sleep()
                else:
                    break

    async def _start_sending(self, bundle: Sequence[Approval], tasks: TaskGroup) -> None:
        for record in await self._subscriptions.records():
            identity = await self._subscriptions.identity_of(record)
            if identity is None:
                continue
            new = [one for one in bundle if one.asked_at >= record.created]
            allowed = [one for one in new if await self._may_decide(identity, one)]
            claimed = [one for one in allowed if await self._claim(record, one)]
            if claimed:
                tasks.start_soon(self._send, record, claimed)

    async def _may_decide(self, identity: Identity, approval: Approval) -> bool:
        if approval.detail.owner_only:
            is_owner = identity.type == "owner" and identity.blocks is None
            return is_owner and identity.may(TokenScope.OWNER)
        return await self._access.may(identity, TokenScope.APPROVE, approval.block)

    async def _claim(self, record: PushSubscriptionRecord, approval: Approval) -> bool:
        """Report whether no gateway has sent this notice before."""
        try:
            await self._claims.create(f"{record.id}-{approval.id}", PushClaim())
        except SequenceConflict:
            return False
        return True

    async def _send(self, record: PushSubscriptionRecord, approvals: Sequence[Approval]) -> None:
        """Send a notice about those approvals that still wait, and try again when it fails."""
        backoff = Backoff(RETRY_SECONDS, 60.0)
        for _ in range(MOST_ATTEMPTS):
            try:
                if await self._is_done(record, approvals):
                    return
            except FAILURES as error:
                log.warning("a push notice waits: %s", type(error).__name__)
            await backoff.sleep()

    async def _is_done(self, record: PushSubscriptionRecord, approvals: Sequence[Approval]) -> bool:
        """Send a notice once; report whether no further attempt is needed."""
        waiting = await self._still_open(record, approvals)
        return not waiting or await self._subscriptions.send(record, _notice(record, waiting)) != "failed"

    async def _still_open(
        self, record: PushSubscriptionRecord, approvals: Sequence[Approval]
    ) -> list[Approval]:
        """Return the approvals that wait and that the subscription may still be told of."""
        known = await self._subscriptions.records(record.identity)
        identity = await self._subscriptions.identity_of(record) if record in known else None
        if identity is None:
            return []
        return [one for one in approvals if self._waits(one) and await self._may_decide(identity, one)]

    def _waits(self, approval: Approval) -> bool:
        return approval.id in self._pending and approval.expires_at > datetime.now(UTC)

    async def _clean(self) -> None:
        while True:
            try:
                await self._subscriptions.remove_ended()
            except FAILURES as error:
                log.debug("ended push subscriptions stay for now: %s", type(error).__name__)
            await anyio.sleep(CLEAN_SECONDS)


def _waiting(approvals: MemoryObjectReceiveStream[Approval]) -> list[Approval]:
    """Return what was received meanwhile."""
    found: list[Approval] = []
    while approvals.statistics().current_buffer_used:
        found.append(approvals.receive_nowait())
    return found


def _notice(record: PushSubscriptionRecord, approvals: Sequence[Approval]) -> PushNotice:
    """Return the notice of some approvals: the block and the id of one, else their number."""
    content: dict[str, str | int] = {"language": record.language, "count": len(approvals)}
    first, *others = approvals
    if not others:
        content |= {"approval": first.id, "block": first.block}
    left = max((one.expires_at - datetime.now(UTC)).total_seconds() for one in approvals)
    return PushNotice(
        content=msgspec.json.encode(content),
        topic="approvals" if others else first.id,
        seconds=int(min(max(left, 1.0), LONGEST_SECONDS)),
    )
