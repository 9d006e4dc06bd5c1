"""The costs of models under ``/api/costs``, and the history of budgets under ``/api/budgets``."""

from datetime import UTC, datetime, timedelta
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.costs.report_messages import Grouping
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import choice_param, datetime_param
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.cost_schemas import BudgetHistory, BudgetItem, CostSums
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

DEFAULT_RANGE, LONGEST_RANGE = timedelta(days=30), timedelta(days=366)
"""The default and the longest time since ``since``: one request reads the files of all days."""


async def costs(request: Request) -> Response:
    """``GET /api/costs?by=&since=&block=``"""
    by = cast("Grouping", choice_param(request, "by", get_args(Grouping)) or "day")
    now = datetime.now(UTC)
    since = datetime_param(request, "since") or now - DEFAULT_RANGE
    if now - since > LONGEST_RANGE:
        raise InvalidField("since", f"It is at most {LONGEST_RANGE.days} days ago.")
    block = request.query_params.get("block") or None
    report = await services_of(request).costs.report(by, since, block, sender_of(request))
    return json_response(
        CostSums(
            by=report.by, since=report.since, rows=report.rows, total=report.total, unpriced=report.unpriced
        )
    )


async def budget_history(request: Request) -> Response:
    """``GET /api/budgets/history``"""
    events = await services_of(request).costs.budget_events(sender_of(request))
    items = [
        BudgetItem(**{name: getattr(one, name) for name in BudgetItem.__struct_fields__}) for one in events
    ]
    return json_response(BudgetHistory(events=tuple(items)))


ROUTES = (
    ScopedRoute("/api/costs", costs, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/budgets/history", budget_history, methods=["GET"], scope=TokenScope.READ),
)
