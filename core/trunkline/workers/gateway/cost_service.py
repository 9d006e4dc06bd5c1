"""The cost service: what models cost, and which budgets were used up or reset, in the blocks that a sender may read."""

from datetime import datetime

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.costs.messages import BudgetEvent
from trunkline.contracts.costs.report_messages import CostTotals, GetCosts, Grouping
from trunkline.contracts.costs.subjects import BUDGET_EVENT
from trunkline.runtime.block_access import BlockAccess, BlockRights
from trunkline.runtime.cost_report import CostReport, cost_report, entries_since
from trunkline.runtime.daily_log import COST_LEDGER
from trunkline.runtime.daily_log_reader import read_daily_log
from trunkline.workers.gateway.sender import Sender
from trunkline_bus import Bus


class CostService:
    """Reads the cost ledger. What belongs to no block, such as the budget of all blocks together, is for whoever may
    read every block. Methods raise Refusal, and BusError when the bus or memory does not answer.
    """

    def __init__(self, bus: Bus, access: BlockAccess) -> None:
        self._bus = bus
        self._access = access

    async def sums(self, request: GetCosts, sender: Sender) -> CostTotals:
        """Return the sums for a channel. Refused as ``report`` is."""
        found = await self.report(
            request.by, request.since, request.block, sender, conversation=request.conversation
        )
        return CostTotals(rows=found.rows, total=found.total, unpriced=found.unpriced)

    async def report(
        self,
        by: Grouping,
        since: datetime,
        block: str | None,
        sender: Sender,
        *,
        conversation: str | None = None,
    ) -> CostReport:
        """Return the sums since a time. Refused with ``not_found`` for a block that may not be read."""
        rights = await self._access.rights_of(sender.identity)
        if block is not None:
            rights.require(TokenScope.READ, block)
        ledger = await read_daily_log(self._bus, COST_LEDGER, since)
        entries = entries_since(ledger, since, block, conversation)
        return cost_report([one for one in entries if _may_see(rights, one.block)], by, since)

    async def budget_events(self, sender: Sender) -> list[BudgetEvent]:
        """Return the events of budgets of the last 30 days, the newest first."""
        rights = await self._access.rights_of(sender.identity)
        events = [stored.data async for stored in self._bus.history(BUDGET_EVENT)]
        return [one for one in reversed(events) if _may_see(rights, one.block)]


def _may_see(rights: BlockRights, block: str) -> bool:
    return rights.is_unlimited or (bool(block) and rights.may(TokenScope.READ, block))
