"""The turns that answer requests of the Responses API: accepting a request, and finding its turn again by the id of the
response. Everything about a response is read from its turn, so there is no store of responses (ADR 66).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from starlette.requests import HTTPConnection

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import LoadConversation, Message
from trunkline.contracts.gateway.messages import DeletedResponse, MessageAccepted, SendMessage
from trunkline.contracts.turns.feed_events import JournalTranslator
from trunkline.contracts.turns.messages import ResponseRequest
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import is_owner, sender_of, services_of
from trunkline.workers.gateway.http.client_message_id import client_id
from trunkline.workers.gateway.http.openai.chat_completions import check_model
from trunkline.workers.gateway.http.openai.content import file_ids
from trunkline.workers.gateway.http.openai.conversation_resolver import ConversationResolver
from trunkline.workers.gateway.http.openai.messages import split_after_last_answer
from trunkline.workers.gateway.http.openai.responses.response_builder import (
    TURN_PREFIX,
    ResponseBuilder,
    parse_item_id,
)
from trunkline.workers.gateway.http.openai.responses.response_input import (
    UNKNOWN_ITEM,
    check_options,
    output_messages,
    parse_input,
    sent_back,
    to_message,
)
from trunkline.workers.gateway.http.openai.responses.response_schemas import (
    ConversationIn,
    ConversationOut,
    CreateResponse,
    InputItem,
    OutputItem,
    ResponseResource,
    with_parameters,
)
from trunkline.workers.gateway.http.openai.schemas import ContentPart
from trunkline.workers.gateway.http.uploaded_files import load_files
from trunkline.workers.gateway.turn_lookup import TurnState

PREFIX = "resp_"


@dataclass(frozen=True, slots=True)
class ResponseTurn:
    """A turn that answers a request. ``created_at`` is in Unix seconds."""

    conversation: str
    turn: str
    request: ResponseRequest
    names_conversation: bool = False

    @property
    def id(self) -> str:
        """The id of the response."""
        return response_id(self.turn)

    def builder(self, *, detail: bool) -> ResponseBuilder:
        """Return the builder of the response, which has no event yet."""
        asked = self.request
        resource = ResponseResource(
            id=self.id,
            created_at=asked.created_at,
            status="queued" if asked.background else "in_progress",
            model="",
            conversation=ConversationOut(id=self.conversation) if self.names_conversation else None,
            previous_response_id=asked.previous,
            store=asked.stored,
            background=asked.background,
        )
        return ResponseBuilder(with_parameters(resource, asked.parameters), self.turn, detail=detail)


@dataclass(frozen=True, slots=True)
class AcceptedResponse:
    """A request that was accepted just now, or before by the same client."""

    accepted: MessageAccepted
    turn: ResponseTurn
    resolver: ConversationResolver
    transcript: tuple[Message, ...]

    async def record(self, builder: ResponseBuilder) -> None:
        """Record the transcript that a client without ``previous_response_id`` will send back. Call this method before
        the client has the end of the response."""
        transcript = (*self.transcript, *output_messages(builder.resource.output))
        await self.resolver.record_transcript(transcript, self.accepted)


def response_id(turn: str) -> str:
    """Return the id of the response of a turn."""
    return PREFIX + turn.removeprefix(TURN_PREFIX)


async def accept_response(
    connection: HTTPConnection,
    request: CreateResponse,
    *,
    retry_count: str | None,
    unstored: Mapping[str, str] | None = None,
) -> AcceptedResponse:
    """Accept a request. ``unstored`` are the turns of responses that only this connection can continue, by the ids of
    the responses. Raises InvalidField, and Refusal as ``MessageService.send`` does."""
    check_options(request)
    request = await _with_referenced_items(connection, request)
    messages = parse_input(request, await load_files(connection, file_ids(input_contents(request.input))))
    previous = await find_previous(connection, request.previous_response_id, unstored or {})
    named = _named_conversation(request)
    adds_items = previous is not None or named is not None
    history, said = ([], messages) if adds_items else split_after_last_answer(messages)
    message = replace(
        to_message(request, said), client_id=client_id(connection, dict(request.metadata or {}))
    )
    await check_model(connection, message.block)
    resolver = ConversationResolver(
        connection, message, named=named, previous=previous, retry_count=retry_count, adds_items=adds_items
    )
    accepted = await _send(resolver, history, said)
    turn = ResponseTurn(
        accepted.conversation,
        accepted.turn,
        await _first_request(connection, accepted, message),
        names_conversation=named is not None,
    )
    return AcceptedResponse(accepted, turn, resolver, (*history, *said))


def input_contents(items: str | Sequence[InputItem]) -> Iterator[str | Sequence[ContentPart] | None]:
    """Yield the contents that may name uploaded files."""
    for item in () if isinstance(items, str) else items:
        yield from (item.content, item.output)


def _named_conversation(request: CreateResponse) -> str | None:
    named = request.conversation
    return named.id if isinstance(named, ConversationIn) else named


async def _first_request(
    connection: HTTPConnection, accepted: MessageAccepted, message: SendMessage
) -> ResponseRequest:
    """Return the request that began the turn; for a repeat that is the first one."""
    asked = message.response or ResponseRequest()
    if not accepted.duplicate:
        return asked
    state = await services_of(connection).turns.find(accepted.turn)
    return asked if state is None else state.request.response or asked


async def _with_referenced_items(connection: HTTPConnection, request: CreateResponse) -> CreateResponse:
    """Return the request with the items of stored responses in place of their references."""
    if isinstance(request.input, str):
        return request
    outputs: dict[str, tuple[OutputItem, ...]] = {}
    items: list[InputItem] = []
    for number, item in enumerate(request.input):
        place = parse_item_id(item.id or "") if item.type == "item_reference" else None
        if place is not None:
            turn, at = place
            if turn not in outputs:
                outputs[turn] = await _stored_output(connection, turn)
            if at >= len(outputs[turn]):
                raise InvalidField(("input", number, "id"), UNKNOWN_ITEM)
            item = sent_back(outputs[turn][at])
        items.append(item)
    return replace(request, input=items)


async def _stored_output(connection: HTTPConnection, turn: str) -> tuple[OutputItem, ...]:
    try:
        return (await read_response(connection, await find_response(connection, response_id(turn)))).output
    except InvalidField:
        return ()


async def _send(
    resolver: ConversationResolver, history: Sequence[Message], said: Sequence[Message]
) -> MessageAccepted:
    """Send the message. A wrong message is reported as a part of the input."""
    try:
        return await resolver.send(history, said)
    except InvalidField as wrong:
        if wrong.field[:1] == ("messages",):
            raise InvalidField(("input",), wrong.reason, ErrorCode(wrong.code)) from wrong
        raise


async def find_previous(
    connection: HTTPConnection, id: str | None, unstored: Mapping[str, str]
) -> TurnState | None:
    """Return the turn of ``previous_response_id``, None without one. ``unstored`` is as in ``accept_response``. Raises
    InvalidField."""
    if id is None:
        return None
    if id in unstored:
        state = await services_of(connection).turns.find(unstored[id])
        if state is not None and await _may_read(connection, state):
            return state
    try:
        return await find_response(connection, id)
    except InvalidField as missing:
        raise InvalidField(
            ("previous_response_id",), missing.reason, named="previous_response_not_found"
        ) from missing


async def messages_through(connection: HTTPConnection, previous: TurnState) -> Sequence[Message]:
    """Return the messages of a response's conversation up to the end of its turn: what followed belongs to other
    responses."""
    asked = previous.request
    load = LoadConversation(block=asked.block, conversation=asked.conversation)
    messages = (await services_of(connection).conversations.load(load)).messages
    ends = [number for number, message in enumerate(messages, start=1) if message.turn == asked.turn]
    return messages[: ends[-1]] if ends else messages


async def find_response(connection: HTTPConnection, id: str) -> TurnState:
    """Return the turn of a stored response. Raises InvalidField with ``not_found`` for a response that does not exist,
    was not stored, was deleted, belongs to another identity, or is of a block that the sender may not read."""
    services = services_of(connection)
    turn = TURN_PREFIX + id.removeprefix(PREFIX) if id.startswith(PREFIX) else ""
    state = await services.turns.find(turn)
    if (
        state is None
        or isinstance(state.request.response, UnsetType)
        or not state.request.response.stored
        or state.request.actor != sender_of(connection).identity.id
        or not await _may_read(connection, state)
        or await services.deleted_responses.get(turn) is not None
    ):
        raise InvalidField("response_id", "There is no response with this id.", ErrorCode.NOT_FOUND)
    return state


async def _may_read(connection: HTTPConnection, state: TurnState) -> bool:
    """Report whether the sender may still read the block of a turn."""
    access, identity = services_of(connection).access, sender_of(connection).identity
    return await access.may(identity, TokenScope.READ, state.request.block)


async def delete_response(connection: HTTPConnection, id: str) -> None:
    """Make a response impossible to retrieve and to continue by its id. Its conversation stays in memory. Raises
    InvalidField as ``find_response`` does."""
    turn = (await find_response(connection, id)).request.turn
    await services_of(connection).deleted_responses.put(turn, DeletedResponse(turn=turn))


def response_turn(state: TurnState) -> ResponseTurn:
    """Return the response of a turn that was found."""
    assert state.request.response is not UNSET
    asked = state.request.response or ResponseRequest()
    return ResponseTurn(state.request.conversation, state.request.turn, asked)


async def read_response(connection: HTTPConnection, state: TurnState) -> ResponseResource:
    """Return the response as the turn's journal has it."""
    builder = response_turn(state).builder(detail=is_owner(connection))
    if not state.entries:
        return builder.resource
    if state.finished is not None:
        last = await services_of(connection).bus.last(
            JOURNAL, conversation=state.request.conversation, turn=state.request.turn
        )
        builder.completed_at = int(last.envelope.time.timestamp()) if last is not None else int(time.time())
    for _ in builder.begin():
        pass
    translator = JournalTranslator()
    for entry in state.entries:
        for numbered in translator.translate(entry):
            for _ in builder.add(numbered.event):
                pass
    return builder.resource
