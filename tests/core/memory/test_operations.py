"""The table of memory's operations: each row is served, and the permissions of every process derive from it."""

from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
import pytest

from trunkline.acl.roles import GATEWAY, MEMORY, MONITOR, OPERATOR, TOOLS, all_roles
from trunkline.contracts.memory.access import CallerAccess
from trunkline.contracts.memory.authorization import AuthorizingTransport
from trunkline.contracts.memory.chunks import ChunksPruned, PruneChunks
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.files import ReadMemory
from trunkline.contracts.memory.operation import AccessExtent, MemoryOperation, change, query
from trunkline.contracts.memory.search import MemoryHit, MemoryHits, SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_OPERATIONS, MEMORY_READ
from trunkline.contracts.memory.transport import NoTransport
from trunkline.errors import ToolError, error_kind_for_code
from trunkline.testing.platform import platform
from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline.workers.memory.write_check import WriteCheck
from trunkline_bus import RemoteFault, service

pytestmark = pytest.mark.anyio

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")

CALLERS = {"gateway": GATEWAY, "memory": MEMORY, "monitor": MONITOR, "tools": TOOLS, "operator": OPERATOR}


def test_every_operation_has_a_row_of_its_own() -> None:
    """Name, subject and request type occur once; each row is documented."""
    for column in ("name", "subject", "request"):
        assert len({getattr(one, column) for one in MEMORY_OPERATIONS}) == len(MEMORY_OPERATIONS), column
    assert all(one.doc for one in MEMORY_OPERATIONS)


def test_permissions_derive_from_the_rows_alone() -> None:
    """A process may call exactly the operations that name it, memory alone serves them, and no other role calls any."""
    for role in all_roles(("telegram",), ("laptop",), ("acme",), {"agent": ("main",)}):
        called = {one.name for one in role.calls if one in MEMORY_OPERATIONS}
        assert called == {one.name for one in MEMORY_OPERATIONS if role.name in one.callers}, role.name
    assert MEMORY.serves == MEMORY_OPERATIONS
    assert {caller for one in MEMORY_OPERATIONS for caller in one.callers} == CALLERS.keys()


def test_the_tools_worker_may_call_what_tools_may_call() -> None:
    """A row with an extent names the tools worker; without one no tool reaches it. The owner's operations have none."""
    assert all("tools" in one.callers for one in MEMORY_OPERATIONS if one.extent is not None)
    owners = {
        "purge",
        "check",
        "reindex",
        "index-stats",
        "chunk-prune",
        "chunk-delete",
        "chunk-restore",
        "move",
    }
    closed = {one.name.removeprefix("memory.") for one in MEMORY_OPERATIONS if one.extent is None}
    assert owners <= closed


FILTERED = [
    one for one in MEMORY_OPERATIONS if one.extent == "reply" or (one.extent == "tree" and not one.changes)
]
"""The rows whose requests or replies name more than one path: a filter decides which of them a tool may see."""


@pytest.mark.parametrize("operation", FILTERED, ids=lambda one: one.name)
async def test_a_row_that_reaches_more_than_a_path_has_a_filter(operation: MemoryOperation[Any, Any]) -> None:
    """Its request reaches the memory worker. Without a filter a tool's call would be refused before."""
    with pytest.raises(ToolError, match="cannot be reached"):
        await _call(operation)


@pytest.mark.parametrize("extent", ["tree", "reply"])
def test_a_query_without_a_filter_cannot_be_declared(extent: AccessExtent) -> None:
    """Nothing would decide which part of its reply a tool may see."""
    with pytest.raises(
        TypeError, match=rf"memory\.count-paths has the extent '{extent}', but no filter decides"
    ):
        query("count-paths", CountPaths, MemoryHits, "Count paths.", ("tools",), extent=extent)


def test_an_unchecked_change_with_the_extent_reply_is_refused() -> None:
    """Nothing would decide whether a tool may make the change, since its request names no path."""
    with pytest.raises(TypeError, match=r"memory\.prune has the extent 'reply', but no check decides"):
        change("prune", PruneChunks, ChunksPruned, "Archive old chunks.", ("tools",), extent="reply")


@pytest.mark.parametrize("extent", ["file", "tree"])
def test_an_operation_without_a_path_cannot_have_the_extent_of_a_path(extent: AccessExtent) -> None:
    with pytest.raises(TypeError, match=r"memory\.prune has the extent .* no path to check"):
        change("prune", PruneChunks, ChunksPruned, "Archive old chunks.", ("tools",), extent=extent)


async def test_the_filter_of_a_row_decides_what_a_tool_sees() -> None:
    """The reply of memory reaches a tool through the filter of the row, and its check comes before memory."""

    async def none(access: CallerAccess, request: CountPaths, reply: MemoryHits) -> MemoryHits:
        return MemoryHits(hits=tuple([hit for hit in reply.hits if await access.is_visible(hit.path)]))

    async def no_short_query(access: CallerAccess, request: CountPaths) -> CountPaths:
        if len(request.query) < 3:
            raise ToolError("The query is too short.", kind="permission_denied")
        return request

    row = query(
        "count-paths", CountPaths, MemoryHits, "Count paths.", ("tools",),
        extent="reply", check=no_short_query, filter=none,
    )  # fmt: skip
    memory = TwoHits()
    transport = AuthorizingTransport(CallerAccess(memory, "main", "agent"))
    shown = await transport.call(row, CountPaths(query="needle"))
    assert [hit.path for hit in shown.hits] == ["blocks/main/open.md"]
    with pytest.raises(ToolError, match="too short"):
        await transport.call(row, CountPaths(query="n"))
    assert memory.requests == 1


class CountPaths(SearchMemory, frozen=True, kw_only=True, tag="memory.count-paths.v1"):
    """A new request, which no operation has."""


class TwoHits(NoTransport):
    """Memory with an open file and a file that is private to another actor."""

    def __init__(self) -> None:
        self.requests = 0

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        self.requests += 1
        paths = ("blocks/main/open.md", "blocks/main/agents/bob/diary.md")
        hits = tuple(MemoryHit(path=path, line=1, content="", context="", score=1.0) for path in paths)
        return cast(A, MemoryHits(hits=hits))


async def _call(operation: MemoryOperation[Any, Any]) -> None:
    """Call an operation as a tool does; every required field is a text."""
    required = [field for field in msgspec.structs.fields(operation.request) if field.required]
    assert all(field.type is str for field in required), operation.name
    request = operation.request(**{field.name: "a" for field in required})
    await AuthorizingTransport(CallerAccess(NoTransport(), "main", "agent")).call(operation, request)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [("not_found", "nothing is stored"), ("internal", "settings"), ("storage_failure", "settings")],
)
async def test_only_a_block_without_settings_has_the_default_layer(fault: str, wanted: str) -> None:
    """When memory fails to read the settings, nothing is remembered, because the settings may forbid it."""

    async def no_whole_folder(path: str, action: str, whole: bool) -> None:
        if whole:
            raise ToolError("not all of memory", kind="permission_denied")

    access = CallerAccess(FaultyMemory(fault), "main", "agent", check_access=no_whole_folder)
    memory = Memory(AuthorizingTransport(access), "main")
    with pytest.raises(ToolError, match=wanted):
        await memory.remember("The shed is open.", conversation="conv_1")


class FaultyMemory(NoTransport):
    """Memory that cannot read files, with the code of its fault, and stores nothing."""

    def __init__(self, code: str) -> None:
        self.code = code

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        if operation.name != MEMORY_READ.name:
            raise ToolError("nothing is stored", kind="failed")
        fault = RemoteFault(code=self.code, message="settings")
        raise ToolError("The settings cannot be read.", kind=error_kind_for_code(self.code)) from fault


async def test_a_row_without_a_handler_stops_the_worker(tmp_path: Path) -> None:
    """The worker starts when all rows have handlers; otherwise the error has the name of the row."""
    async with (
        platform(tmp_path, workers=("memory",)) as running,
        service(running.bus, name="other", version="0.0.1") as other,
    ):
        await running.bus.call(MEMORY_READ, ReadMemory(path="AGENT.md"))
        endpoints = EndpointRegistry(other, ChangePublisher(running.bus), WriteCheck(tmp_path))
        with pytest.raises(RuntimeError, match=r"no handler serves .*memory\.blame"):
            endpoints.check_complete(MEMORY_OPERATIONS)
