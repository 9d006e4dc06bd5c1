"""``GET /api/turns/{id}/trace``: the timeline of a turn, as ``trunkline trace`` draws it."""

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.workers.messages import SpanRecord
from trunkline.telemetry.trace_tree import SpanLine, span_title, span_worker, tree_lines
from trunkline.workers.gateway.http.app_state import is_owner, sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.overview_schemas import TraceSpan, TurnTimeline
from trunkline.workers.gateway.http.scoped_route import ScopedRoute


async def show(request: Request) -> Response:
    """``GET /api/turns/{id}/trace``"""
    turn, whole = request.path_params["id"], is_owner(request)
    found = await services_of(request).traces.trace(turn, sender_of(request))
    spans = tuple(_span(line, whole) for line in tree_lines(found.spans))
    return json_response(TurnTimeline(turn=turn, trace=found.trace, spans=spans))


ROUTES = (ScopedRoute("/api/turns/{id}/trace", show, methods=["GET"], scope=TokenScope.READ),)


def _span(line: SpanLine, whole: bool) -> TraceSpan:
    span: SpanRecord = line.span
    return TraceSpan(
        id=span.span_id,
        parent=span.parent_id,
        depth=line.depth,
        title=span_title(span),
        worker=span_worker(span),
        start=line.start,
        seconds=line.length,
        status=span.status,
        notes=line.notes,
        unfinished=span.unfinished,
        attributes=span.attributes if whole else {},
    )
