"""The hub's tools worker: creates its components and serves the endpoints."""

import logging
from pathlib import Path
from typing import ClassVar

from trunkline.contracts.retention import MEGABYTE
from trunkline.contracts.tools.messages import ListTools, ToolCatalogue
from trunkline.contracts.tools.subjects import (
    CALL_DECIDED_TOOL,
    CALL_TOOL,
    CANCEL_CALL,
    LIST_TOOLS,
    RESULT_STORE,
)
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.documents.folder_watcher import WatcherDeps, exclusive_lock, watch_folders
from trunkline.documents.ingester import IngestReport
from trunkline.documents.reader_pool import reader_pool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.errors import ErrorCode, ToolError
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.block_tool_limits import BlockToolLimits, BrokenBlockConfig
from trunkline.workers.tools.call_service import MAX_REQUESTS, CallService, require_block_name
from trunkline.workers.tools.call_services import PlatformServices
from trunkline.workers.tools.delegation import DelegationService
from trunkline.workers.tools.discovery import ToolDiscovery
from trunkline.workers.tools.discovery_tools import discovery_tools
from trunkline.workers.tools.plan_cleanup import PlanCleanup
from trunkline.workers.tools.policy_source import MemoryPolicies
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline.workers.tools.result_cleanup import ResultCleanup
from trunkline.workers.tools.result_store import ResultStore
from trunkline.workers.tools.result_tool import read_result_tool
from trunkline.workers.tools.tool_runtime import ToolRuntime
from trunkline_bus import Refusal, Request, background_tasks

WATCHER_ACTOR = "owner"
"""The actor of documents from a watched folder in memory's history: the owner, whose folder it is."""

log = logging.getLogger(__name__)


class ToolsWorker(Worker):
    """Serves ``tools.list`` and ``tools.call``, and subscribes to cancels."""

    kind: ClassVar[WorkerKind] = "tools"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        settings = context.config.settings
        self.drain_seconds = settings.tools.drain_timeout + 5.0
        remotes = RemoteToolIndex(context)
        self._policies = MemoryPolicies(context.bus, remotes, settings.permissions)
        self._runtime = ToolRuntime(context, self._policies, remotes)
        self._discovery = ToolDiscovery(
            self._runtime.catalogue,
            self._policies.limits_of,
            self._runtime.authorizer,
            self._runtime.sandboxes,
        )
        self._ancestry = ConversationAncestry(context.bus)
        self._readers = ReaderRegistry(owned.item for owned in context.plugins.readers())

    async def open(self) -> None:
        """Open the policies, the catalogue and the background tasks, and serve the endpoints."""
        context, runtime = self.context, self._runtime
        tasks = await self.resources.enter_async_context(background_tasks())
        self.resources.callback(self._policies.close)
        await self._policies.open()
        pool = await self.resources.enter_async_context(reader_pool(context.config.settings.documents))
        services = PlatformServices(
            context.bus,
            context.plugins,
            runtime.authorizer,
            self._policies.owner_cache,
            self._readers,
            pool,
            context.config.settings.tools.answer_wait,
            context.config.settings.channels.telling,
        )
        results = self._make_result_store()
        own_tools = (*discovery_tools(self._discovery), read_result_tool(results, self._ancestry))
        await runtime.open(tasks, self.resources, services, own_tools, results)
        cleanup = ResultCleanup(context.bus, results, self._ancestry)
        await cleanup.open()
        tasks.start_soon(cleanup.run)
        tasks.start_soon(PlanCleanup(context.bus, self._ancestry).run)
        tasks.start_soon(self._watch_folders)
        await self._answer()

    def _make_result_store(self) -> ResultStore:
        settings = self.context.config.settings
        return ResultStore(
            self.context.bus.objects(RESULT_STORE),
            shown=settings.tools.max_shown_result,
            largest=settings.tools.max_stored_result,
            room=int(settings.retention.result_mb * MEGABYTE),
        )

    async def _answer(self) -> None:
        context, runtime = self.context, self._runtime
        calls = CallService(runtime.calls, self._ancestry, runtime.audit)
        await context.bus.subscribe(CANCEL_CALL, calls.handle_cancel)
        await runtime.panic_handler.listen(context.bus, context.id, "tools")
        await context.service.add(LIST_TOOLS, self._handle_list)
        await context.service.add(CALL_TOOL, calls.handle_call, limit=MAX_REQUESTS)
        await context.service.add(CALL_DECIDED_TOOL, calls.handle_decided_call, limit=MAX_REQUESTS)
        delegation = DelegationService(self._list_tools, calls.call, calls.stop)
        await delegation.answer(context.bus, context.service)

    async def drain(self) -> None:
        """Wait for the active calls, for a limited time."""
        await self._runtime.drain()

    async def _handle_list(self, request: Request[ListTools]) -> ToolCatalogue:
        return await self._list_tools(request.data)

    async def _list_tools(self, request: ListTools) -> ToolCatalogue:
        """Return a block's catalogue. Raises Refusal when the block's limits cannot be read."""
        block = require_block_name(request.block)
        try:
            limits = await self._policies.limits_of(block)
        except BrokenBlockConfig:
            limits = BlockToolLimits(frozenset())
        except ToolError as error:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, str(error)) from error
        restricted = await self._discovery.restricted(block)
        return (await self._runtime.catalogue()).for_block(limits, request.version, restricted)

    async def _watch_folders(self) -> None:
        """Import the changes of the watched folders into memory. Only one of several workers on a host does so."""
        context, settings = self.context, self.context.config.settings.documents
        if not settings.watch:
            return
        deps = WatcherDeps(context.bus, self._readers, settings, WATCHER_ACTOR, _log_outcome)
        async with exclusive_lock(context.home.cache / "documents.lock"):
            await watch_folders(settings.watch, deps)


def _log_outcome(folder: Path, outcome: IngestReport) -> None:
    for one in outcome.skipped:
        log.warning("%s was not added to memory: %s", one.source, one.reason)
    for path in outcome.gone:
        log.info("%s is no longer in %s; memory keeps it", path, folder)
    if outcome.added or outcome.removed:
        log.info("watched %s: %d added, %d removed", folder, len(outcome.added), len(outcome.removed))
