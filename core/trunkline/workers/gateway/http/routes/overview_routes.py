"""``GET /api/overview``: workers, partitions, queues, streams and recent failures, as ``trunkline top``. Only for the
owner."""

from collections.abc import Iterator
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response

from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.models.key_pools import KeyPool
from trunkline.contracts.workers.messages import WorkerHeartbeat
from trunkline.runtime.overview import PlatformOverview
from trunkline.workers.gateway.http.app_state import sender_of, services_of
from trunkline.workers.gateway.http.responses import json_response
from trunkline.workers.gateway.http.schemas.overview_schemas import (
    KeyItem,
    PartitionItem,
    PlatformState,
    WorkerItem,
)
from trunkline.workers.gateway.http.scoped_route import ScopedRoute

MINUTE = 60.0


async def show(request: Request) -> Response:
    """``GET /api/overview``"""
    return json_response(_state(await services_of(request).overview.read(sender_of(request))))


ROUTES = (ScopedRoute("/api/overview", show, methods=["GET"], scope=TokenScope.OPERATE),)


def _state(seen: PlatformOverview) -> PlatformState:
    valid = {one.pin for one in seen.partitions}
    holders = {pin: beat.id for beat in seen.workers for pin in beat.pins.values()}
    partitions = [
        PartitionItem(
            partition=one.partition,
            messages=one.messages,
            conversations=one.conversations,
            claimed=one.claimed,
            oldest=one.oldest,
            worker=holders.get(one.pin, ""),
        )
        for one in seen.partitions
    ]
    return PlatformState(
        time=seen.time,
        server=seen.server,
        workers=tuple(_worker(beat, valid) for beat in seen.workers),
        partitions=tuple(partitions),
        in_flight=seen.in_flight,
        waiting=seen.waiting,
        streams=seen.streams,
        dead_letters=seen.dead_letters,
        lately=seen.lately,
        circuits=seen.circuits,
        keys=tuple(key for pool in seen.key_pools for key in _keys(pool, seen.time.timestamp())),
        panic=seen.panic,
    )


def _worker(beat: WorkerHeartbeat, valid: set[str]) -> WorkerItem:
    return WorkerItem(
        id=beat.id,
        kind=beat.kind,
        host=beat.host,
        pid=beat.pid,
        version=beat.version,
        started_at=beat.started_at,
        draining=beat.draining,
        restarts=beat.restarts,
        trouble=beat.trouble,
        unstored=beat.unstored,
        partitions=tuple(sorted(partition for partition, pin in beat.pins.items() if pin in valid)),
    )


def _keys(pool: KeyPool, now: float) -> Iterator[KeyItem]:
    for key in pool.keys:
        recent = [used for second, used in key.slots.items() if second > now - MINUTE]
        yield KeyItem(
            adapter=pool.adapter,
            key=key.digest,
            requests=sum(requests for requests, _ in recent),
            tokens=sum(tokens for _, tokens in recent),
            running=sum(expires > now for expires in key.running.values()),
            rests_until=datetime.fromtimestamp(key.rests_until, UTC) if key.rests_until > now else None,
            fault=key.fault if key.rests_until > now else "",
        )
