"""A tools worker on a real server, with a stand-in for memory, and a caller that talks to it as the monitor does."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from tests.support.processes import ProcessPlatform, process_platform
from trunkline.contracts.memory.files import (
    ListMemory,
    MemoryChanged,
    MemoryEntry,
    MemoryFile,
    MemoryFiles,
    MemoryListing,
    ReadManyMemory,
    ReadMemory,
)
from trunkline.contracts.memory.subjects import MEMORY_CHANGED, MEMORY_LIST, MEMORY_READ, MEMORY_READ_MANY
from trunkline.contracts.tools.messages import (
    CallTool,
    CancelCall,
    EffectRecord,
    ListTools,
    ToolCatalogue,
    ToolOutcome,
    ToolProgress,
)
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL, CANCEL_CALL, LIST_TOOLS
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.testing.platform import platform
from trunkline.testing.tool_calls import assert_audited
from trunkline_bus import Bus, BusError, Refusal, Request, new_id, service


class Caller:
    """A client that calls tools. ``files`` is the content of the stand-in for memory; ``progress`` has the messages
    before outcomes, ``refused`` the calls that ended with an error, each of which must be in the audit log.

    ``block``: the block that calls, unless a call names another. ``silence``: after how many seconds without a
    heartbeat a worker counts as gone.
    """

    def __init__(self, bus: Bus, home: Path) -> None:
        self.silence = 3.0
        self.bus = bus
        self.home = home
        self.block = "main"
        self.files: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.progress: list[ToolProgress] = []

    @property
    def workspace(self) -> Path:
        """The block's workspace."""
        return self.home / "workspaces" / self.block

    async def call(
        self, name: str, arguments: dict[str, Any] | str | None = None, **more: Any
    ) -> ToolOutcome:
        """Call a tool as the monitor does: when its worker goes silent, again under the same key."""
        request = CallTool(
            call=more.pop("key", None) or new_id("call"), name=name, arguments={} if arguments is None else arguments,
            block=more.pop("block", self.block), conversation=more.pop("conversation", "conv_1"), turn="turn_1",
            actor="owner", **more,
        )  # fmt: skip
        with anyio.fail_after(60):
            while True:
                try:
                    outcome = await self._asked(request)
                    if outcome.status == "error" and not outcome.repeated:
                        self.refused[outcome.call] = outcome.status
                    return outcome
                except BusError as error:
                    if type(error).__name__ == "RemoteFault":
                        raise
                    request = msgspec.structs.replace(request, again=True)
                    await anyio.sleep(0.05)

    async def _asked(self, request: CallTool) -> ToolOutcome:
        endpoint = CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL
        async with self.bus.call_streaming(endpoint, request, idle_timeout=self.silence) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
                self.progress.append(reply)
        raise BusError("no outcome")

    async def catalogue(self, *, block: str = "", version: str | None = None) -> ToolCatalogue:
        """The catalogue of a block, by default the caller's."""
        return await self.bus.call(LIST_TOOLS, ListTools(block=block or self.block, version=version))

    async def names(self, block: str = "") -> set[str]:
        """The names in the block's catalogue."""
        return {spec.name for spec in (await self.catalogue(block=block)).tools or ()}

    async def cancel(self, key: str, reason: str = "") -> None:
        """Cancel a call, wherever it runs."""
        await self.bus.publish(CANCEL_CALL, CancelCall(reason=reason), call=key)

    async def records(self, key: str) -> list[EffectRecord]:
        """Return the ledger's records of a call."""
        return [stored.data async for stored in self.bus.history(EFFECT, call=key)]

    async def until(self, holds: Callable[[], bool | Awaitable[bool]], seconds: float = 60.0) -> None:
        """Wait until something holds, asked again and again."""
        with anyio.fail_after(seconds):
            while True:
                found = holds()
                if found if isinstance(found, bool) else await found:
                    return
                await anyio.sleep(0.01)

    async def remember(self, path: str, text: str) -> None:
        """Change memory's files, and publish the change."""
        self.files[path] = text
        await self._publish_change(path)

    async def remove(self, path: str) -> None:
        """Remove one of memory's files, and publish the change."""
        del self.files[path]
        await self._publish_change(path)

    async def _publish_change(self, path: str) -> None:
        await self.bus.publish(MEMORY_CHANGED, MemoryChanged(paths=(path,), version="1"), part="files")

    async def read(self, request: Request[ReadMemory]) -> MemoryFile:
        """Answer as the memory worker does."""
        if request.data.path not in self.files:
            raise Refusal("not_found", "There is nothing by that name.")
        return self._file(request.data.path)

    async def read_many(self, request: Request[ReadManyMemory]) -> MemoryFiles:
        """Answer as the memory worker does."""
        return MemoryFiles(files=tuple(self._file(path) for path in request.data.paths if path in self.files))

    async def list(self, request: Request[ListMemory]) -> MemoryListing:
        """Answer as the memory worker does."""
        paths = sorted(path for path in self.files if path.startswith(f"{request.data.path}/"))
        if not paths:
            raise Refusal("not_found", "There is nothing by that name.")
        now = datetime.now(UTC)
        return MemoryListing(
            entries=tuple(MemoryEntry(path=path, kind="file", modified_at=now) for path in paths)
        )

    def _file(self, path: str) -> MemoryFile:
        return MemoryFile(path=path, content=self.files[path], hash="h", modified_at=datetime.now(UTC))


Tools = Callable[..., AbstractAsyncContextManager[Caller]]
Processes = Callable[..., AbstractAsyncContextManager[tuple[Caller, ProcessPlatform]]]


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """Makes a tools worker in this process: ``async with tools(plugin, config={...}, memory=True) as caller``."""

    return partial(tools_worker, tmp_path / "home")


@asynccontextmanager
async def tools_worker(
    home: Path, *plugins: object, config: Mapping[str, Any] | None = None, memory: bool = True
) -> AsyncIterator[Caller]:
    """A tools worker in this process, and a caller."""
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(
            platform(home, plugins=plugins, config=config, workers=("tools",))
        )
        caller = await _caller(stack, found.bus, home, memory)
        caller.silence = 30.0  # the worker is in this process, so it is never gone
        yield caller
        await assert_audited(caller.bus, caller.refused)


@asynccontextmanager
async def in_new_block(caller: Caller) -> AsyncIterator[Caller]:
    """The caller of a worker that tests share, for one test: in a block of its own, without files and refusals of
    others."""
    caller.block = new_id().lower()
    caller.refused.clear()
    caller.progress.clear()
    yield caller
    for path in [*caller.files]:
        await caller.remove(path)
    await assert_audited(caller.bus, caller.refused)


@pytest.fixture(scope="module")
async def shared_caller(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Caller]:
    """The caller of one worker without tools of a test, for all tests of a module."""
    async with tools_worker(tmp_path_factory.mktemp("tools")) as caller:
        yield caller


@pytest.fixture
async def caller(shared_caller: Caller) -> AsyncIterator[Caller]:
    """The shared one, in a block of its own."""
    async with in_new_block(shared_caller) as caller:
        yield caller


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    """Makes tools workers as processes, with plugins as texts of modules."""

    @asynccontextmanager
    async def running(**plugins: str) -> AsyncIterator[tuple[Caller, ProcessPlatform]]:
        home = tmp_path / "home"
        async with AsyncExitStack() as stack:
            found = await stack.enter_async_context(
                process_platform(home, plugins=plugins, workers=("tools",))
            )
            try:
                yield await _caller(stack, found.bus, home, memory=True), found
            except BaseException:
                print(found.logs())  # noqa: T201 - pytest shows it with the failure
                raise

    return running


async def _caller(stack: AsyncExitStack, bus: Bus, home: Path, memory: bool) -> Caller:
    caller = Caller(bus, home)
    if memory:
        answering = await stack.enter_async_context(service(bus, name="trunkline-memory", version="0.0.1"))
        await answering.add(MEMORY_READ, caller.read)
        await answering.add(MEMORY_READ_MANY, caller.read_many)
        await answering.add(MEMORY_LIST, caller.list)
    return caller
