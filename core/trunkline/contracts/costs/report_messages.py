"""Sums of the cost ledger, as the gateway returns them to channels."""

from datetime import datetime
from typing import Literal

import msgspec

from trunkline.contracts.conversations.messages import Usage
from trunkline_bus import Payload

Grouping = Literal["block", "day", "model", "purpose", "conversation"]


class CostSum(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of some entries. ``cost`` is in micro-USD. ``unpriced`` is the number of requests to models without a
    price, which ``cost`` does not contain; ``estimated`` the number whose vendor did not say what it counted.
    """

    key: str
    requests: int = 0
    usage: Usage = Usage()
    cost: int = 0
    unpriced: int = 0
    estimated: int = 0
    failed: int = 0

    @property
    def cached_share(self) -> float:
        """The share of the input tokens that vendors read from their prompt caches."""
        return self.usage.cached_tokens / self.usage.input_tokens if self.usage.input_tokens else 0.0


class GetCosts(Payload, frozen=True, kw_only=True, omit_defaults=True, tag="gateway.costs.v1"):
    """Ask what models cost since a time, in one block or conversation if it is given."""

    since: datetime
    by: Grouping = "block"
    block: str | None = None
    conversation: str | None = None


class CostTotals(Payload, frozen=True, kw_only=True, tag="gateway.cost-totals.v1"):
    """The sums by one property, and their total. ``unpriced`` names the models without a price."""

    rows: tuple[CostSum, ...]
    total: CostSum
    unpriced: tuple[str, ...] = ()
