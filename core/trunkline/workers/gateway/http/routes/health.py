"""``/healthz``: the process is alive. ``/readyz``: messages are accepted, answered and stored.

Neither path needs a credential; neither reveals a secret.
"""

from collections.abc import Sequence

import anyio
from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.conversations.messages import ListConversations
from trunkline.contracts.memory.subjects import MEMORY_LIST_CONVERSATIONS
from trunkline.contracts.turns.subjects import INBOX
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.contracts.workers.subjects import WORKER_BUCKET
from trunkline.runtime.partitions import read_partitioning, waiting_pulls
from trunkline.workers.gateway.http.app_state import AppState, app_state_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.platform_schemas import Health, Readiness
from trunkline.workers.gateway.http.scoped_route import ScopedRoute
from trunkline_bus import Bus, BusError

CHECK_SECONDS = 2.0
BETWEEN_PULLS_SECONDS = 0.5
"""How long a partition may be without a waiting pull: a monitor has none between the end of a pull and its next
one."""
NEEDED = ("bus", "memory", "monitor")
"""The checks that must succeed before a message can be accepted and answered."""


async def healthz(request: Request) -> Response:
    """``GET /healthz``"""
    return json_response(Health(status="ok"))


async def readyz(request: Request) -> Response:
    """``GET /readyz``: 200 when a message would be accepted, answered and stored now, else 503."""
    checks = await _checks(app_state_of(request))
    ready = all(checks[name] == "ok" for name in NEEDED)
    body = Readiness(status="ready" if ready else "not_ready", checks=checks)
    return json_response(body, 200 if ready else 503)


ROUTES = (
    ScopedRoute("/healthz", healthz, methods=["GET"], scope=None),
    ScopedRoute("/readyz", readyz, methods=["GET"], scope=None),
)


async def _checks(parts: AppState) -> dict[str, str]:
    checks: dict[str, str] = dict.fromkeys(("bus", "memory", "monitor", "tools"), "missing")
    with anyio.move_on_after(CHECK_SECONDS):
        try:
            await parts.services.bus.last(INBOX)
            checks["bus"] = "failing" if parts.services.room.is_failing else "ok"
            beats = [
                entry.value for entry in await parts.services.bus.kv(WORKER_BUCKET).entries() if entry.value
            ]
            working = [beat for beat in beats if not beat.draining]
            checks["tools"] = "ok" if any(beat.kind == "tools" for beat in working) else "missing"
            if any(beat.kind == "monitor" for beat in working):
                checks["monitor"] = "ok" if await _has_monitors(parts.services.bus) else "failing"
            checks["memory"] = await _memory(parts.services.bus, beats)
        except BusError:
            pass  # parts that were not reached stay "missing"
    return checks


async def _has_monitors(bus: Bus) -> bool:
    """Report whether a monitor waits for the messages of each partition. After a monitor's crash, another monitor takes
    over its partitions within seconds."""
    partitioning = await read_partitioning(bus)
    if partitioning.shut:
        return False
    unserved = set(range(partitioning.partitions))
    with anyio.move_on_after(BETWEEN_PULLS_SECONDS):
        while unserved:
            unserved -= {one for one in unserved if await waiting_pulls(bus, one)}
            if unserved:
                await anyio.sleep(BETWEEN_PULLS_SECONDS / 10)
    return not unserved


async def _memory(bus: Bus, beats: Sequence[WorkerHeartbeat]) -> str:
    """Return ``ok`` when memory answers, can write, and has stored every answer that was ready, else
    ``failing``."""
    await bus.call(MEMORY_LIST_CONVERSATIONS, ListConversations(limit=1), timeout=CHECK_SECONDS)
    failing = any(beat.kind == "memory" and beat.trouble for beat in beats)
    return "failing" if failing or any(beat.unstored for beat in beats) else "ok"
