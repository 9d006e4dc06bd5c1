"""The OpenAPI document at ``/openapi.json``, generated from the structs of requests and replies, and from the scopes of
the routes.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.identity import IdentityRecord
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.files import PURPOSES
from trunkline.workers.gateway.http import openai_ability_schemas as abilities
from trunkline.workers.gateway.http import openai_files as files
from trunkline.workers.gateway.http import openai_schemas as openai
from trunkline.workers.gateway.http import response_compaction as compaction
from trunkline.workers.gateway.http import response_schemas as responses
from trunkline.workers.gateway.http import schemas as own
from trunkline.workers.gateway.http.openapi_parameters import described_parameters
from trunkline.workers.gateway.http.response_events import RESPONSE_EVENTS
from trunkline.workers.gateway.http.response_socket import SOCKET_EVENTS, CreateResponseEvent
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.route_table import described_routes
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

EVENTS: dict[str, tuple[type, ...]] = {
    "text-delta": (own.TextDeltaData,),
    "text-reset": (own.TextResetData,),
    "status": (own.StatusData,),
    "tool-call": (own.ToolCallData,),
    "tool-result": (own.ToolOutputData, own.ToolFailureData),
    "approval-request": (own.ApprovalRequestData,),
    "approval-settled": (own.ApprovalSettledData,),
    "done": (own.DoneData,),
    "error": (own.Error,),
}
"""The events of a turn and the schemas of their data. No other event is ever sent."""

EXTENSIONS = ("text-reset", "status", "approval-request", "approval-settled")
"""The events that PA's contract does not have. PA's clients ignore unknown events."""

EVENT_STREAM = "stream"
NO_CONTENT = "nothing"
PLAIN_TEXT = "plain"
FILE_CONTENT = "bytes"
FORM = "form"
AUDIO = "audio"

FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations")
"""The paths whose body is a form with a file."""

OPTIONAL = (own.CompactionOptions, own.CancelRequest, own.StopRequest, own.ResetRequest)
"""The bodies that can be left out."""

Operation = tuple[str, str, str, type | str | None, int, type | str]

OPERATIONS: tuple[Operation, ...] = (
    ("post", "/conversations/messages", "Begin a conversation.", own.NewMessage, 200, EVENT_STREAM),
    ("post", "/conversations/{id}/messages", "Continue a conversation.", own.NewMessage, 200, EVENT_STREAM),
    ("get", "/conversations", "A page of conversations.", None, 200, own.ConversationList),
    ("get", "/conversations/{id}", "A conversation.", None, 200, own.ConversationDetail),
    ("patch", "/conversations/{id}", "Name a conversation.", own.ConversationChanges, 200, own.ConversationItem),
    ("post", "/api/pair", "Exchange a pairing code for a token.", own.PairRequest, 200, own.PairReply),
    ("get", "/api/me", "The caller.", None, 200, own.Me),
    ("post", "/api/sign-out", "End the token of the request.", None, 200, own.SignedOut),
    ("get", "/api/identities", "The people and programs that may enter.", None, 200, own.IdentityStates),
    ("post", "/api/identities", "Let somebody in.", own.NewIdentity, 201, IdentityRecord),
    (
        "patch", "/api/identities/{id}", "Suspend, revoke, reactivate or rename an identity.",
        own.IdentityChanges, 200, IdentityRecord,
    ),
    ("get", "/api/tokens", "The access tokens.", None, 200, own.TokenStates),
    ("post", "/api/tokens", "Issue an access token.", own.TokenRequest, 201, own.IssuedToken),
    ("delete", "/api/tokens/{id}", "Revoke an access token.", None, 200, own.RevokedToken),
    ("get", "/api/audit", "A page of the audit log.", None, 200, own.AuditPage),
    ("get", "/api/panic", "Whether everything is stopped.", None, 200, own.PanicState),
    ("post", "/api/panic", "Stop everything.", None, 200, own.PanicReport),
    ("get", "/api/conversations/{id}/model", "Who answers in a conversation.", None, 200, own.AnsweringModel),
    ("put", "/api/conversations/{id}/model", "Choose the model.", own.ConversationModel, 200, own.AnsweringModel),
    (
        "post", "/api/conversations/{id}/compact", "Summarise the older messages for the model.",
        own.CompactionOptions, 202, own.Accepted,
    ),
    ("delete", "/api/conversations/{id}/compact", "Withdraw the newest summary.", None, 202, own.Accepted),
    (
        "get", "/api/conversations/{id}/context", "What a model was sent in a turn, part by part.",
        None, 200, own.ConversationContext,
    ),
    ("get", "/api/models", "The models that can be asked.", None, 200, own.ModelLists),
    ("get", "/api/turns/{id}", "The state of a turn.", None, 200, own.TurnDetail),
    ("get", "/api/turns/{id}/events", "A turn's events from a position on.", None, 200, EVENT_STREAM),
    ("post", "/api/turns/{id}/cancel", "End a turn.", own.CancelRequest, 202, own.TurnDetail),
    ("post", "/api/turns/{id}/steer", "Send a message into a running turn.", own.NewMessage, 202, own.Accepted),
    (
        "post", "/api/turns/{id}/fork", "Run a turn again from a step, in a new conversation.",
        own.ForkRequest, 202, own.Accepted,
    ),
    (
        "post", "/api/turns/{id}/calls/{call}/decision", "Decide about a parked call.",
        own.DecisionRequest, 202, own.TurnDetail,
    ),
    ("post", "/api/ws-ticket", "A ticket for a WebSocket.", None, 201, own.TicketIssued),
    ("get", "/api/approvals", "The calls that wait for a person.", None, 200, own.ApprovalStates),
    ("get", "/api/approvals/{id}", "One of them, with its arguments.", None, 200, own.ApprovalState),
    ("get", "/api/approvals/granted", "The grants.", None, 200, own.GrantStates),
    ("delete", "/api/approvals/granted/{id}", "Revoke a grant.", None, 204, NO_CONTENT),
    ("get", "/api/blocks", "The blocks.", None, 200, own.BlockStates),
    ("post", "/api/blocks", "Create a block.", own.NewBlock, 201, own.BlockState),
    ("get", "/api/blocks/{name}", "A block.", None, 200, own.BlockState),
    ("patch", "/api/blocks/{name}", "Change a block's settings.", own.BlockChanges, 200, own.BlockState),
    ("delete", "/api/blocks/{name}", "Cancel a block's turns and delete it.", None, 204, NO_CONTENT),
    ("post", "/api/blocks/{name}/start", "Switch a block on.", None, 200, own.BlockState),
    ("post", "/api/blocks/{name}/stop", "Switch a block off.", own.StopRequest, 200, own.BlockState),
    ("post", "/api/blocks/{name}/reset", "Reset a block.", own.ResetRequest, 200, own.BlockState),
    ("post", "/api/blocks/{name}/archive", "Cancel a block's turns and archive it.", None, 204, NO_CONTENT),
    ("post", "/api/blocks/{name}/restore", "Restore a block's newest archive.", None, 200, own.BlockState),
    ("get", "/api/blocks/{name}/shares", "With whom a block is shared.", None, 200, own.BlockShareList),
    ("get", "/api/blocks/{name}/shares/{identity}", "For what it is shared.", None, 200, own.BlockShare),
    ("put", "/api/blocks/{name}/shares/{identity}", "Share a block.", own.ShareRequest, 200, own.BlockShare),
    ("delete", "/api/blocks/{name}/shares/{identity}", "Stop sharing a block.", None, 204, NO_CONTENT),
    ("post", "/v1/chat/completions", "OpenAI's chat.", openai.ChatRequest, 200, openai.ChatCompletion),
    (
        "post", "/v1/responses", "OpenAI's Responses API.",
        responses.CreateResponse, 200, responses.ResponseResource,
    ),
    (
        "post", "/v1/responses/compact", "Compact an input or a conversation.",
        responses.CompactRequest, 200, compaction.CompactedResponse,
    ),
    ("get", "/v1/responses/{id}", "A response.", None, 200, responses.ResponseResource),
    ("delete", "/v1/responses/{id}", "Delete a response.", None, 200, responses.ResponseDeleted),
    ("post", "/v1/responses/{id}/cancel", "End a response.", None, 200, responses.ResponseResource),
    ("get", "/v1/responses/{id}/input_items", "The input of a response.", None, 200, responses.InputItemList),
    ("post", "/v1/files", "Upload a file for messages.", FORM, 200, files.FileObject),
    ("get", "/v1/files", "The uploaded files.", None, 200, files.FileList),
    ("get", "/v1/files/{id}", "An uploaded file.", None, 200, files.FileObject),
    ("get", "/v1/files/{id}/content", "The content of a file.", None, 200, FILE_CONTENT),
    ("delete", "/v1/files/{id}", "Delete an uploaded file.", None, 200, files.FileDeleted),
    ("get", "/v1/models", "The blocks as models.", None, 200, openai.ModelList),
    ("get", "/v1/models/{id}", "A block as a model.", None, 200, openai.Model),
    ("post", "/v1/embeddings", "Vectors of texts.", abilities.EmbeddingsRequest, 200, abilities.EmbeddingList),
    (
        "post", "/v1/audio/transcriptions", "The text of a recording.",
        abilities.TranscriptionForm, 200, abilities.TranscriptOut,
    ),
    (
        "post", "/v1/audio/translations", "The text of a recording, in English.",
        abilities.TranscriptionForm, 200, abilities.TranscriptOut,
    ),
    ("post", "/v1/audio/speech", "The audio of a text.", abilities.SpeechIn, 200, AUDIO),
    ("get", "/healthz", "The process is alive.", None, 200, own.Health),
    ("get", "/readyz", "Messages are accepted, answered and stored.", None, 200, own.Readiness),
    ("get", "/metrics", "Counters for Prometheus.", None, 200, PLAIN_TEXT),
)  # fmt: skip

ON_REQUEST: dict[tuple[str, str], tuple[str, ...]] = {
    ("post", "/v1/chat/completions"): (EVENT_STREAM,),
    ("post", "/v1/responses"): (EVENT_STREAM,),
    ("get", "/v1/responses/{id}"): (EVENT_STREAM,),
    ("post", "/v1/audio/transcriptions"): (PLAIN_TEXT, EVENT_STREAM),
    ("post", "/v1/audio/translations"): (PLAIN_TEXT, EVENT_STREAM),
    ("post", "/v1/audio/speech"): (EVENT_STREAM,),
}
"""What an operation also answers with, if the request asks for it: by ``stream``, ``stream_format`` or
``response_format``."""

SECURITY_SCHEMES: Mapping[str, Mapping[str, str]] = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
"""The headers that carry a credential. The cookie of a browser is for the server's own pages, so it is not among
them."""

UPLOAD_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": {"type": "string", "format": "binary"},
        "purpose": {"type": "string", "enum": list(PURPOSES)},
        "expires_after[anchor]": {"type": "string", "const": "created_at"},
        "expires_after[seconds]": {
            "type": "integer",
            "minimum": files.EXPIRY_RANGE[0],
            "maximum": files.EXPIRY_RANGE[1],
        },
    },
}
"""The form of an upload."""


async def get_openapi(request: Request) -> Response:
    """``GET /openapi.json``"""
    return json_response(openapi_document())


ROUTES = (ScopedRoute("/openapi.json", get_openapi, methods=["GET"], scope=TokenScope.READ),)


@cache
def openapi_document() -> dict[str, Any]:
    """The OpenAPI document."""
    types = {kind for operation in OPERATIONS for kind in operation[3:] if isinstance(kind, type)}
    types |= {kind for kinds in EVENTS.values() for kind in kinds} | {openai.ErrorObject, own.Error}
    types |= {abilities.VerboseTranscriptOut, abilities.TranscriptDelta, abilities.TranscriptDone}
    types |= {abilities.SpeechDelta, abilities.SpeechDone}
    types |= {openai.ChatCompletionChunkWithUsage, openai.ChatCompletionChunk, openai.MessageWithCalls}
    types |= {*SOCKET_EVENTS, CreateResponseEvent}
    _, components = msgspec.json.schema_components(
        sorted(types, key=lambda kind: kind.__name__), ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {}
    scopes = operation_scopes()
    for operation in OPERATIONS:
        described = {**_operation(operation), "security": _security(scopes[operation[:2]])}
        paths.setdefault(operation[1], {})[operation[0]] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trunkline gateway", "version": "1"},
        "security": _security(TokenScope.OWNER),
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": SECURITY_SCHEMES,
        },
        "x-events": {name: [_ref(kind) for kind in kinds] for name, kinds in EVENTS.items()},
        "x-event-extensions": list(EXTENSIONS),
        "x-response-events": [_ref(kind) for kind in RESPONSE_EVENTS],
        "x-websockets": {
            "/v1/responses": {
                "client": [_ref(CreateResponseEvent)],
                "server": [_ref(kind) for kind in SOCKET_EVENTS],
            }
        },
    }


def operation_scopes() -> Mapping[tuple[str, str], TokenScope | None]:
    """Return the scope of each method and path; None for one that needs no credential."""
    routes = [route for route in described_routes() if isinstance(route, ScopedRoute)]
    return {(method.lower(), route.path): route.scope for route in routes for method in route.methods or ()}


def _security(scope: TokenScope | None) -> list[dict[str, list[str]]]:
    """Return what a request needs: one of the credentials, with a token of this scope or a larger one. The names beside
    a scheme that is not OAuth are roles, says OpenAPI 3.1.
    """
    return [] if scope is None else [{scheme: [scope.value]} for scheme in SECURITY_SCHEMES]


def _operation(operation: Operation) -> dict[str, Any]:
    method, path, summary, body, status, result = operation
    error = openai.ErrorObject if path.startswith("/v1/") else own.Error
    answer = _response(result)
    for other in ON_REQUEST.get((method, path), ()):
        answer["content"] |= _response(other)["content"]
    described: dict[str, Any] = {
        "summary": summary,
        "responses": {str(status): answer, "default": _response(error)},
    }
    described["parameters"] = described_parameters(method, path)
    if body is not None:
        described["requestBody"] = _body(path, body)
    if path == "/readyz":
        described["responses"]["503"] = {**answer, "description": "A check fails."}
    return described


def _body(path: str, body: type | str) -> dict[str, Any]:
    kind = "multipart/form-data" if body == FORM or path in FORMS else "application/json"
    schema = _ref(body) if isinstance(body, type) else UPLOAD_FORM
    return {"required": body not in OPTIONAL, "content": {kind: {"schema": schema}}}


def _response(result: type | str) -> dict[str, Any]:
    if result == NO_CONTENT:
        return {"description": "Done."}
    if result == EVENT_STREAM:
        # without a schema: it would be that of the whole text to some readers, and that of each event to others
        return {"description": "Server-sent events, see x-events.", "content": {"text/event-stream": {}}}
    if result == FILE_CONTENT:
        binary = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        return {"description": "The bytes of the file.", "content": binary}
    if result == PLAIN_TEXT:
        return {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    if result == AUDIO:
        sound = {"schema": {"type": "string", "format": "binary"}}
        return {"description": "Audio, as it arrives.", "content": {"audio/*": sound}}
    assert isinstance(result, type)
    doc = (result.__doc__ or "").strip().splitlines()[0]
    return {"description": doc, "content": {"application/json": {"schema": _ref(result)}}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
