"""The page of the HTTP surface: every route of the gateway with its schemas, and the agent loop's."""

import typing

import msgspec

from generator.markdown import code, fields_table, prose, table
from trunkline.workers.gateway.http.openapi.openapi_document import ON_REQUEST, operation_scopes
from trunkline.workers.gateway.http.openapi.openapi_operations import (
    ARCHIVE,
    AUDIO,
    EVENT_STREAM,
    FILE_CONTENT,
    FORM,
    NO_CONTENT,
    OPERATIONS,
    PLAIN_TEXT,
)
from trunkline.workers.gateway.http.openapi.openapi_parameters import PARAMETERS
from trunkline.workers.monitor import engine_server

INTRODUCTION = """
# HTTP

The gateway listens on `gateway.host` and `gateway.port`, by default `127.0.0.1:8420`. Every path except
`/healthz`, `/readyz`, those of signing in and `/api/locales` requires a credential: the token of this home, which is in
`~/.trunkline/token`, or an [access token](../how-to/sign-in.md), as `Authorization: Bearer TOKEN` or `X-API-Key:
TOKEN`. The same contract is served as OpenAPI at `/openapi.json`, with the scope of each operation as a role of its
security requirement.
Plugins may add paths under `/x/<plugin>/`. The files of the web app at `/` need no token, because they contain no data.

Each route has a scope: `read`, `chat`, `approve`, `operate` or `owner`. An access token needs that scope or a larger
one, else the answer is 403. Whoever is not the owner uses only the blocks that are [shared with
them](../how-to/share-a-block.md): for all others, and for what is in them, the answer is 404, and lists and totals
leave them out. While the owner's policies cannot be read, it is 503.

The server ignores unknown fields of a request, and sends only the fields that are listed here. An error is
`{"code": …, "message": …}` with one of the [fixed codes](errors.md). `metadata.reason` may give details; for a 409 only
the owner receives them. Below `/v1` an error has OpenAI's form, `{"error": {"message", "type", "param", "code"}}`;
`param` names the wrong field, such as `input[0].content[1].image_url`. Every response has an `X-Correlation-ID` that
finds the details in the log. A browser's request from another site is refused, and so is a request with a host name
that is not this machine's.
"""

NOTES = {
    ("post", "/conversations/messages"): (
        "`metadata.block` names the block of the conversation. With `metadata.client_message_id`, or the header "
        "`Idempotency-Key`, a request can be repeated: the same value gives the same conversation and the same turn."
    ),
    ("get", "/api/locales"): (
        "They come from [plugins](../how-to/add-a-language.md), and contain nothing of the home. Without a built web "
        "app there are none."
    ),
    ("get", "/api/locales/{tag}"): (
        "Texts whose placeholders are not the English ones are left out. `/api/locales/en` has all texts of the app."
    ),
    ("get", "/metrics"): (
        "In Prometheus' text format, counted from the first request on. `gateway.metrics` can open the route to "
        "everybody who reaches the port, or close it. They are totals of all blocks, so a token "
        "must be the owner's."
    ),
    (
        "post",
        "/api/tokens",
    ): "The answer is the only one with the text of the token, and nothing may store it.",
    ("delete", "/api/tokens/{id}"): (
        "Within a second the token is refused, its streams and sockets end, and the turns that it started are "
        "cancelled. `id` is the whole id. A token may revoke itself."
    ),
    ("get", "/api/audit"): (
        "The entries of one day, or of at most 31 days with `since` and `until`, the newest first. Memory has all of "
        "them, in `audit/`."
    ),
    ("put", "/api/memory/file"): (
        "Memory belongs to the owner: no policy and no share opens `/api/memory` to anybody else, nor does a token for "
        "some blocks. Send the hash that was read as `expected`, and the answer is 409 if the file has changed since."
    ),
    ("get", "/api/memory/export"): (
        "What `trunkline memory export` writes. The archive is not encrypted; the command can encrypt it."
    ),
    ("post", "/api/memory/import"): (
        "The archive is an export of Trunkline, or one of another system that an importer reads, such as the export of "
        "ChatGPT. What is here stays in history, and importing the same data again changes nothing. A browser sends a "
        "file as the body as it is, not as a form."
    ),
    ("post", "/api/memory/documents"): (
        "A form (`multipart/form-data`) with the document as `file`, of at most `gateway.max_attachment_mb`. It is "
        "read as [`trunkline memory add`](../how-to/bring-documents.md) reads it, and its text is stored below "
        "`documents/`. A document that cannot be read is 400 with the reason. Another document of the same name is not "
        "replaced: 409. When the client disconnects, reading ends."
    ),
    ("get", "/api/memory/blame"): "`turn` leads to the turn that wrote the line, if a turn did.",
    ("get", "/api/memory/file"): "A path that memory does not allow is 400, with the rule as the reason.",
    ("get", "/api/memory/search"): "`since` and `until` restrict messages of conversations.",
    ("delete", "/api/memory/file"): (
        "History keeps the content. [A purge](../how-to/purge.md) removes it from history, too."
    ),
    ("get", "/api/costs"): (
        "The sums of `trunkline costs --json`, of the blocks that the caller may read. Requests that belong to no "
        "block are for the owner."
    ),
    ("get", "/api/turns/{id}/trace"): (
        "The spans that the bus still has. Anybody but the owner gets the spans of this turn "
        "without attributes and without the texts of errors."
    ),
    ("post", "/api/dead-letters/{id}/retry"): (
        "Only messages of the inbox are sent again, byte for byte; for all others the answer is 409 with the reason."
    ),
    ("get", "/api/overview"): (
        "What `trunkline top` shows, with the turns of the last five minutes. They are totals of all blocks, so a "
        "token must be the owner's."
    ),
    ("post", "/api/panic"): (
        "Every program, turn and model call ends, as with `trunkline panic`, and nothing starts until the owner says "
        "`trunkline panic --release` at the terminal. Only the owner may stop everything. The answer comes when all "
        "workers have stopped, after 10 seconds at the latest."
    ),
    ("post", "/api/turns/{id}/steer"): "When the turn has ended, the message becomes a turn of its own.",
    ("post", "/v1/chat/completions"): (
        "`model` is a block's name, or `block:adapter/model`. With the header `X-Conversation-ID` the conversation "
        "continues with the last message only; without it the transcript of the request decides. With `stream` the "
        "answer is sent as OpenAI's chunks. Trunkline runs its own tools, and the client sees their text only. Calls "
        "of the client's tools are returned to the client. A person's message may have images (`image_url` with a "
        "`data:` URL) and files (`file` with a `file_id`, or `file_data` and `filename`)."
    ),
    ("post", "/v1/responses"): (
        "`model` is a block's name, or `block:adapter/model`. A response is a turn: it goes on when the client leaves. "
        "With `stream` the answer is sent as [OpenAI's events](events.md#the-events-of-a-response). "
        "`previous_response_id` continues the conversation of that response, or forks it if something followed there. "
        "`conversation` names a conversation of Trunkline. Without either, the items of the request decide, as in chat "
        "completions. `store: false` leaves no response that can be retrieved; the conversation is in memory all the "
        "same. A turn that waits for a person's decision is returned with the status `in_progress`, and goes on after "
        "the decision. `truncation`, `parallel_tool_calls`, `max_tool_calls`, `include`, `user`, `safety_identifier` "
        "and `prompt_cache_key` are accepted and repeated, and change nothing. A model that takes no `top_p`, "
        "`reasoning` or `text.verbosity` is not sent them.\n\n"
        'As a WebSocket the same path takes messages `{"type": "response.create", …}` with the fields of this body, '
        "without `stream` and `background`, and sends the same events, one response after the other. A response with "
        "`store: false` can be continued on its socket only."
    ),
    ("get", "/v1/responses/{id}"): (
        "A response can be retrieved for as long as the journal has its turn (`retention.journal_days`), by the "
        "identity that created it."
    ),
    ("post", "/v1/responses/{id}/cancel"): (
        "The reply follows when the turn has ended, after 10 seconds at the latest."
    ),
    ("delete", "/v1/responses/{id}"): (
        "The response can no longer be retrieved or continued. Its conversation stays in memory; "
        "[a purge](../how-to/purge.md) removes that."
    ),
    ("post", "/v1/responses/compact"): (
        "The block's model writes a summary. The client sends the output back as input, in place of what was "
        "compacted. The item's content is base64, not encrypted."
    ),
    ("post", "/v1/responses/input_tokens"): (
        "An estimate of what the client would send, with the conversation that it would continue. The block adds its "
        "instructions, tools and memory, which are not counted. No vendor is asked, and nothing is billed."
    ),
    ("post", "/v1/files"): (
        "A form (`multipart/form-data`) with the fields `file`, `purpose` (`user_data`, `vision`, `assistants`, "
        "`batch`, `fine-tune` or `evals`) and optionally `expires_after[anchor]` (`created_at`) and "
        "`expires_after[seconds]` (3600 to 2592000). A file expires after `retention.file_days` at the latest, and "
        "belongs to the identity that uploaded it. Any file can be uploaded; messages take images (PNG, JPEG, GIF, "
        "WebP), PDF and text."
    ),
}


BODIES = {FORM: "Body: a form. ", ARCHIVE: "Body: the bytes of an archive. "}


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION.strip(), _routes(), *map(_operation, OPERATIONS), _engine(), "## Schemas"]
    for kind in _schemas():
        said = prose(kind)
        parts.append("\n\n".join(filter(None, (f"### {kind.__name__}", said, fields_table(kind)))))
    return "\n\n".join(parts)


def _routes() -> str:
    scopes = operation_scopes()
    rows = [
        (method.upper(), code(path), scopes[method, path] or "none", summary)
        for method, path, summary, *_ in OPERATIONS
    ]
    return "## Routes\n\n" + table(("method", "path", "scope", "purpose"), rows)


def _operation(operation: tuple) -> str:  # type: ignore[type-arg]
    method, path, summary, body, status, result = operation
    lines = [f"### {method.upper()} {path}", summary]
    if note := NOTES.get((method, path)):
        lines.append(note)
    scope = operation_scopes()[method, path]
    lines.append(f"Scope: {code(scope)}." if scope else "No credential is needed.")
    if parameters := PARAMETERS.get((method, path)):
        rows = [(code(one.name), one.place, one.meaning) for one in parameters]
        lines.append(table(("parameter", "in", "means"), rows))
    said = "" if body is None else BODIES.get(body) or f"Body: {_link(body)}. "
    others = "".join(f"; on request {_result(other)}" for other in ON_REQUEST.get((method, path), ()))
    lines.append(f"{said}Answer: {status}, {_result(result)}{others}.")
    return "\n\n".join(lines)


def _result(result: object) -> str:
    if result == NO_CONTENT:
        return "no content"
    if result == PLAIN_TEXT:
        return "plain text"
    if result == FILE_CONTENT:
        return "the bytes of the file"
    if result == ARCHIVE:
        return "a tar archive"
    if result == AUDIO:
        return "audio, in the format that was asked for"
    return "[server-sent events](events.md)" if result == EVENT_STREAM else _link(result)


def _link(kind: object) -> str:
    name = getattr(kind, "__name__", str(kind))
    return f"[{name}](#{name.lower()})"


def _schemas() -> list[type[msgspec.Struct]]:
    """The structs of bodies and answers, and those inside them, in the order in which they are met."""
    found: dict[type[msgspec.Struct], None] = {}

    def meet(kind: object) -> None:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
            found[kind] = None
            for hint in typing.get_type_hints(kind, include_extras=True).values():
                meet(hint)
        for inner in typing.get_args(kind):
            meet(inner)

    for operation in OPERATIONS:
        meet(operation[3])
        meet(operation[5])
    return list(found)


def _engine() -> str:
    parts = [
        "## The agent loop",
        "`POST /engine/chat` is served only where `monitor.engine` is true: on a loopback port of its own "
        "(`monitor.engine_port`, by default 8422), behind the gateway's checks: token, Host, Origin. It runs one turn "
        "and stores nothing: messages in, events out. It wants the headers `X-Actor-ID`, for whom it works, and "
        "`X-Actor-Permissions`, what its calls may do at most (`memory:*,tools:*`, `tools:read_file`, "
        "`memory:/finances/*`). They never widen what the block may do, and a call that needs approval is not run. "
        "The block is `metadata.client_context.block`, else the default one; one that takes no messages at the gateway "
        "is refused here with the same code: 404 where it is not there, 409 where it is switched off or a file about "
        "it cannot be read. `metadata.reason` says why, `metadata.field` which field of a request is wrong. "
        "Events: `text-delta`, `tool-call`, `tool-result`, `done`, `error`.",
    ]
    for kind in (engine_server.EngineRequest, engine_server.EngineMessage, engine_server.EngineMetadata):
        parts.append(f"### {kind.__name__}\n\n{prose(kind)}\n\n{fields_table(kind)}")
    return "\n\n".join(parts)
