"""The tool runtime of a tools worker, on the hub or on a remote: catalogue, authorization, sandboxes, ledger
and calls."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.tools.messages import CheckLiveness, EndTasks, LivenessReply, TasksEnded
from trunkline.contracts.tools.subjects import CHECK_LIVENESS, END_TASKS
from trunkline.contracts.tools.tool import Tool, ToolMiddleware
from trunkline.errors import ToolError
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.detached_programs import end_detached_programs
from trunkline.runtime.panic_handler import PanicHandler
from trunkline.runtime.worker import WorkerContext
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.builtin_stages import GateStage, PathStage, QuotaStage, SchemaStage
from trunkline.workers.tools.call_audit import with_audit
from trunkline.workers.tools.call_executor import CallExecutor, ExecutorDeps
from trunkline.workers.tools.call_registry import CallRegistry
from trunkline.workers.tools.call_service import require_block_name
from trunkline.workers.tools.call_services import CallServices
from trunkline.workers.tools.call_tracing import with_tracing
from trunkline.workers.tools.catalogue import PLATFORM_OWNER, Catalogue
from trunkline.workers.tools.dispatch import Guard
from trunkline.workers.tools.gatekeeper import Gatekeeper
from trunkline.workers.tools.isolated_tools import IsolatedToolIndex
from trunkline.workers.tools.ledger import Ledger
from trunkline.workers.tools.live_catalogue import LiveCatalogue, ToolSupply
from trunkline.workers.tools.liveness import Liveness
from trunkline.workers.tools.memory_access import MemoryStage
from trunkline.workers.tools.path_locks import PathLocks
from trunkline.workers.tools.policy_source import PolicySource
from trunkline.workers.tools.policy_stage import PolicyStage
from trunkline.workers.tools.quotas import Quotas
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline.workers.tools.result_store import ResultStore
from trunkline.workers.tools.sandboxes import SandboxSelector
from trunkline.workers.tools.tool_context_factory import ToolContextFactory
from trunkline.workers.tools.tool_sources import ToolSourceRunner
from trunkline_bus import Request

SPARE_THREADS = 4
"""Threads per slot: a synchronous tool that hangs occupies its thread after its call has timed out."""


class ToolRuntime:
    """The calls of one worker and the objects that run them. Call ``open`` before use."""

    def __init__(self, context: WorkerContext, policies: PolicySource, remotes: RemoteToolIndex) -> None:
        settings = context.config.settings
        self._context = context
        self._settings = settings.tools
        self._policies = policies
        self._remotes = remotes
        self._redactor = Redactor(settings.memory.redact)
        self._kill_switch = KillSwitch(context.home.path)
        self.panic_handler = PanicHandler(self._kill_switch, self._stop_everything)
        self.sandboxes = SandboxSelector(context.plugins.sandboxes(), self._kill_switch)
        self.audit = AuditLog(context.bus, settings.audit.detail, self._redactor)
        self.authorizer = CallAuthorizer(policies.table_of, policies.owner_policies, Quotas(context.bus))

    async def open(
        self,
        tasks: TaskGroup,
        resources: AsyncExitStack,
        services: CallServices,
        own_tools: Sequence[Tool] = (),
        results: ResultStore | None = None,
    ) -> None:
        """Build the catalogue, start the background tasks, and serve the endpoints of this worker.

        ``own_tools`` are the platform's. Without ``results`` no result is shortened or marked as data.
        """
        context, settings = self._context, self._settings
        tasks.start_soon(self.audit.run)
        liveness = Liveness(context.bus, context.id)
        resources.callback(liveness.close)
        tasks.start_soon(self._remotes.poll)
        supply = self._make_supply(tuple(own_tools))
        tasks.start_soon(supply.isolated.poll)
        tasks.start_soon(supply.sources.run)
        self._catalogue = LiveCatalogue(supply, self._remotes)
        self._ledger = Ledger(context.bus, context.id, liveness, tasks)
        contexts = ToolContextFactory(context.config, context.home, self.authorizer, self.sandboxes, services)
        executor = CallExecutor(
            ExecutorDeps(
                ledger=self._ledger,
                catalogue=self._catalogue,
                path_locks=PathLocks(),
                make_context=contexts.make,
                policies=self._policies,
                slots=anyio.Semaphore(settings.concurrency, fast_acquire=True),
                timeout=settings.timeout,
                tasks=tasks,
                record_activity=context.plugins.record_activity,
                results=results,
            )
        )
        capture = context.config.settings.telemetry.capture_content
        handler = with_tracing(with_audit(executor.execute, self.audit), capture=capture)
        self.calls = CallRegistry(tasks, handler, settings.concurrency + settings.backlog)
        _allow_threads(settings.concurrency * SPARE_THREADS)
        tasks.start_soon(self.panic_handler.watch)
        tasks.start_soon(self.sandboxes.serve)
        await context.service.add(CHECK_LIVENESS, self._check_liveness, worker=context.id)
        await context.service.add(END_TASKS, self._end_tasks, worker=context.id)

    def _make_supply(self, own: tuple[Tool, ...]) -> ToolSupply:
        plugins, authorizer = self._context.plugins, self.authorizer
        limits_of = self._policies.limits_of
        stages: tuple[ToolMiddleware, ...] = (
            SchemaStage(),
            PolicyStage(limits_of, authorizer, self.sandboxes, self._kill_switch, self.audit),
            PathStage(authorizer),
            GateStage(),
            Gatekeeper(authorizer, self._find_tool, self._redactor),
            QuotaStage(authorizer),
            MemoryStage(),
        )
        isolated = tuple(state for state in plugins.report.plugins if state.status == "isolated")
        return ToolSupply(
            plugins=plugins,
            config=self._context.config,
            built_in=tuple(Guard(PLATFORM_OWNER, stage) for stage in stages),
            isolated=IsolatedToolIndex(self._context.bus, isolated, self._context.config),
            sources=ToolSourceRunner(plugins.tool_sources(), self.sandboxes),
            own=own,
        )

    async def catalogue(self) -> Catalogue:
        """Return the current catalogue."""
        return await self._catalogue.current()

    async def _find_tool(self, name: str) -> Tool | None:
        try:
            return (await self._catalogue.current()).find(name).tool
        except ToolError:
            return None

    async def _check_liveness(self, request: Request[CheckLiveness]) -> LivenessReply:
        call = request.data.call
        return LivenessReply(at_work=not call or self.calls.has(call) or self._ledger.has_unrecorded(call))

    async def _end_tasks(self, request: Request[EndTasks]) -> TasksEnded:
        block = require_block_name(request.data.block)
        return await end_detached_programs(self._context.home.path, block, forget=request.data.forget)

    async def drain(self) -> None:
        """Wait for the active calls. Those that have not ended after ``[tools] drain_timeout`` seconds are
        stopped and recorded."""
        await self.calls.drain(self._settings.drain_timeout)

    async def _stop_everything(self) -> None:
        """On panic, stop every call and every program, including programs of a worker that crashed."""
        self.calls.stop_all("everything was stopped by panic")
        await self.sandboxes.end_all()


def _allow_threads(count: int) -> None:
    """Allow ``count`` threads for synchronous tools. The limit belongs to the event loop, so it is only ever
    raised."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, count)
