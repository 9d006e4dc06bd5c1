"""OpenAI's chat completions over the gateway's services. Each block is a model.

Trunkline runs its own tools and does not show their calls. Calls of the client's tools are returned to the client.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.blocks.messages import Block
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    TextDelta,
    TextReset,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.feed_reader import FeedReader
from trunkline.contracts.turns.messages import FinishReason
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.http.app_state import app_state_of, is_owner, sender_of, services_of
from trunkline.workers.gateway.http.block_watch import until_lost, while_readable
from trunkline.workers.gateway.http.blocking_approvals import (
    BlockingApproval,
    answer_unless_blocked,
    approval_text,
    watch_blocking_approvals,
)
from trunkline.workers.gateway.http.client_message_id import client_id
from trunkline.workers.gateway.http.openai.content import file_ids
from trunkline.workers.gateway.http.openai.conversation_resolver import (
    RETRY_COUNT_HEADER,
    ConversationResolver,
)
from trunkline.workers.gateway.http.openai.messages import (
    FINISH_REASONS,
    call_out,
    split_transcript,
    to_message,
    usage_out,
)
from trunkline.workers.gateway.http.openai.schemas import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionChunkWithUsage,
    ChatRequest,
    CompletionChoice,
    CompletionChunkChoice,
    Delta,
    ErrorObject,
    MessageOut,
    MessageWithCalls,
    Model,
    ModelList,
    UsageOut,
    error_object,
)
from trunkline.workers.gateway.http.request_reader import read_json
from trunkline.workers.gateway.http.responses import STATUS, error_code_for, json_response
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.sse import EventStream, encode
from trunkline.workers.gateway.http.unknown_block import unknown_block_error
from trunkline.workers.gateway.http.uploaded_files import load_files
from trunkline_bus import Refusal

OWNED_BY = "trunkline"
NO_RETRY = {"x-should-retry": "false"}
"""The header that stops OpenAI's clients from retrying an accepted message: a retry would be a second turn."""


async def chat_completions(request: Request) -> ASGIApp:
    """``POST /v1/chat/completions``"""
    parts = app_state_of(request)
    chat = await read_json(request, ChatRequest)
    files = await load_files(request, file_ids(message.content for message in chat.messages))
    history, said = split_transcript(chat, files)
    message = msgspec.structs.replace(
        to_message(chat, said), client_id=client_id(request, chat.metadata or {})
    )
    await check_model(request, message.block)
    resolver = ConversationResolver(
        request,
        message,
        named=request.headers.get("x-conversation-id") or None,
        retry_count=request.headers.get(RETRY_COUNT_HEADER),
    )
    accepted = await resolver.send(history, said)
    answer = _CompletionState(
        accepted, chat.model, resolver, (*history, *said), with_detail=is_owner(request)
    )
    fresh = not accepted.duplicate
    watch = FeedReader(
        parts.services.bus, accepted.conversation, accepted.turn, fresh=fresh, poll_limiter=parts.poll_limiter
    )
    headers = {"X-Conversation-ID": accepted.conversation, "X-Turn-ID": accepted.turn}
    if chat.stream:
        with_usage = chat.stream_options is not None and chat.stream_options.include_usage
        stream = _CompletionStream(answer, watch, with_usage)
        chunks, waiting = (
            stream.chunks(request),
            stream.blocking_chunks(watch_blocking_approvals(parts, watch, accepted)),
        )
        lost = until_lost(request, accepted.block)
        return EventStream(chunks, closing=parts.closing, headers=headers, beside=waiting, until=lost)

    async def reply() -> Response:
        return await answer_unless_blocked(
            _complete(answer, watch, headers),
            watch_blocking_approvals(parts, watch, accepted),
            lambda question: _waiting_completion(answer, watch, question, headers),
        )

    return await while_readable(request, accepted.block, reply)


async def list_models(request: Request) -> Response:
    """``GET /v1/models``"""
    found = await services_of(request).blocks.list_blocks(sender_of(request))
    return json_response(ModelList(object="list", data=tuple(_model(block) for block in found.blocks)))


async def get_model(request: Request) -> Response:
    """``GET /v1/models/{id}``"""
    name, blocks = request.path_params["id"], services_of(request).blocks
    try:
        return json_response(_model(await blocks.get_block(name, sender_of(request))))
    except Refusal as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        raise await _unknown_model(request, name) from error


async def check_model(connection: HTTPConnection, name: str | None) -> None:
    """Refuse a block that does not exist, which clients name as a model, and one in which the sender may not chat.
    Refused too when the block takes no messages."""
    blocks, sender = services_of(connection).blocks, sender_of(connection)
    try:
        await blocks.require(name or blocks.default, sender, TokenScope.CHAT)
        await blocks.check_accepts(name or blocks.default)
    except Refusal as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        raise await _unknown_model(connection, name or "") from error


async def _unknown_model(connection: HTTPConnection, name: str) -> InvalidField:
    blocks, sender = services_of(connection).blocks, sender_of(connection)
    return await unknown_block_error(blocks, sender, name, "model", named="model_not_found")


ROUTES = (
    ScopedRoute("/v1/chat/completions", chat_completions, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/v1/models", list_models, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/v1/models/{id}", get_model, methods=["GET"], scope=TokenScope.READ),
)


def _model(block: Block) -> Model:
    created = int(block.created_at.timestamp())
    return Model(id=block.name, object="model", created=created, owned_by=OWNED_BY)


@dataclass(slots=True)
class _CompletionState:
    """The state of one completion: the parts that the client has received and will receive."""

    accepted: MessageAccepted
    model: str
    resolver: ConversationResolver
    transcript: tuple[Message, ...]
    with_detail: bool
    """True when the client may see why a turn failed."""
    created: int = field(default_factory=lambda: int(time.time()))
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.accepted.turn}"

    async def record(self, text: str) -> None:
        """Record the transcript that the client will send back. Call this method before the client has the end of the
        answer."""
        assistant_message = Message(id="", role="assistant", content=text, tool_calls=tuple(self.calls))
        await self.resolver.record_transcript((*self.transcript, assistant_message), self.accepted)


async def _complete(answer: _CompletionState, watch: FeedReader, headers: dict[str, str]) -> Response:
    """Return the answer in one piece."""
    ended = None
    async with aclosing(watch.events()) as events:
        async for event in events:
            match event:
                case ToolStarted(client=True, call=call):
                    answer.calls.append(call)
                case ApprovalRequested():  # the turn continues after the decision; the client cannot wait that long
                    return await _waiting_completion(answer, watch, event, headers)
                case TurnEnded():
                    ended = event
    if ended is None or ended.code is not None:
        code = ended.code if ended is not None and ended.code is not None else ErrorCode.INTERNAL
        return json_response(_failed(answer, code, ended), STATUS[code], {**headers, **NO_RETRY})
    await answer.record(watch.text)
    calls = tuple(call_out(call, None) for call in answer.calls)
    message = (
        MessageWithCalls(role="assistant", content=watch.text or None, tool_calls=calls)
        if calls
        else MessageOut(role="assistant", content=watch.text)
    )
    return json_response(_completion(answer, message, ended.reason, ended.usage), headers=headers)


async def _waiting_completion(
    answer: _CompletionState, watch: FeedReader, event: ApprovalRequested, headers: dict[str, str]
) -> Response:
    """Return the text so far, and the approval that the turn waits for."""
    text = "\n\n".join(filter(None, (watch.text, approval_text(event))))
    await answer.record(text)
    message = MessageOut(role="assistant", content=text)
    return json_response(_completion(answer, message, "stop", Usage()), headers=headers)


def _failed(answer: _CompletionState, code: ErrorCode, ended: TurnEnded | None) -> ErrorObject:
    return error_object(code, detail=ended.detail if ended is not None and answer.with_detail else "")


def _completion(
    answer: _CompletionState, message: MessageOut | MessageWithCalls, reason: FinishReason, usage: Usage
) -> ChatCompletion:
    return ChatCompletion(
        id=answer.id,
        object="chat.completion",
        created=answer.created,
        model=answer.model,
        choices=(CompletionChoice(index=0, message=message, finish_reason=FINISH_REASONS[reason]),),
        usage=usage_out(usage),
    )


class _CompletionStream:
    """The answer chunk by chunk.

    OpenAI's clients cannot take text back. After a reset the stream continues only when the new text begins
    with the text that was sent; otherwise it ends with an error.
    """

    def __init__(self, answer: _CompletionState, watch: FeedReader, with_usage: bool) -> None:
        self._answer = answer
        self._watch = watch
        self._with_usage = with_usage
        self._sent = ""
        self._received = ""
        """Everything that the client received: the text and the texts of approvals."""

    async def chunks(self, request: Request) -> AsyncGenerator[bytes, None]:
        try:
            yield self._chunk(Delta(role="assistant", content=""))
            async with aclosing(self._watch.events()) as events:
                async for event in events:
                    match event:
                        case TextDelta() | TextReset():
                            if delta := self._unsent_text():
                                yield self._text_chunk(delta)
                        case ToolStarted(client=True, call=call):
                            yield self._chunk(Delta(tool_calls=(call_out(call, len(self._answer.calls)),)))
                            self._answer.calls.append(call)
                        case ApprovalRequested():
                            yield self._text_chunk(f"\n\n{approval_text(event)}\n\n")
                            await self._answer.record(self._received)  # the client may leave before the end
                        case TurnEnded():
                            for chunk in await self._end(event):
                                yield chunk
        except Exception as error:
            yield encode(error_object(error_code_for(request, error)))

    async def blocking_chunks(
        self, questions: AsyncGenerator[BlockingApproval, None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the approvals that block the turn, as text."""
        async with aclosing(questions):
            async for question in questions:
                yield self._text_chunk(f"{approval_text(question)}\n\n")
                await self._answer.record(self._received)

    def _text_chunk(self, text: str) -> bytes:
        self._received += text
        return self._chunk(Delta(content=text))

    def _unsent_text(self) -> str:
        """Return the text that the client lacks; empty while a retried answer is shorter than the text that
        was sent."""
        text = self._watch.text
        if self._sent.startswith(text):
            return ""
        if not text.startswith(self._sent):
            raise refusal(ErrorCode.PROVIDER_ERROR)
        news, self._sent = text[len(self._sent) :], text
        return news

    async def _end(self, ended: TurnEnded) -> list[bytes]:
        if ended.code is not None:
            return [encode(_failed(self._answer, ended.code, ended))]
        if self._sent != self._watch.text:
            raise refusal(ErrorCode.PROVIDER_ERROR)
        await self._answer.record(self._received)
        last = [self._chunk(Delta(), finish=ended.reason)]
        if self._with_usage:
            last.append(self._chunk(None, usage=usage_out(ended.usage)))
        return [*last, encode("[DONE]")]

    def _chunk(
        self, delta: Delta | None, *, finish: FinishReason | None = None, usage: UsageOut | None = None
    ) -> bytes:
        """Return a chunk; without a delta it has no choice."""
        reason = FINISH_REASONS[finish] if finish else None
        choices = (
            () if delta is None else (CompletionChunkChoice(index=0, delta=delta, finish_reason=reason),)
        )
        answer = self._answer
        if self._with_usage:
            return encode(
                ChatCompletionChunkWithUsage(
                    id=answer.id,
                    object="chat.completion.chunk",
                    created=answer.created,
                    model=answer.model,
                    choices=choices,
                    usage=usage,
                )
            )
        return encode(
            ChatCompletionChunk(
                id=answer.id,
                object="chat.completion.chunk",
                created=answer.created,
                model=answer.model,
                choices=choices,
            )
        )
