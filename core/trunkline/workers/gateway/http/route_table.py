"""The gateway's own routes, besides that of the OpenAPI document, which describes them."""

from typing import Literal, TypeAlias

from trunkline.workers.gateway.http import (
    approvals,
    audit,
    block_share,
    blocks,
    compaction,
    conversations,
    cost_routes,
    dead_letter_routes,
    health,
    identities,
    memory_routes,
    metrics,
    models,
    openai,
    openai_embeddings,
    openai_files,
    openai_responses,
    openai_speech,
    openai_transcripts,
    overview_routes,
    pairing_page,
    panic,
    passkeys,
    recall_routes,
    response_compaction,
    response_socket,
    response_tokens,
    sessions,
    socket,
    tokens,
    trace_routes,
    turns,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute, ScopedWebSocketRoute

AnyRoute: TypeAlias = ScopedRoute | ScopedWebSocketRoute


def described_routes(metrics_for: Literal["token", "open", "off"] = "token") -> list[AnyRoute]:
    """Return the routes."""
    return [
        *conversations.ROUTES,
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
        *identities.ROUTES,
        *tokens.ROUTES,
        *audit.ROUTES,
        *memory_routes.ROUTES,
        *recall_routes.ROUTES,
        *cost_routes.ROUTES,
        *trace_routes.ROUTES,
        *dead_letter_routes.ROUTES,
        *overview_routes.ROUTES,
        *panic.ROUTES,
        *metrics.metrics_routes(metrics_for),
    ]
