"""How often policies with a number a day were used today: counted on the bus, for any number of tools workers.

A count is set by comparing and never goes past its limit. What cannot be counted refuses.
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
"""How often a count is tried that others change at the same time."""


class Quotas:
    """Reads and takes. Keeps nothing here, so a restart forgets nothing."""

    def __init__(self, bus: Bus) -> None:
        self._bucket = bus.kv(QUOTA_BUCKET)

    async def used(self, policies: Iterable[Policy], now: datetime) -> dict[str, int | None]:
        """How often each was used on its day; None when nobody can say."""
        counts: dict[str, int | None] = {}
        for policy in policies:
            try:
                counts[policy.id] = _times(await self._bucket.get(_key(policy, now)))
            except (BusError, ValueError) as error:
                log.error("it cannot be known how often the policy %s was used: %s", policy.id, error)
                counts[policy.id] = None
        return counts

    async def take(self, policy: Policy, now: datetime) -> None:
        """Use it once more.

        Raises:
            ToolError: its daily limit is reached, or it cannot be counted.
        """
        most = policy.conditions.max_per_day
        try:
            for _ in range(ATTEMPTS):
                entry = await self._bucket.get(_key(policy, now))
                if most is not None and _times(entry) >= most:
                    raise ToolError(
                        f"A policy limits it to {most} times a day, and today's limit is reached. Nothing was run.",
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
            "A policy limits it to a number of times a day, and it cannot be counted now. Nothing was run.",
            kind="unavailable",
        )


def _times(entry: KeyValueEntry[QuotaUsage] | None) -> int:
    return entry.value.times if entry is not None and entry.value is not None else 0


def _key(policy: Policy, now: datetime) -> str:
    return f"{key_of('quota', policy.id)}-{quota_day(policy.conditions, now)}"
