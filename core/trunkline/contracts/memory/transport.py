"""Transport: how a ``Memory`` sends its requests. The bus is one (``bus_transport``), the pipe of an isolated plugin
another (``workers.plugin_process.memory_pipe``); ``authorization`` checks the requests on their way."""

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from trunkline.contracts.memory.messages import MemoryImport
from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.errors import ToolError

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")


class Transport(Protocol):
    """Sends requests to memory. Each method raises ToolError with a text for the model."""

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Send a request and return the reply. Paths in both are relative to the memory root."""
        ...

    async def export(self, target: Path) -> int:
        """Write an archive of the whole memory, history included, to ``target``; returns its size in bytes."""
        ...

    async def bring_in(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Import an archive; ``kind`` names the system it comes from, None recognises it."""
        ...


class NoTransport:
    """Reaches no memory: on other hosts, and in tests that give none."""

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Refuse."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")

    async def export(self, target: Path) -> int:
        """Refuse."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")

    async def bring_in(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Refuse."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")
