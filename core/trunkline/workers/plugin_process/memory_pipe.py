"""PipeTransport: the memory of an isolated plugin's tool. A request is sent among the replies of the tool call, and
its reply arrives as the answer to a host call.

So the process needs no permission to call memory. It reaches the block of a call only while that call runs, and the
tools worker authorizes each request as if the tool ran there.
"""

from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from trunkline.contracts.memory.operation import MemoryOperation
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.contracts.plugins.messages import MemoryHostCall
from trunkline.errors import ToolError, error_kind_named
from trunkline.workers.plugin_process.host_calls import HostCallClient

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")

TIMEOUT = 60.0
"""Seconds to wait for a reply."""


class PipeTransport:
    """Sends memory requests as host calls through ``calls``."""

    def __init__(self, calls: HostCallClient) -> None:
        self._calls = calls

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Send a request and return its reply. Raises ToolError."""
        body = msgspec.json.encode(request).decode()
        reply = None
        with anyio.move_on_after(TIMEOUT):
            reply = await self._calls.call(
                lambda number: MemoryHostCall(number=number, operation=operation.name, request=body)
            )
        if reply is None:
            raise ToolError(
                "Memory did not answer in time. The operation may have been carried out; check.",
                kind="timeout",
            )
        if reply.error is not None:
            raise ToolError(reply.error, kind=error_kind_named(reply.code))
        return msgspec.json.decode(reply.result, type=operation.reply)

    async def export(self, target: Path) -> int:
        """Refuse: an isolated plugin may not export memory."""
        raise ToolError(
            "Memory cannot be exported by a plugin that runs in a process of its own.", kind="unsupported"
        )

    async def import_archive(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Refuse: an isolated plugin may not import into memory."""
        raise ToolError(
            "Nothing can be imported by a plugin that runs in a process of its own.", kind="unsupported"
        )
