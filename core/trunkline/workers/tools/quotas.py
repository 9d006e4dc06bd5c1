"""The daily use counts of policies with a limit, kept on the bus for all tools workers together.

A count is written by compare-and-set and never exceeds its limit. When a use cannot be counted, the call is refused.
"""

import logging
from collections.abc import Iterable
from datetime import datetime

from trunkline.contracts.policies.messages import Policy, QuotaUsage
from trunkline.contracts.tools.subjects import QUOTA_BUCKET
from trunkline.errors import ToolError
from trunkline.policy import quota_day
from trunkline_bus import Bus, BusError, KeyValueEntry, SequenceConflict, key_of

log = logging.getLogger(__name__)

ATTEMPTS = 100
"""Attempts to update a count that other workers change concurrently."""


class Quotas:
    """Reads and increments the counts. This process keeps no count, so a restart loses nothing."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = bus.kv(QUOTA_BUCKET)

    async def used(self, policies: Iterable[Policy], now: datetime) -> dict[str, int | None]:
        """Return the number of uses of each policy today; None when it cannot be read."""
        counts: dict[str, int | None] = {}
        for policy in policies:
            try:
                counts[policy.id] = _times(await self._bucket.get(_key(policy, now)))
            except (BusError, ValueError) as error:
                log.error("the uses of the policy %s cannot be read: %s", policy.id, error)
                counts[policy.id] = None
        return counts

    async def take(self, policy: Policy, now: datetime) -> None:
        """Count one use.

        Raises:
          ToolError: the daily limit is reached, or the use cannot be counted.
        """
        most = policy.conditions.max_per_day
        try:
            for _ in range(ATTEMPTS):
                entry = await self._bucket.get(_key(policy, now))
                if most is not None and _times(entry) >= most:
                    raise ToolError(
                        f"A policy limits this call to {most} times a day, and today's limit is reached. "
                        "Nothing was run.",
                        kind="rate_limited",
                    )
                try:
                    one_more = QuotaUsage(times=_times(entry) + 1)
                    await self._bucket.update(_key(policy, now), one_more, entry.revision if entry else 0)
                    return
                except SequenceConflict:
                    continue
        except (BusError, ValueError) as error:
            log.error("the use of the policy %s cannot be counted: %s", policy.id, error)
        raise ToolError(
            "A policy limits this call to a number of times a day, and uses cannot be counted now. Nothing was run.",
            kind="unavailable",
        )


def _times(entry: KeyValueEntry[QuotaUsage] | None) -> int:
    return entry.value.times if entry is not None and entry.value is not None else 0


def _key(policy: Policy, now: datetime) -> str:
    return f"{key_of('quota', policy.id)}-{quota_day(policy.conditions, now)}"
