"""``/healthz``: the process lives. ``/readyz``: messages are taken. Both without a credential; they tell no secret."""

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.gateway.http.parts import Parts, parts_of
from trunkline.gateway.http.replies import reply
from trunkline.gateway.http.schemas import Health, Readiness
from trunkline.messages.conversation import ListConversations
from trunkline.subjects import INBOX, MEMORY_LIST_CONVERSATIONS, WORKER_BUCKET
from trunkline_bus import BusError

CHECK_SECONDS = 2.0
NEEDED = ("bus", "memory")
"""Without these no message is taken. A missing monitor only delays the answer: the message is on disk."""


async def healthz(request: Request) -> Response:
    """``GET /healthz``"""
    return reply(Health(status="ok"))


async def readyz(request: Request) -> Response:
    """``GET /readyz``: 200 when messages are taken, else 503."""
    checks = await _checks(parts_of(request))
    ready = all(checks[name] == "ok" for name in NEEDED)
    body = Readiness(status="ready" if ready else "not_ready", checks=checks)
    return reply(body, 200 if ready else 503)


ROUTES = (
    Route("/healthz", healthz, methods=["GET"]),
    Route("/readyz", readyz, methods=["GET"]),
)


async def _checks(parts: Parts) -> dict[str, str]:
    checks = dict.fromkeys(("bus", "memory", "monitor", "tools"), "missing")
    with anyio.move_on_after(CHECK_SECONDS):
        try:
            await parts.bus.last(INBOX)
            checks["bus"] = "ok"
            beats = await parts.bus.kv(WORKER_BUCKET).entries()
            alive = {beat.value.kind for beat in beats if beat.value and not beat.value.draining}
            checks.update({kind: "ok" for kind in ("monitor", "tools") if kind in alive})
            await parts.bus.call(MEMORY_LIST_CONVERSATIONS, ListConversations(limit=1), timeout=CHECK_SECONDS)
            checks["memory"] = "ok"
        except BusError:
            pass  # what was not reached stays "missing"
    return checks
