"""``/x/trunkline-pulse``: the schedules over HTTP. Whoever may read a block sees its schedules; the owner alone changes
them, because a schedule runs in the owner's name.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

from trunkline import ErrorCode, LifespanContext
from trunkline.api.bus import Bus, Refusal
from trunkline.api.gateway import HttpRoute, TokenScope
from trunkline.api.schedule import is_schedule_name
from trunkline_pulse.schedule_changes import remove_schedule, run_now, switch_schedule
from trunkline_pulse.schedule_request import describe_times
from trunkline_pulse.schedule_store import FoundSchedule, ScheduleStore
from trunkline_pulse.schedule_views import ScheduleView, list_views, view_as_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ONE = "/blocks/{block}/schedules/{name}"


class ScheduleRoutes:
    """Answers requests while the gateway runs. ``zone`` is the time zone of schedules that name none."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._context: LifespanContext | None = None

    @asynccontextmanager
    async def lifespan(self, context: LifespanContext) -> AsyncIterator[None]:
        """Use the gateway's connection while it is open."""
        self._context = context
        try:
            yield
        finally:
            self._context = None

    def routes(self) -> Iterable[HttpRoute]:
        """Return the routes."""
        return [
            HttpRoute("/schedules", ("GET",), self.show_all),
            HttpRoute(
                "/blocks/{block}/schedules", ("GET",), self.show_block, scope=TokenScope.READ, by_block=True
            ),
            HttpRoute(f"{ONE}/run", ("POST",), self.run, by_block=True),
            HttpRoute(f"{ONE}/pause", ("POST",), self.pause, by_block=True),
            HttpRoute(f"{ONE}/resume", ("POST",), self.resume, by_block=True),
            HttpRoute(f"{ONE}/remove", ("POST",), self.remove, by_block=True),
        ]

    async def show_all(self, request: "Request") -> "Response":
        """``GET /x/trunkline-pulse/schedules``: those of all blocks."""
        return self._shown(await list_views(self._connection(), self._zone))

    async def show_block(self, request: "Request") -> "Response":
        """``GET /x/trunkline-pulse/blocks/{block}/schedules``"""
        block = request.path_params["block"]
        return self._shown(await list_views(self._connection(), self._zone, block))

    async def run(self, request: "Request") -> "Response":
        """``POST /x/trunkline-pulse/blocks/{block}/schedules/{name}/run``: runs it once now. 409 for a file that
        must be corrected."""
        return await self._changed(
            request, lambda found: run_now(self._connection(), found.name, found.block)
        )

    async def pause(self, request: "Request") -> "Response":
        """``POST .../pause``: stops it until it is resumed."""
        return await self._changed(request, lambda found: self._switched(found, enabled=False))

    async def resume(self, request: "Request") -> "Response":
        """``POST .../resume``: lets it run again."""
        return await self._changed(request, lambda found: self._switched(found, enabled=True))

    async def remove(self, request: "Request") -> "Response":
        """``POST .../remove``: deletes its file, which the history of memory keeps. It need not be correct."""
        return await self._changed(
            request, lambda found: remove_schedule(self._connection(), found.name, found.block), broken=True
        )

    async def _switched(self, found: FoundSchedule, *, enabled: bool) -> object:
        return await switch_schedule(self._connection(), found.name, found.block, enabled)

    async def _changed(
        self,
        request: "Request",
        change: Callable[[FoundSchedule], Awaitable[object]],
        *,
        broken: bool = False,
    ) -> "Response":
        """Carry out a change of the schedule that the path names. ``broken`` permits one whose file is wrong."""
        block, name = request.path_params["block"], request.path_params["name"]
        found = await ScheduleStore(self._connection()).find(block, name) if is_schedule_name(name) else None
        if found is None:
            raise Refusal(ErrorCode.NOT_FOUND, "There is no such schedule.")
        if found.schedule is None and not broken:
            raise Refusal(ErrorCode.CONFLICT, found.problem)
        await change(found)
        return _json({"block": block, "schedule": name})

    def _shown(self, views: Iterable[ScheduleView]) -> "Response":
        return _json({"schedules": [self._item(view) for view in views]})

    def _item(self, view: ScheduleView) -> dict[str, Any]:
        schedule = view.source.schedule
        zone = schedule.zone(self._zone) if schedule is not None else self._zone
        times = describe_times(schedule) if schedule is not None else ""
        path = view.source.file.path
        return {**view_as_json(view), "times": times, "time_zone": zone.key, "path": path}

    def _connection(self) -> Bus:
        if self._context is None:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, "The gateway is starting or stopping.")
        return self._context.bus


def _json(body: Any) -> "Response":
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)
