"""A turn's events as a stream, from the position that a reconnecting client names."""

from starlette.requests import Request

from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import app_state_of
from trunkline.workers.gateway.http.block_watch import until_lost
from trunkline.workers.gateway.http.blocking_approvals import watch_blocking_approvals
from trunkline.workers.gateway.http.events import encode_events, encode_waiting
from trunkline.workers.gateway.http.sse import EventStream


def watch_turn(request: Request, accepted: MessageAccepted, *, fresh: bool = False) -> EventStream:
    """Return the response that streams a turn's events from the client's position on. See ``FeedReader`` for
    ``fresh``."""
    parts, after = app_state_of(request), feed_position(request)
    try:
        bus, conversation, turn = parts.services.bus, accepted.conversation, accepted.turn
        watch = FeedReader(bus, conversation, turn, after=after, fresh=fresh, poll_limiter=parts.poll_limiter)
    except ValueError as error:
        name = "from" if request.query_params.get("from") else "Last-Event-ID"
        raise InvalidField(name, "It is the id of an event.") from error
    headers = {"X-Conversation-ID": accepted.conversation, "X-Turn-ID": accepted.turn}
    waiting = encode_waiting(watch_blocking_approvals(parts, watch, accepted))
    return EventStream(
        encode_events(request, watch),
        closing=parts.closing,
        headers=headers,
        beside=waiting,
        until=until_lost(request, accepted.block),
    )


def feed_position(request: Request) -> str:
    """Return the position that a reconnecting client sends: ``?from=``, else ``Last-Event-ID``."""
    return request.query_params.get("from") or request.headers.get("last-event-id") or ""
