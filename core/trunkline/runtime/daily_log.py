"""Logs that a stream stores first and memory then copies into one file for each day: the audit log, the cost ledger and
the events of budgets.
"""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Generic, TypeVar

from trunkline.contracts.audit.messages import AuditEntry
from trunkline.contracts.audit.subjects import AUDIT
from trunkline.contracts.costs.messages import BudgetEvent, CostEntry
from trunkline.contracts.costs.subjects import BUDGET_EVENT, COST
from trunkline.contracts.memory.paths import AUDIT_FOLDER, BUDGET_FOLDER, COST_FOLDER
from trunkline_bus import Bus, DecodeError, Topic
from trunkline_bus.streams.admin import raw_history

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DailyLog(Generic[T]):
    """A log. The day of an entry's time ``at`` in UTC chooses its file below ``folder`` in memory."""

    name: str
    topic: Topic[T]
    folder: str

    def file_of(self, entry: Any) -> str:
        """Return the file of an entry."""
        return f"{self.folder}/{entry.at.astimezone(UTC):%Y-%m-%d}.jsonl"

    async def stored(self, bus: Bus, *, after: int = 0) -> AsyncIterator[tuple[int, T | None]]:
        """Yield the entries of the stream with their sequence, the oldest first. An entry that cannot be decoded is
        None. Raises BusError.
        """
        async for record in raw_history(bus, self.topic, after=after):
            try:
                yield (
                    record.seq,
                    (await bus.inbound.open(self.topic.payload, record.data, record.headers)).data,
                )
            except DecodeError as error:
                log.error("entry %d of the %s cannot be decoded: %s", record.seq, self.name, error)
                yield record.seq, None


AUDIT_LOG: DailyLog[AuditEntry] = DailyLog("audit log", AUDIT, AUDIT_FOLDER)
COST_LEDGER: DailyLog[CostEntry] = DailyLog("cost ledger", COST, COST_FOLDER)
BUDGET_LOG: DailyLog[BudgetEvent] = DailyLog("log of budgets", BUDGET_EVENT, BUDGET_FOLDER)
