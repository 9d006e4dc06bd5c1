"""Containers that were made before they are needed: each serves one program, of the place it was made for."""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

from trunkline import ToolError
from trunkline_sandbox.docker.container_spec import ContainerInspection, ContainerSpec, create_request
from trunkline_sandbox.docker.engine import DockerEngine, EngineError
from trunkline_sandbox.docker.guardian import Guardian
from trunkline_sandbox.docker.streams import AttachedStreams
from trunkline_sandbox.labels import container_labels

REMOVE_SECONDS = 10.0
"""Seconds that the engine may take to remove a container. A failed removal is repeated later."""


@dataclass(frozen=True, slots=True)
class ReadyContainer:
    """A container whose first process waits for its orders."""

    container: str
    wire: AttachedStreams


class ContainerPool:
    """Makes containers. While ``serve`` runs it keeps up to ``most`` ready, the lately used places first."""

    def __init__(self, engine: DockerEngine, guardian: Guardian, home: Path, most: int) -> None:
        self._engine = engine
        self._guardian = guardian
        self._home = home
        self._most = most
        self._ready: OrderedDict[str, ReadyContainer] = OrderedDict()
        self._chores: TaskGroup | None = None
        self._owed: set[str] = set()
        """Containers that the engine did not remove when asked."""

    async def take(self, place: ContainerSpec, label: str) -> ReadyContainer:
        """A container for one program; the next of its kind is made meanwhile. Raises EngineError."""
        ready = self._ready.pop(place.key, None)
        if ready is not None and not await self._is_running(ready.container):  # somebody has ended it
            await self._drop(ready)
            ready = None
        if self._chores is not None and self._most:
            self._chores.start_soon(self._warm, place)
        return ready or await self._create(place, label)

    async def remove(self, container: str, later: bool = False) -> None:
        """Remove a container, whatever runs in it: beside everything else while ``serve`` runs, else now. ``later``,
        when the engine does not answer; a process that does not serve leaves that to its guardian."""
        if later:
            self._owed.add(container)
        elif self._chores is not None:
            self._chores.start_soon(self._delete, container)
        else:
            await self._delete(container)

    async def serve(self) -> None:
        """Do what nobody should wait for, until cancelled; nothing is left then."""
        try:
            async with anyio.create_task_group() as self._chores:
                await anyio.sleep_forever()
        finally:
            self._chores = None
            with anyio.CancelScope(shield=True):
                await self.empty()

    async def empty(self) -> None:
        """Remove all that are ready."""
        while self._ready:
            _, ready = self._ready.popitem()
            await self._drop(ready)

    async def _warm(self, place: ContainerSpec) -> None:
        if place.key in self._ready:
            return
        with suppress(EngineError, ToolError):  # then the next program makes its own, and is told
            ready = await self._create(place, "ready")
            before = self._ready.pop(place.key, None)
            self._ready[place.key] = ready
            if before is not None:
                await self._drop(before)
        while len(self._ready) > self._most:
            _, oldest = self._ready.popitem(last=False)
            await self._drop(oldest)

    async def _create(self, place: ContainerSpec, label: str) -> ReadyContainer:
        await (
            self._guardian.ensure_started()
        )  # before: an engine may make one and not come to tell us its name
        wanted = create_request(place, container_labels(self._home, self._guardian.name, label))
        with anyio.CancelScope(shield=True):  # one whose name is not known could not be removed
            made = await self._engine.call("POST", "/containers/create", body=wanted)
        container = str(made["Id"])
        try:
            wire = AttachedStreams(*await self._engine.attach(container))
            try:
                await self._engine.call("POST", f"/containers/{container}/start")
            except BaseException:
                await wire.aclose()
                raise
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._delete(container)
            raise
        return ReadyContainer(container, wire)

    async def _is_running(self, container: str) -> bool:
        try:
            found = await self._engine.call("GET", f"/containers/{container}/json")
        except EngineError:
            return False
        return msgspec.convert(found, ContainerInspection).state.running

    async def _drop(self, ready: ReadyContainer) -> None:
        await ready.wire.aclose()
        await self._delete(ready.container)

    async def retry_removals(self) -> None:
        """Try again to remove what could not be removed."""
        for container in tuple(self._owed):
            await self._delete(container)

    async def _delete(self, container: str) -> None:
        try:
            await self._engine.call(
                "DELETE", f"/containers/{container}", query={"force": "1", "v": "1"}, seconds=REMOVE_SECONDS
            )
        except EngineError as error:
            if error.status not in (404, 409):  # gone, or somebody else removes it
                self._owed.add(container)
                return
        self._owed.discard(container)
