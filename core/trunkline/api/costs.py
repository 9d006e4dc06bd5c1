"""Costs: the cost ledger, the events of budgets, and the counters that processes share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.contracts.costs.budget_text import budget_owner as budget_owner
    from trunkline.contracts.costs.budget_text import describe_budget_event as describe_budget_event
    from trunkline.contracts.costs.budget_text import format_amount as format_amount
    from trunkline.contracts.costs.messages import BudgetEvent as BudgetEvent
    from trunkline.contracts.costs.messages import BudgetMeasure as BudgetMeasure
    from trunkline.contracts.costs.messages import CostEntry as CostEntry
    from trunkline.contracts.costs.messages import RequestOpened as RequestOpened
    from trunkline.contracts.costs.subjects import BUDGET_COUNTER as BUDGET_COUNTER
    from trunkline.contracts.costs.subjects import BUDGET_EVENT as BUDGET_EVENT
    from trunkline.contracts.costs.subjects import COST as COST
    from trunkline.contracts.costs.subjects import OPENED_REQUEST as OPENED_REQUEST
    from trunkline.contracts.memory.paths import BUDGET_FOLDER as BUDGET_FOLDER
    from trunkline.contracts.memory.paths import COST_FOLDER as COST_FOLDER
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
