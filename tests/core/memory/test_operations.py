"""The table of memory's operations: each row is served, and the permissions of every process derive from it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline.acl.roles import GATEWAY, MEMORY, MONITOR, OPERATOR, TOOLS, all_roles
from trunkline.contracts.memory.authorization import AuthorizingTransport
from trunkline.contracts.memory.messages import ReadMemory, SearchMemory
from trunkline.contracts.memory.operation import MemoryOperation, query
from trunkline.contracts.memory.subjects import MEMORY_OPERATIONS, MEMORY_READ
from trunkline.contracts.memory.transport import NoTransport
from trunkline.errors import ToolError
from trunkline.testing.platform import platform
from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline.workers.memory.write_check import WriteCheck
from trunkline_bus import service

pytestmark = pytest.mark.anyio

CALLERS = {"gateway": GATEWAY, "monitor": MONITOR, "tools": TOOLS, "operator": OPERATOR}


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
    """A row with a scope names the tools worker; without one no tool reaches it. The owner's operations have none."""
    assert all("tools" in one.callers for one in MEMORY_OPERATIONS if one.scope is not None)
    owners = {
        "purge",
        "examine",
        "reindex",
        "index-stats",
        "chunk-prune",
        "chunk-delete",
        "chunk-restore",
        "move",
    }
    closed = {one.name.removeprefix("memory.") for one in MEMORY_OPERATIONS if one.scope is None}
    assert owners <= closed


FILTERED = [
    one for one in MEMORY_OPERATIONS if one.scope == "reply" or (one.scope == "tree" and not one.changes)
]
"""The rows whose requests or replies name more than one path: a filter decides which of them a tool may see."""


@pytest.mark.parametrize("operation", FILTERED, ids=lambda one: one.name)
async def test_a_row_that_reaches_more_than_a_path_has_a_filter(operation: MemoryOperation[Any, Any]) -> None:
    """Its request reaches the memory worker. Without a filter a tool's call would be refused before."""
    with pytest.raises(ToolError, match="cannot be reached"):
        await _call(operation)


async def test_a_new_row_without_a_filter_is_refused_to_every_tool() -> None:
    class CountPaths(SearchMemory, frozen=True, kw_only=True, tag="memory.count-paths.v1"):
        pass

    row = query("count-paths", CountPaths, ReadMemory, "Count paths.", ("tools",), scope="reply")
    with pytest.raises(ToolError, match=r"Nothing decides .* memory\.count-paths"):
        await _call(row)


async def _call(operation: MemoryOperation[Any, Any]) -> None:
    """Call an operation as a tool does; every required field is a text."""
    required = [field for field in msgspec.structs.fields(operation.request) if field.required]
    assert all(field.type is str for field in required), operation.name
    request = operation.request(**{field.name: "a" for field in required})
    await AuthorizingTransport(NoTransport(), "main", "agent").call(operation, request)


async def test_a_row_without_a_handler_stops_the_worker(tmp_path: Path) -> None:
    """The worker starts with all rows served; of one that nobody handles it says the name."""
    async with (
        platform(tmp_path, workers=("memory",)) as running,
        service(running.bus, name="other", version="0.0.1") as other,
    ):
        await running.bus.call(MEMORY_READ, ReadMemory(path="AGENT.md"))
        endpoints = EndpointRegistry(other, ChangePublisher(running.bus), WriteCheck(tmp_path))
        with pytest.raises(RuntimeError, match=r"no handler serves .*memory\.blame"):
            endpoints.check_complete(MEMORY_OPERATIONS)
