"""The schemas of costs and budgets."""

from datetime import datetime

from trunkline.contracts.costs.messages import BudgetRecord
from trunkline.contracts.costs.report_messages import CostSum, Grouping
from trunkline.workers.gateway.http.schemas.schema_base import Out


class CostSums(Out, frozen=True, kw_only=True):
    """The costs of requests to models since a time. ``rows`` has a sum for each day, block or other group; ``unpriced``
    names the models without a price, whose requests are in no sum. Costs are in micro-USD.
    """

    by: Grouping
    since: datetime
    rows: tuple[CostSum, ...]
    total: CostSum
    unpriced: tuple[str, ...] = ()


class BudgetItem(Out, BudgetRecord, frozen=True, kw_only=True):
    """A budget that was used up, or reset."""


class BudgetHistory(Out, frozen=True, kw_only=True):
    """The budgets that were used up or reset in the last 30 days, the newest first."""

    events: tuple[BudgetItem, ...]
