"""OpenAI's Responses API over the gateway's services. A response is a turn, and each block is a model.

Trunkline runs its own tools and does not show their calls. Calls of the client's tools are returned to the client.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.gateway.messages import CancelTurn
from trunkline.contracts.turns.feed_messages import ApprovalRequested, TurnEnded
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import AppState, app_state_of, is_owner, sender_of, services_of
from trunkline.workers.gateway.http.block_watch import until_lost, while_readable
from trunkline.workers.gateway.http.blocking_approvals import (
    BlockingApproval,
    answer_unless_blocked,
    approval_text,
    watch_blocking_approvals,
)
from trunkline.workers.gateway.http.openai.chat_completions import NO_RETRY
from trunkline.workers.gateway.http.openai.conversation_resolver import RETRY_COUNT_HEADER
from trunkline.workers.gateway.http.openai.responses.response_builder import ResponseBuilder
from trunkline.workers.gateway.http.openai.responses.response_events import ResponseEvent
from trunkline.workers.gateway.http.openai.responses.response_input import input_items
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    CreateResponse,
    InputItemList,
    ResponseDeleted,
)
from trunkline.workers.gateway.http.openai.responses.response_stream import Events, ResponseStream
from trunkline.workers.gateway.http.openai.responses.response_turns import (
    AcceptedResponse,
    ResponseTurn,
    accept_response,
    delete_response,
    find_response,
    read_response,
    response_turn,
)
from trunkline.workers.gateway.http.openai.schemas import error_object
from trunkline.workers.gateway.http.request_reader import bool_param, int_param, paginate, read_json
from trunkline.workers.gateway.http.responses import STATUS, json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.sse import EventStream, encode

CANCEL_SECONDS = 10.0
"""Seconds that a cancelled turn may take to end before the reply states that it still runs."""

MAX_NUMBER = 999_999_999


async def create_response(request: Request) -> ASGIApp:
    """``POST /v1/responses``"""
    parts = app_state_of(request)
    asked = await read_json(request, CreateResponse)
    accepted = await accept_response(request, asked, retry_count=request.headers.get(RETRY_COUNT_HEADER))
    builder = accepted.turn.builder(detail=is_owner(request))
    headers = {"X-Conversation-ID": accepted.turn.conversation, "X-Turn-ID": accepted.turn.turn}
    if asked.background and not asked.stream:
        return json_response(builder.resource, headers=headers)
    watch = watch_response(parts, accepted.turn, fresh=not accepted.accepted.duplicate)
    if asked.stream:
        stream = ResponseStream(builder, watch, accepted)
        blocking = (
            None if asked.background else _encoded(stream.blocking_events(_questions(parts, watch, accepted)))
        )
        chunks = _with_done(stream.events(request))
        lost = until_lost(request, accepted.accepted.block)
        return EventStream(chunks, closing=parts.closing, headers=headers, beside=blocking, until=lost)

    async def reply() -> Response:
        return await answer_unless_blocked(
            _complete(accepted, builder, watch, headers),
            _questions(parts, watch, accepted),
            lambda question: _blocked(accepted, builder, question, headers),
        )

    return await while_readable(request, accepted.accepted.block, reply)


async def get_response(request: Request) -> ASGIApp:
    """``GET /v1/responses/{id}``"""
    state = await find_response(request, request.path_params["id"])
    after = int_param(request, "starting_after", -1, least=0, most=MAX_NUMBER)
    if not bool_param(request, "stream"):
        return json_response(await read_response(request, state))
    turn, parts = response_turn(state), app_state_of(request)
    if after >= 0 and not turn.request.background:
        raise InvalidField(
            "starting_after", "Only the stream of a response in the background can be resumed."
        )
    builder = turn.builder(detail=is_owner(request))
    stream = ResponseStream(builder, watch_response(parts, turn), after=after)
    headers = {"X-Conversation-ID": turn.conversation, "X-Turn-ID": turn.turn}
    chunks, lost = _with_done(stream.events(request)), until_lost(request, state.request.block)
    return EventStream(chunks, closing=parts.closing, headers=headers, until=lost)


async def cancel_response(request: Request) -> Response:
    """``POST /v1/responses/{id}/cancel``"""
    id, services = request.path_params["id"], services_of(request)
    turn = (await find_response(request, id)).request.turn
    await services.messages.cancel(CancelTurn(turn=turn), sender_of(request))
    state = await services.turns.wait_for_end(turn, CANCEL_SECONDS) or await find_response(request, id)
    return json_response(await read_response(request, state))


async def remove_response(request: Request) -> Response:
    """``DELETE /v1/responses/{id}``"""
    await delete_response(request, request.path_params["id"])
    return json_response(ResponseDeleted(id=request.path_params["id"]))


async def list_input_items(request: Request) -> Response:
    """``GET /v1/responses/{id}/input_items``"""
    asked = (await find_response(request, request.path_params["id"])).request
    history = () if asked.fork is not None else asked.history or ()
    items = list(input_items((*history, *(asked.preceding or ()), asked.message)))
    page, has_more = paginate(request, items, [item.id for item in items], most=100, default=20)
    return json_response(
        InputItemList(
            data=tuple(page),
            first_id=page[0].id if page else None,
            last_id=page[-1].id if page else None,
            has_more=has_more,
        )
    )


ROUTES = (
    ScopedRoute("/v1/responses", create_response, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/responses/{id}", get_response, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/v1/responses/{id}", remove_response, methods=["DELETE"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/responses/{id}/cancel", cancel_response, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/responses/{id}/input_items", list_input_items, methods=["GET"], scope=TokenScope.READ),
)


def watch_response(parts: AppState, turn: ResponseTurn, *, fresh: bool = False) -> FeedReader:
    """Return the reader of a response's turn, from its beginning. See ``FeedReader`` for ``fresh``."""
    bus, limiter = parts.services.bus, parts.poll_limiter
    return FeedReader(bus, turn.conversation, turn.turn, fresh=fresh, poll_limiter=limiter)


def _questions(
    parts: AppState, watch: FeedReader, accepted: AcceptedResponse
) -> AsyncGenerator[BlockingApproval, None]:
    return watch_blocking_approvals(parts, watch, accepted.accepted)


async def _complete(
    accepted: AcceptedResponse, builder: ResponseBuilder, watch: FeedReader, headers: dict[str, str]
) -> Response:
    """Return the response in one piece. A turn that waits for a person is returned as it is: it continues after the
    decision, and the client cannot wait that long."""
    for _ in builder.begin():
        pass
    ended = None
    async with aclosing(watch.events()) as events:
        async for event in events:
            if isinstance(event, TurnEnded):
                ended, builder.completed_at = event, int(time.time())
            for _ in builder.add(event):
                pass
            if isinstance(event, ApprovalRequested):
                break
    if ended is not None and ended.code is not None:
        detail = builder.resource.error.message if builder.resource.error is not None else ""
        failed = error_object(ended.code, message=detail)
        return json_response(failed, STATUS[ended.code], {**headers, **NO_RETRY})
    await accepted.record(builder)
    return json_response(builder.resource, headers=headers)


async def _blocked(
    accepted: AcceptedResponse, builder: ResponseBuilder, question: BlockingApproval, headers: dict[str, str]
) -> Response:
    for _ in builder.say(approval_text(question)):
        pass
    await accepted.record(builder)
    return json_response(builder.resource, headers=headers)


async def _with_done(events: AsyncGenerator[Events, None]) -> AsyncGenerator[bytes, None]:
    """Yield the encoded events, and the mark that ends a stream of the Open Responses specification."""
    async with aclosing(_encoded(events)) as chunks:
        async for chunk in chunks:
            yield chunk
    yield encode("[DONE]")


async def _encoded(events: AsyncGenerator[Events, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for some in events:
            if some:
                yield b"".join(map(_encode, some))


def _encode(event: ResponseEvent) -> bytes:
    return encode(event, event=event.event_type)
