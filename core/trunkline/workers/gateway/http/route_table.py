"""The gateway's own routes, besides that of the OpenAPI document, which describes them."""

from typing import Literal, TypeAlias

from trunkline.workers.gateway.http.openai import chat_completions as openai
from trunkline.workers.gateway.http.openai import embeddings as openai_embeddings
from trunkline.workers.gateway.http.openai import file_routes as openai_files
from trunkline.workers.gateway.http.openai import speech as openai_speech
from trunkline.workers.gateway.http.openai import transcripts as openai_transcripts
from trunkline.workers.gateway.http.openai.responses import (
    response_compaction,
    response_socket,
    response_tokens,
)
from trunkline.workers.gateway.http.openai.responses import response_routes as openai_responses
from trunkline.workers.gateway.http.routes import (
    agent_routes,
    approvals,
    audit,
    block_share,
    blocks,
    compaction,
    conversation_file_routes,
    conversation_routes,
    cost_routes,
    dead_letter_routes,
    doctor_routes,
    document_routes,
    health,
    identities,
    locale_routes,
    memory_routes,
    memory_transfer_routes,
    metrics,
    models,
    overview_routes,
    pairing_page,
    panic_routes,
    passkeys,
    plugin_routes,
    push,
    recall_routes,
    sessions,
    settings_routes,
    setup_routes,
    socket,
    task_routes,
    token_routes,
    trace_routes,
    turns,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute

AnyRoute: TypeAlias = ScopedRoute | ScopedWebSocketRoute


def described_routes(metrics_for: Literal["token", "open", "off"] = "token") -> list[AnyRoute]:
    """Return the routes."""
    return [
        *conversation_routes.ROUTES,
        *conversation_file_routes.ROUTES,
        *compaction.ROUTES,
        *openai.ROUTES,
        *response_compaction.ROUTES,
        *response_tokens.ROUTES,
        *openai_responses.ROUTES,
        *response_socket.ROUTES,
        *socket.ROUTES,
        *openai_files.ROUTES,
        *openai_embeddings.ROUTES,
        *openai_transcripts.ROUTES,
        *openai_speech.ROUTES,
        *turns.ROUTES,
        *approvals.ROUTES,
        *blocks.ROUTES,
        *block_share.ROUTES,
        *models.ROUTES,
        *health.ROUTES,
        *sessions.ROUTES,
        *pairing_page.ROUTES,
        *passkeys.ROUTES,
        *locale_routes.ROUTES,
        *push.ROUTES,
        *identities.ROUTES,
        *token_routes.ROUTES,
        *audit.ROUTES,
        *memory_routes.ROUTES,
        *memory_transfer_routes.ROUTES,
        *document_routes.ROUTES,
        *recall_routes.ROUTES,
        *cost_routes.ROUTES,
        *trace_routes.ROUTES,
        *dead_letter_routes.ROUTES,
        *overview_routes.ROUTES,
        *plugin_routes.ROUTES,
        *settings_routes.ROUTES,
        *setup_routes.ROUTES,
        *agent_routes.ROUTES,
        *task_routes.ROUTES,
        *doctor_routes.ROUTES,
        *panic_routes.ROUTES,
        *metrics.metrics_routes(metrics_for),
    ]
