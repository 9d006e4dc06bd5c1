"""PA's Gateway API under ``/conversations``, implemented exactly, and what a model was sent in a conversation."""

from typing import get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.branch import BranchPoint
from trunkline.contracts.conversations.messages import (
    ArchivedChoice,
    ConversationSummary,
    DocumentFile,
    ForkedFrom,
    ListConversations,
    Message,
)
from trunkline.contracts.gateway.messages import (
    ChangeConversation,
    ConversationView,
    ExportConversation,
    ExportFormat,
    GetConversation,
    SendMessage,
)
from trunkline.contracts.turns.context_view import ContextView, GetContext
from trunkline.errors import ErrorCode
from trunkline.workers.gateway.errors import InvalidField
from trunkline.workers.gateway.http.app_state import app_state_of, sender_of, services_of
from trunkline.workers.gateway.http.client_message_id import client_id
from trunkline.workers.gateway.http.request_reader import (
    bool_param,
    choice_param,
    datetime_param,
    int_param,
    read_json,
)
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.conversation_schemas import (
    BranchItem,
    BranchList,
    BranchPlace,
    ConversationChanges,
    ConversationContext,
    ConversationDetail,
    ConversationItem,
    ConversationList,
    ConversationMessage,
    ForkOrigin,
    NewMessage,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.http.turn_stream import watch_turn
from trunkline.workers.gateway.http.unknown_block import unknown_block_error
from trunkline.workers.gateway.http.uploaded_files import load_files
from trunkline_bus import Refusal


async def new_conversation(request: Request) -> ASGIApp:
    """``POST /conversations/messages``"""
    return await _send(request, None)


async def next_message(request: Request) -> ASGIApp:
    """``POST /conversations/{id}/messages``"""
    return await _send(request, request.path_params["id"])


async def list_conversations(request: Request) -> Response:
    """``GET /conversations``"""
    include = request.query_params.get("include")
    if include not in (None, "one-shot"):
        raise InvalidField("include", "It is one-shot.")
    query = ListConversations(
        block=request.query_params.get("block"),
        limit=int_param(request, "limit", 20, least=1, most=100),
        offset=int_param(request, "offset", 0, least=0, most=999_999_999),
        search=request.query_params.get("search"),
        start=datetime_param(request, "from"),
        end=datetime_param(request, "to"),
        one_shot=include == "one-shot",
        pinned=bool_param(request, "pinned") if "pinned" in request.query_params else None,
        archived=choice_param(request, "archived", get_args(ArchivedChoice)),
    )
    page = await services_of(request).conversations.list_conversations(query, sender_of(request))
    lines = tuple(_conversation_item(summary) for summary in page.conversations)
    return json_response(
        ConversationList(conversations=lines, total=page.total, limit=page.limit, offset=page.offset)
    )


async def get_conversation(request: Request) -> Response:
    """``GET /conversations/{id}``"""
    include = request.query_params.get("include")
    if include not in (None, "tools"):
        raise InvalidField("include", "It is tools.")
    is_ours = include == "tools"  # the contract of Personal AI Architecture has neither tools nor blocks
    command = GetConversation(conversation=request.path_params["id"], include_tools=is_ours)
    view = await services_of(request).conversations.view(command, sender_of(request))
    return json_response(_detail(view, is_ours))


async def get_context(request: Request) -> Response:
    """``GET /api/conversations/{id}/context?turn=&texts=``"""
    texts = bool_param(request, "texts")
    turn = request.query_params.get("turn")
    command = GetContext(conversation=request.path_params["id"], turn=turn, texts=texts)
    return json_response(
        _context(await services_of(request).conversations.context(command, sender_of(request)))
    )


async def change(request: Request) -> Response:
    """``PATCH /conversations/{id}``"""
    wanted = await read_json(request, ConversationChanges)
    command = ChangeConversation(
        conversation=request.path_params["id"],
        title=wanted.title,
        pinned=wanted.pinned,
        archived=wanted.archived,
    )
    return json_response(
        _conversation_item(await services_of(request).conversations.change(command, sender_of(request)))
    )


async def get_branches(request: Request) -> Response:
    """``GET /api/conversations/{id}/branches``"""
    conversations = services_of(request).conversations
    found = await conversations.branches(request.path_params["id"], sender_of(request))
    return json_response(
        BranchList(
            points=tuple(_branch_place(point) for point in found.points),
            family=tuple(_conversation_item(summary) for summary in found.family),
        )
    )


async def export(request: Request) -> Response:
    """``GET /api/conversations/{id}/export?format=``: a file to save. A browser must not show what an agent wrote as a
    page of this origin."""
    wanted: ExportFormat = choice_param(request, "format", get_args(ExportFormat)) or "markdown"
    command = ExportConversation(conversation=request.path_params["id"], format=wanted)
    found = await services_of(request).conversations.export(command, sender_of(request))
    headers = {
        "content-disposition": f'attachment; filename="{found.name}"',
        "cache-control": "no-store",
    }
    return Response(found.text, media_type=found.media_type, headers=headers)


ROUTES = (
    ScopedRoute("/conversations/messages", new_conversation, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/conversations/{id}/messages", next_message, methods=["POST"], scope=TokenScope.CHAT),
    ScopedRoute("/conversations", list_conversations, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/conversations/{id}", get_conversation, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/conversations/{id}", change, methods=["PATCH"], scope=TokenScope.CHAT),
    ScopedRoute("/api/conversations/{id}/branches", get_branches, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/conversations/{id}/export", export, methods=["GET"], scope=TokenScope.READ),
    ScopedRoute("/api/conversations/{id}/context", get_context, methods=["GET"], scope=TokenScope.READ),
)


async def _send(request: Request, conversation: str | None) -> ASGIApp:
    parts = app_state_of(request)
    new = await read_json(request, NewMessage)
    block = _chosen_block(new)
    message = SendMessage(
        content=new.content,
        block=block,
        conversation=conversation,
        client_id=client_id(request, new.metadata),
        documents=await _uploaded_files(request, new.metadata),
        metadata=new.metadata,
        shows=new.shows,
    )
    try:
        accepted = await parts.services.messages.send(message, sender_of(request))
    except Refusal as error:
        if error.code != ErrorCode.NOT_FOUND or conversation is not None:
            raise
        blocks, sender = parts.services.blocks, sender_of(request)
        field = ("block",) if new.block is not None else ("metadata", "block")
        raise await unknown_block_error(blocks, sender, block or "", field) from error
    return watch_turn(request, accepted, fresh=not accepted.duplicate)


def _chosen_block(new: NewMessage) -> str | None:
    """Return the block that a message names, in either place. Raises InvalidField if the places name different ones: it
    must not reach the wrong agent."""
    named = new.metadata.get("block")
    if not isinstance(named, str | None):
        raise InvalidField(("metadata", "block"), "It is a block's name.")
    if new.block is not None and named not in (None, new.block):
        raise InvalidField(("block",), "It is another block than that of metadata.block.")
    return named if new.block is None else new.block


async def _uploaded_files(request: Request, metadata: dict[str, object]) -> tuple[DocumentFile, ...]:
    """Return the files that ``metadata.files`` names. Raises InvalidField if one of them is not there."""
    ids = metadata.get("files", [])
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InvalidField(("metadata", "files"), "It is a list of ids of uploaded files.")
    found = await load_files(request, ids)
    for number, id in enumerate(ids):
        if id not in found:
            raise InvalidField(("metadata", "files", number), "There is no uploaded file with this id.")
    return tuple(found.values())


def _branch_place(point: BranchPoint) -> BranchPlace:
    return BranchPlace(
        message_id=point.message,
        turn_id=point.turn,
        branches=tuple(
            BranchItem(conversation_id=one.conversation, turn_id=one.turn, written_at=one.written_at)
            for one in point.branches
        ),
    )


def _fork_origin(origin: ForkedFrom | None) -> ForkOrigin | None:
    if origin is None:
        return None
    return ForkOrigin(conversation_id=origin.conversation, turn_id=origin.turn, step=origin.step)


def _conversation_item(summary: ConversationSummary) -> ConversationItem:
    return ConversationItem(
        id=summary.id,
        title=summary.title,
        created_at=summary.created_at,
        updated_at=summary.updated_at,
        message_count=summary.message_count,
        pinned=summary.pinned,
        archived=summary.archived,
        forked_from=_fork_origin(summary.forked_from),
    )


def _detail(view: ConversationView, with_block: bool) -> ConversationDetail:
    return ConversationDetail(
        id=view.summary.id,
        block=view.summary.block if with_block else None,
        title=view.summary.title,
        messages=tuple(_conversation_message(message) for message in view.messages),
        created_at=view.summary.created_at,
        updated_at=view.summary.updated_at,
        pinned=view.summary.pinned,
        archived=view.summary.archived,
        forked_from=_fork_origin(view.summary.forked_from),
    )


def _context(view: ContextView) -> ConversationContext:
    return ConversationContext(
        turn_id=view.turn,
        step=view.step,
        model=view.model,
        context_window=view.window,
        input_tokens=view.input_tokens,
        cached_tokens=view.cached_tokens,
        parts=view.parts,
    )


def _conversation_message(message: Message) -> ConversationMessage:
    """Return a message; fields that PA does not have go to its metadata."""
    extra = {
        "turn_id": message.turn,
        "partial": message.partial or None,
        "error": message.error or None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "attachments": [
            {"name": file.name, "media_type": file.media_type, "size": file.size}
            for file in message.attachments
        ]
        or None,
        "files": [
            {"path": file.path, "name": file.name, "media_type": file.media_type, "size": file.size}
            for file in message.files
        ]
        or None,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
        or None,
    }
    return ConversationMessage(
        id=message.id,
        role=message.role,
        content=message.content,
        created_at=message.created_at,
        metadata={**message.metadata, **{name: value for name, value in extra.items() if value is not None}},
    )
