"""Transport: sends the requests of a ``Memory``. ``bus_transport`` sends them over the bus,
``workers.plugin_process.memory_pipe`` over the pipe of an isolated plugin. ``authorization`` checks the requests in
between.
"""

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.errors import ToolError

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")


class Transport(Protocol):
    """Sends requests to memory.

    Guarantees: a reply to a change is sent after its commit.

    Not guaranteed: after ``timeout``, whether memory did the work.
    """

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Send a request and return the reply. Paths in both are relative to the memory root. Raises ToolError with a
        text for the model; if memory refused, its cause is the RemoteFault.
        """
        ...

    async def export(self, target: Path) -> int:
        """Write an archive of all of memory, with its history, to ``target``, and return its size in bytes. Raises
        ToolError with a text for the model.
        """
        ...

    async def import_archive(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Import an archive. ``kind`` names the system that it is from; with None the system is recognised. Raises
        ToolError with a text for the model.
        """
        ...


class NoTransport:
    """Refuses every request. For hosts without memory, and for tests."""

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")

    async def export(self, target: Path) -> int:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")

    async def import_archive(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Refuse. Raises ToolError ``unsupported`` in every case."""
        raise ToolError("Memory cannot be reached from here.", kind="unsupported")
