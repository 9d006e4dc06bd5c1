"""The OpenAPI document at ``/openapi.json``, generated from the structs of requests and replies, and from the scopes of
the routes.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.workers.gateway.files import PURPOSES
from trunkline.workers.gateway.http.openai import ability_schemas as abilities
from trunkline.workers.gateway.http.openai import file_routes as files
from trunkline.workers.gateway.http.openai import schemas as openai
from trunkline.workers.gateway.http.openai.responses.response_events import RESPONSE_EVENTS
from trunkline.workers.gateway.http.openai.responses.response_socket import SOCKET_EVENTS, CreateResponseEvent
from trunkline.workers.gateway.http.openapi.openapi_operations import (
    ARCHIVE,
    AUDIO,
    CONVERSATION_FILE,
    EVENT_STREAM,
    FILE_CONTENT,
    FORM,
    FORMS,
    NO_CONTENT,
    OPERATIONS,
    OPTIONAL,
    PLAIN_TEXT,
    Operation,
)
from trunkline.workers.gateway.http.openapi.openapi_parameters import described_parameters
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.route_table import described_routes
from trunkline.workers.gateway.http.schemas import event_schemas as events
from trunkline.workers.gateway.http.schemas.schema_base import Error
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline.workers.gateway.socket.client_envelopes import ClientMessage
from trunkline.workers.gateway.socket.server_envelopes import ServerMessage

EVENTS: dict[str, tuple[type, ...]] = {
    "text-delta": (events.TextDeltaData,),
    "text-reset": (events.TextResetData,),
    "status": (events.StatusData,),
    "tool-call": (events.ToolCallData,),
    "tool-progress": (events.ToolProgressData,),
    "tool-result": (events.ToolOutputData, events.ToolFailureData),
    "approval-request": (events.ApprovalRequestData,),
    "approval-settled": (events.ApprovalSettledData,),
    "done": (events.DoneData,),
    "error": (Error,),
}
"""The events of a turn and the schemas of their data. No other event is ever sent."""

EXTENSIONS = ("text-reset", "status", "tool-progress", "approval-request", "approval-settled")
"""The events that PA's contract does not have. PA's clients ignore unknown events."""

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

BINARY: Mapping[str, str] = {"type": "string", "format": "binary"}

UPLOAD_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": BINARY,
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
    types |= {kind for kinds in EVENTS.values() for kind in kinds} | {openai.ErrorObject, Error}
    types |= {abilities.VerboseTranscriptOut, abilities.TranscriptDelta, abilities.TranscriptDone}
    types |= {abilities.SpeechDelta, abilities.SpeechDone}
    types |= {openai.ChatCompletionChunkWithUsage, openai.ChatCompletionChunk, openai.MessageWithCalls}
    types |= {*SOCKET_EVENTS, CreateResponseEvent, *get_args(ClientMessage), *get_args(ServerMessage)}
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
            "schemas": {**components, **_unions()},
            "securitySchemes": SECURITY_SCHEMES,
        },
        "x-events": {name: [_ref(kind) for kind in kinds] for name, kinds in EVENTS.items()},
        "x-event-extensions": list(EXTENSIONS),
        "x-response-events": [_ref(kind) for kind in RESPONSE_EVENTS],
        "x-websockets": {
            "/v1/responses": {
                "client": [_ref(CreateResponseEvent)],
                "server": [_ref(kind) for kind in SOCKET_EVENTS],
            },
            "/ws": {
                "client": [{"$ref": "#/components/schemas/ClientMessage"}],
                "server": [{"$ref": "#/components/schemas/ServerMessage"}],
            },
        },
    }


def _unions() -> dict[str, Any]:
    """Return the envelopes of a WebSocket in each direction as one schema, for clients with generated types."""
    unions = {"ClientMessage": ClientMessage, "ServerMessage": ServerMessage}
    return {
        name: {"oneOf": [_ref(kind) for kind in get_args(union)], "discriminator": {"propertyName": "type"}}
        for name, union in unions.items()
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
    error = openai.ErrorObject if path.startswith("/v1/") else Error
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
    if body == ARCHIVE:
        return {"required": True, "content": {"application/octet-stream": {"schema": BINARY}}}
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
        return {
            "description": "The bytes of the file.",
            "content": {"application/octet-stream": {"schema": BINARY}},
        }
    if result == ARCHIVE:
        return {"description": "A tar archive.", "content": {"application/x-tar": {"schema": BINARY}}}
    if result == CONVERSATION_FILE:
        text, document = {"schema": {"type": "string"}}, {"schema": {"type": "object"}}
        return {
            "description": "Markdown, or JSON with `format=json`.",
            "content": {"text/markdown": text, "application/json": document},
        }
    if result == PLAIN_TEXT:
        return {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}}
    if result == AUDIO:
        return {"description": "Audio, as it arrives.", "content": {"audio/*": {"schema": BINARY}}}
    assert isinstance(result, type)
    doc = (result.__doc__ or "").strip().splitlines()[0]
    return {"description": doc, "content": {"application/json": {"schema": _ref(result)}}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
