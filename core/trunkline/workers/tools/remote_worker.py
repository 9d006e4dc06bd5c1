"""The tools worker of a remote: the same tool runtime with its own ledger, called only by the hub's tools worker.

It checks schema, paths, guards and sandboxes like every tools worker. The hub decides which block may use its tools,
since a remote cannot read memory (ADR 0009).
"""

from collections.abc import AsyncIterator
from typing import ClassVar

from msgspec.structs import replace

from trunkline.contracts.tools.messages import CallTool, ListTools, ToolCatalogue, ToolOutcome, ToolReply
from trunkline.contracts.tools.subjects import CANCEL_CALL, REMOTE_CALL_TOOL, REMOTE_LIST_TOOLS
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.runtime.remotes.enrolment import read_enrolment
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.block_tool_limits import BlockToolLimits
from trunkline.workers.tools.call_service import MAX_REQUESTS, CallService
from trunkline.workers.tools.call_services import RemoteServices
from trunkline.workers.tools.policy_source import HostPolicies
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline.workers.tools.tool_runtime import ToolRuntime
from trunkline_bus import Request, background_tasks

MAX_OUTPUT_BYTES = 1024 * 1024
"""Largest number of bytes of a result. A message holds that many even when every character is escaped."""


class RemoteToolsWorker(Worker):
    """Serves ``remote.list`` and ``remote.call`` under the name of this remote."""

    kind: ClassVar[WorkerKind] = "tools"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        settings = context.config.settings
        self.drain_seconds = settings.tools.drain_timeout + 5.0
        remotes = RemoteToolIndex(context)
        self._runtime = ToolRuntime(context, HostPolicies(settings.permissions), remotes)

    async def open(self) -> None:
        """Build the catalogue, subscribe to cancels, and serve the hub's requests."""
        context, runtime = self.context, self._runtime
        name = read_enrolment(context.home.hub).name
        tasks = await self.resources.enter_async_context(background_tasks())
        await runtime.open(tasks, self.resources, RemoteServices())
        self._calls = CallService(runtime.calls, ConversationAncestry(context.bus), runtime.audit)
        await context.bus.subscribe(CANCEL_CALL, self._calls.handle_cancel)
        await context.service.add(REMOTE_LIST_TOOLS, self._handle_list, remote=name)
        await context.service.add(REMOTE_CALL_TOOL, self._handle_call, limit=MAX_REQUESTS, remote=name)

    async def drain(self) -> None:
        """Wait for the active calls, for a limited time."""
        await self._runtime.drain()

    async def _handle_list(self, request: Request[ListTools]) -> ToolCatalogue:
        return (await self._runtime.catalogue()).for_block(BlockToolLimits(), request.data.version)

    async def _handle_call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        async for reply in self._calls.handle_call(request):
            yield _limit_size(reply)


def _limit_size(reply: ToolReply) -> ToolReply:
    size = len(reply.output.encode()) if isinstance(reply, ToolOutcome) else 0
    if size <= MAX_OUTPUT_BYTES or not isinstance(reply, ToolOutcome):
        return reply
    text = f"The tool ran, but its result of {size} bytes is too large to send from this host."
    return replace(reply, status="error", output=text, error_kind="too_large")
