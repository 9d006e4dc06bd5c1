"""The backend Docker: begins programs in containers of the engine of this machine."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from trunkline import Sandbox, ToolError
from trunkline.api.sandbox import KillSwitch, ProgramRequest, SandboxProcess
from trunkline_sandbox.docker.container_spec import ContainerSpec, start_orders
from trunkline_sandbox.docker.engine import DockerEngine, EngineError
from trunkline_sandbox.docker.guardian import Guardian
from trunkline_sandbox.docker.pool import ContainerPool, ReadyContainer
from trunkline_sandbox.docker.process import KILL_SECONDS, ContainerProcess
from trunkline_sandbox.labels import HOME_LABEL, OWNER_LABEL, home_id, is_owner_gone
from trunkline_sandbox.limit_watcher import WatchedLimits
from trunkline_sandbox.masks import masked_files
from trunkline_sandbox.settings import SandboxSettings
from trunkline_sandbox.usage import MIB

PULL_SECONDS = 600.0

SWEEP_SECONDS = 30.0
"""Seconds between searches for containers whose process and guardian have died."""


class Docker(Sandbox):
    """See ``trunkline.Sandbox``."""

    name = "docker"

    def __init__(self, settings: SandboxSettings, home: Path, host: str | None = None) -> None:
        self._settings = settings
        self._home = home
        self._kill_switch = KillSwitch(home)
        self._engine = DockerEngine(host)
        self._pool = ContainerPool(self._engine, Guardian(self._engine.host), home, settings.warm_containers)

    async def unavailable(self) -> str | None:
        """See ``Sandbox``. Asks the engine, and whether it has the image."""
        image = self._settings.image
        try:
            await self._engine.ping()
        except EngineError as error:
            return (
                f"No Docker engine: {error}. Install one and start it (Debian and Ubuntu: apt install docker.io), "
                f"and let this user reach its socket; access to that socket equals root access to this machine."
            )
        try:
            await self._engine.call("GET", f"/images/{image}/json")
        except EngineError as error:
            if error.status != 404:
                return f"The Docker engine fails: {error}."
            return await self._pull_image(image)
        return None

    async def _pull_image(self, image: str) -> str | None:
        if not self._settings.pull:
            return (
                f"The image {image} is not on this machine: docker pull {image}, name another one in "
                f"[plugins.sandbox], or have it pulled with pull = true."
            )
        name, _, tag = image.partition(":")
        try:
            with anyio.fail_after(PULL_SECONDS):
                query = {"fromImage": name, "tag": tag or "latest"}
                output = await self._engine.content("POST", "/images/create", query=query, seconds=None)
        except (EngineError, TimeoutError) as error:
            return f"The image {image} cannot be pulled: {error}."
        last = output.splitlines()[-1:]  # a line of progress each; only the last one can be an error
        return (
            f"The image {image} cannot be pulled: {last[0].decode()}."
            if last and b'"error"' in last[0]
            else None
        )

    async def start_program(self, request: ProgramRequest) -> SandboxProcess:
        """See ``Sandbox``."""
        self._kill_switch.raise_if_engaged()
        masks = await anyio.to_thread.run_sync(masked_files, request.workspace)
        image = self._settings.images.get(request.tool, self._settings.image)
        ready = await self._container(ContainerSpec.for_program(request, image, masks), request.label)
        process = ContainerProcess(self._engine, ready.container, ready.wire, self._pool.remove)
        try:
            self._kill_switch.raise_if_engaged()  # panic may have looked while the container was made
            process.watch(self._watched_limits(request))
            await ready.wire.stdin.send(start_orders(request))
        except BaseException:
            await process.__aexit__()
            raise
        return process

    async def _container(self, place: ContainerSpec, label: str) -> ReadyContainer:
        """Return a container. The image of a tool is looked for when it is needed, because ``unavailable`` is about all
        programs. Raises ToolError."""
        try:
            try:
                return await self._pool.take(place, label)
            except EngineError as error:
                if error.status != 404 or place.image == self._settings.image:
                    raise
            if (missing := await self._pull_image(place.image)) is not None:
                raise ToolError(missing, kind="unavailable")
            return await self._pool.take(place, label)
        except EngineError as error:
            raise ToolError(
                f"The container could not be created for this program: {error}", kind="unavailable"
            ) from error

    def _watched_limits(self, program: ProgramRequest) -> WatchedLimits:
        """Return the limits that Docker does not enforce, so that a watcher must."""
        writes = program.workspace is not None and program.limits.writable
        disk = self._settings.workspace_mb * MIB if writes else None
        return WatchedLimits(memory=None, disk=disk, workspace=program.workspace, first=None)

    async def end_all(self) -> int:
        """See ``Sandbox``. Also removes what was made ready."""
        await self._pool.empty()
        found = await self._containers()
        await self._end(found)
        return sum(one["State"] == "running" for one in found)

    async def serve(self) -> None:
        """See ``Sandbox``: keeps containers ready, and removes those of processes that have died."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep_periodically)
            await self._pool.serve()

    async def _sweep_periodically(self) -> None:
        while True:
            with suppress(EngineError):  # there is none yet, or no longer
                for one in await self._containers():
                    if is_owner_gone(one["Labels"].get(OWNER_LABEL, "")):
                        await self._pool.remove(str(one["Id"]))
            await self._pool.retry_removals()
            await anyio.sleep(SWEEP_SECONDS)

    async def _containers(self) -> list[dict[str, Any]]:
        wanted = {"label": [f"{HOME_LABEL}={home_id(self._home)}"]}
        query = {"all": "1", "filters": msgspec.json.encode(wanted).decode()}
        try:
            found: list[dict[str, Any]] = await self._engine.call(
                "GET", "/containers/json", query=query, seconds=KILL_SECONDS
            )
        except EngineError as error:
            if error.status == 0:  # no engine, so no containers
                return []
            raise
        return found

    async def _end(self, containers: Sequence[Mapping[str, Any]]) -> None:
        async with anyio.create_task_group() as tasks:
            for one in containers:
                tasks.start_soon(self._ended, str(one["Id"]))

    async def _ended(self, container: str) -> None:
        for method, path in (
            ("POST", f"/containers/{container}/kill"),
            ("DELETE", f"/containers/{container}"),
        ):
            try:
                await self._engine.call(method, path, query={"force": "1"} if method == "DELETE" else None)
            except EngineError as error:
                if error.status not in (404, 409):  # gone, or not running
                    raise
