"""``GET /api/audit``: the entries of the audit log, the newest first. Only for the owner."""

from datetime import UTC, datetime, timedelta
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.audit.messages import AuditDecision, AuditEntry, AuditEvent
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.tools.messages import Effect
from trunkline.runtime.audit_reader import AuditFilter, read_entries
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.request_reader import choice_param, datetime_param, int_param
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.platform_schemas import AuditItem, AuditPage
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

MOST_ENTRIES, DEFAULT_ENTRIES, LARGEST_OFFSET = 1_000, 100, 999_999_999
"""The largest and the default number of entries of a page, and the largest number that are skipped."""

DEFAULT_RANGE, LONGEST_RANGE = timedelta(days=1), timedelta(days=31)
"""The default and the longest time from ``since`` to ``until``: one request reads the files of all days in between."""

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""A time before all entries."""


async def list_entries(request: Request) -> Response:
    """``GET /api/audit?block=&tool=&effect=&event=&decision=&since=&until=&limit=&offset=``"""
    sender_of(request).require_administrator("reads the audit log")
    filters = _filters(request)
    limit = int_param(request, "limit", DEFAULT_ENTRIES, least=1, most=MOST_ENTRIES)
    offset = int_param(request, "offset", 0, least=0, most=LARGEST_OFFSET)
    found = (await read_entries(services_of(request).bus, filters))[::-1]
    entries = tuple(map(_item, found[offset : offset + limit]))
    return json_response(AuditPage(entries=entries, total=len(found)))


ROUTES = (ScopedRoute("/api/audit", list_entries, methods=["GET"], scope=TokenScope.OWNER),)


def _filters(request: Request) -> AuditFilter:
    until = datetime_param(request, "until")
    end = max(until or datetime.now(UTC), EARLIEST)
    since = datetime_param(request, "since") or end - DEFAULT_RANGE
    if end - since > LONGEST_RANGE:
        raise InvalidField("since", f"It is at most {LONGEST_RANGE.days} days before until, or before now.")
    return AuditFilter(
        since=since,
        until=until,
        block=request.query_params.get("block") or None,
        tool=request.query_params.get("tool") or None,
        effect=choice_param(request, "effect", get_args(Effect)),
        event=choice_param(request, "event", get_args(AuditEvent)),
        decision=choice_param(request, "decision", get_args(AuditDecision)),
    )


def _item(entry: AuditEntry) -> AuditItem:
    return AuditItem(**{name: getattr(entry, name) for name in AuditItem.__struct_fields__})
