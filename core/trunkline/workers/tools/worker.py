"""The tools worker: its parts put together, and what it answers on the bus. The work itself is in the parts."""

import logging
from collections.abc import AsyncIterator
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from trunkline._util.paths import open_beneath
from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.documents.reader import Documents, NoDocuments
from trunkline.contracts.memory.client import BlockMemory
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.learned_visibility import recipient_of
from trunkline.contracts.memory.store import Memory
from trunkline.contracts.models.client import BlockCompleter
from trunkline.contracts.models.completer import Completer
from trunkline.contracts.policies.messages import PermissionTable
from trunkline.contracts.retention import MEGABYTE
from trunkline.contracts.tools.messages import (
    CallTool,
    CancelCall,
    CheckLiveness,
    EndTasks,
    ListTools,
    LivenessReply,
    TasksEnded,
    ToolCatalogue,
    ToolReply,
    ToolSpec,
)
from trunkline.contracts.tools.person import Person
from trunkline.contracts.tools.planning import Planning
from trunkline.contracts.tools.subjects import (
    CALL_DECIDED_TOOL,
    CALL_TOOL,
    CANCEL_CALL,
    CHECK_LIVENESS,
    END_TASKS,
    LIST_TOOLS,
    RESULT_STORE,
)
from trunkline.contracts.tools.tool import Tool, ToolContext, ToolMiddleware
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.documents.folder_watcher import WatcherDeps, exclusive_lock, watch_folders
from trunkline.documents.ingester import IngestReport
from trunkline.documents.reader_pool import reader_pool
from trunkline.documents.reader_registry import ReaderRegistry
from trunkline.documents.tool_documents import BlockDocuments, OpenFiles
from trunkline.errors import ErrorCode, ToolError
from trunkline.home.kill_switch import KillSwitch
from trunkline.home.paths import make_folder
from trunkline.policy import ActorPermissions
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.detached_programs import end_detached_programs
from trunkline.runtime.panic_handler import PanicHandler
from trunkline.runtime.remotes.registry import RemoteRegistry
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.block_tool_limits import BlockToolLimits, BrokenBlockConfig, block_config_cache
from trunkline.workers.tools.builtin_stages import GateStage, PathStage, QuotaStage, SchemaStage
from trunkline.workers.tools.call_audit import with_audit
from trunkline.workers.tools.call_executor import BLOCK, CallExecutor, ExecutorDeps
from trunkline.workers.tools.call_person import CallPerson
from trunkline.workers.tools.call_registry import ActiveCall, CallRegistry
from trunkline.workers.tools.call_tracing import with_tracing
from trunkline.workers.tools.catalogue import PLATFORM_OWNER, Catalogue
from trunkline.workers.tools.delegation import DelegationService
from trunkline.workers.tools.discovery import ToolDiscovery
from trunkline.workers.tools.discovery_tools import discovery_tools
from trunkline.workers.tools.dispatch import Guard
from trunkline.workers.tools.gatekeeper import Gatekeeper
from trunkline.workers.tools.isolated_tools import IsolatedToolIndex
from trunkline.workers.tools.ledger import Ledger, scope_of
from trunkline.workers.tools.live_catalogue import LiveCatalogue, ToolSupply
from trunkline.workers.tools.liveness import Liveness
from trunkline.workers.tools.memory_access import MemoryAccess, MemoryStage
from trunkline.workers.tools.owner_policies import POLICY_FOLDER, OwnerPolicies, owner_policy_cache
from trunkline.workers.tools.path_locks import PathLocks
from trunkline.workers.tools.path_scopes import reach_of
from trunkline.workers.tools.plan_cleanup import PlanCleanup
from trunkline.workers.tools.planning import CallPlanning
from trunkline.workers.tools.policy_stage import PolicyStage
from trunkline.workers.tools.quotas import Quotas
from trunkline.workers.tools.remote_tools import RemoteToolIndex
from trunkline.workers.tools.result_cleanup import ResultCleanup
from trunkline.workers.tools.result_store import ResultStore
from trunkline.workers.tools.result_tool import read_result_tool
from trunkline.workers.tools.sandboxes import CallSandbox, SandboxSelector
from trunkline.workers.tools.tool_sources import ToolSourceRunner
from trunkline_bus import ReceivedMessage, Refusal, Request, SubjectError, background_tasks

MOST_ASKING = 4096
"""Requests for calls that are answered at once, if only by the answer that there are too many calls. Several may ask
for one call."""

SPARE_THREADS = 4
"""Threads for each slot: a synchronous tool that hangs keeps its thread after its call has timed out."""

DECISION_FORBIDDEN = (
    "Only the monitor may say what people decided about a call, and it does so elsewhere. Nothing was run."
)

WATCHER = "owner"
"""Whom history names for what a watched folder brings: it is the owner's folder."""

log = logging.getLogger(__name__)


class ToolsWorker(Worker):
    """Answers ``tools.list`` and ``tools.call``, and hears cancels."""

    kind: ClassVar[WorkerKind] = "tools"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._settings = context.config.settings.tools
        self.drain_seconds = self._settings.drain_timeout + 5.0
        self._blocks = block_config_cache(context.bus)
        self._latch = KillSwitch(context.home.path)
        self._heed = PanicHandler(self._latch, self._stop_everything)
        self._sandboxes = SandboxSelector(context.plugins.sandboxes(), self._latch)
        self._rules = owner_policy_cache(context.bus)
        self._lineage = ConversationAncestry(context.bus)
        self.audit = AuditLog(context.bus, context.config.settings.audit.detail, self._secrets())
        self.permissions = CallAuthorizer(self.table_of, self.owner_policies, Quotas(context.bus))
        self._discovery = ToolDiscovery(self._catalogue, self.limits_of, self.permissions, self._sandboxes)

    async def open(self) -> None:
        """Find the tools, and answer."""
        context, settings = self.context, self._settings
        tasks = await self.resources.enter_async_context(background_tasks())
        tasks.start_soon(self.audit.run)
        liveness = Liveness(context.bus, context.id)
        self.resources.callback(liveness.close)
        for known in (self._blocks, self._rules):
            self.resources.callback(known.close)
            await known.open()
        self._remotes = self._make_remote_tools()
        tasks.start_soon(self._remotes.poll)
        results = self.make_result_store()
        supplies = self._make_tool_supply(self.platform_tools(results))
        tasks.start_soon(supplies.isolated.poll)
        tasks.start_soon(supplies.sources.run)
        bounds = context.config.settings.documents
        self._reading = await self.resources.enter_async_context(reader_pool(bounds))
        tasks.start_soon(self.watch_folders)
        self._shelf = LiveCatalogue(supplies, self._remotes)
        self._ledger = Ledger(context.bus, context.id, liveness, tasks)
        carrier = CallExecutor(
            ExecutorDeps(
                ledger=self._ledger,
                shelf=self._shelf,
                resources=PathLocks(),
                context_of=self._context_of,
                wait_for_policies=self.wait_for_policies,
                limits_of=self.limits_of,
                slots=anyio.Semaphore(settings.concurrency, fast_acquire=True),
                timeout=settings.timeout,
                tasks=tasks,
                record_activity=context.plugins.record_activity,
                results=results,
            )
        )
        capture = context.config.settings.telemetry.capture_content
        most = settings.concurrency + settings.backlog
        self._calls = CallRegistry(
            tasks, with_tracing(with_audit(carrier.execute, self.audit), capture=capture), most
        )
        _allow_threads(settings.concurrency * SPARE_THREADS)
        tasks.start_soon(self._heed.watch)
        tasks.start_soon(self._sandboxes.serve)
        if results is not None:
            sweeper = ResultCleanup(context.bus, results, self._lineage)
            await sweeper.open()
            tasks.start_soon(sweeper.run)
        self.start_cleanup(tasks)
        await context.service.add(CHECK_LIVENESS, self._alive, worker=context.id)
        await context.service.add(END_TASKS, self._end, worker=context.id)
        await self.answer()

    def start_cleanup(self, tasks: TaskGroup) -> None:
        """Take out of memory what binds conversations that are gone."""
        tasks.start_soon(PlanCleanup(self.context.bus, self._lineage).run)

    async def answer(self) -> None:
        """Hear cancels, and answer on the bus."""
        context = self.context
        await context.bus.subscribe(CANCEL_CALL, self._cancel)
        await self._heed.listen(context.bus, context.id, "tools")
        await context.service.add(LIST_TOOLS, self._list)
        await context.service.add(CALL_TOOL, self._call_untrusted, limit=MOST_ASKING)
        await context.service.add(CALL_DECIDED_TOOL, self._call_decided, limit=MOST_ASKING)
        lending = DelegationService(self.list_tools, self.call_untrusted, self.stop)
        await lending.answer(context.bus, context.service)

    def platform_tools(self, results: ResultStore | None) -> tuple[Tool, ...]:
        """The platform's own tools."""
        reading = () if results is None else (read_result_tool(results, self._lineage),)
        return (*discovery_tools(self._discovery), *reading)

    def make_result_store(self) -> ResultStore | None:
        """Where results that are too long for a conversation are kept."""
        settings, retention = self._settings, self.context.config.settings.retention
        return ResultStore(
            self.context.bus.objects(RESULT_STORE),
            shown=settings.max_shown_result,
            largest=settings.max_stored_result,
            room=int(retention.result_mb * MEGABYTE),
        )

    async def limits_of(self, block: str) -> BlockToolLimits:
        """What a block may use. Raises ToolError when that cannot be known."""
        names = (await self._blocks.get(block)).tools
        return BlockToolLimits(
            None if names is None else frozenset(names), self._remotes.allowed_for(block), block
        )

    async def table_of(self, block: str) -> PermissionTable:
        """The block's table of permissions, with the deployment's where it says nothing. Raises ToolError."""
        return (await self._blocks.get(block)).permissions.with_defaults(
            self.context.config.settings.permissions
        )

    async def wait_for_policies(self, block: str) -> None:
        """Wait, not for ever, while memory is away and what calls of the block are judged by was never read."""
        await self._blocks.wait_until_known(block)
        await self._rules.wait_until_known(POLICY_FOLDER)

    async def owner_policies(self) -> OwnerPolicies:
        """The owner's policies. Raises ToolError."""
        return await self._rules.get(POLICY_FOLDER)

    async def drain(self) -> None:
        """Let what is under way end; what has not ended in ``[tools] drain`` seconds is stopped and recorded so."""
        await self._calls.drain(self._settings.drain_timeout)

    async def _stop_everything(self) -> None:
        """What panic ends: every program, also those of a worker that has died, and every call."""
        self._calls.stop_all("everything was stopped by panic")
        await self._sandboxes.end_all()

    def _make_remote_tools(self) -> RemoteToolIndex:
        home, settings = self.context.home, self.context.config.settings.remotes
        return RemoteToolIndex(
            self.context.bus,
            RemoteRegistry(home.remotes),
            home.cache / "remotes",
            settings.unreachable_timeout,
        )

    def _make_tool_supply(self, own: tuple[Tool, ...]) -> ToolSupply:
        plugins = self.context.plugins
        stages: tuple[ToolMiddleware, ...] = (
            SchemaStage(),
            PolicyStage(self.limits_of, self.permissions, self._sandboxes, self._latch, self.audit),
            PathStage(self.permissions),
            GateStage(),
            Gatekeeper(self.permissions, self._tool_of, self._secrets()),
            QuotaStage(self.permissions),
            MemoryStage(),
        )
        built_in = tuple(Guard(PLATFORM_OWNER, stage) for stage in stages)
        apart = tuple(state for state in plugins.report.plugins if state.status == "isolated")
        return ToolSupply(
            plugins=plugins,
            config=self.context.config,
            built_in=built_in,
            isolated=IsolatedToolIndex(self.context.bus, apart, self.context.config),
            sources=ToolSourceRunner(plugins.tool_sources(), self._sandboxes),
            own=own,
        )

    def _secrets(self) -> Redactor:
        return Redactor(self.context.config.settings.memory.redact)

    async def _catalogue(self) -> Catalogue:
        return await self._shelf.current()

    async def _tool_of(self, name: str) -> Tool | None:
        try:
            return (await self._shelf.current()).find(name).tool
        except ToolError:
            return None

    async def _list(self, request: Request[ListTools]) -> ToolCatalogue:
        return await self.list_tools(request.data)

    async def list_tools(self, wish: ListTools) -> ToolCatalogue:
        """A block's catalogue. Refused when nobody can tell what it may use."""
        block = _block(wish.block)
        try:
            limits = await self.limits_of(block)
        except BrokenBlockConfig:
            limits = BlockToolLimits(frozenset())
        except ToolError as error:
            raise Refusal(ErrorCode.ENGINE_UNAVAILABLE, str(error)) from error
        restricted = await self._discovery.restricted(block)
        return (await self._shelf.current()).for_block(limits, wish.version, restricted)

    async def _alive(self, request: Request[CheckLiveness]) -> LivenessReply:
        call = request.data.call
        return LivenessReply(at_work=not call or self._calls.has(call) or self._ledger.has_unrecorded(call))

    async def _end(self, request: Request[EndTasks]) -> TasksEnded:
        wish = request.data
        return await end_detached_programs(self.context.home.path, _block(wish.block), forget=wish.forget)

    async def _call_untrusted(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        async for reply in self.call_untrusted(request.data):
            yield reply

    async def call_untrusted(self, call: CallTool) -> AsyncIterator[ToolReply]:
        """A call of whoever may call tools. What people decided is not theirs to say: the server lets the monitor
        alone speak where that counts."""
        if call.has_decisions:
            await self.audit.record(
                event="decision", block=call.block, actor=call.actor, conversation=call.conversation, turn=call.turn,
                call=call.call, tool=call.name, decision="denied", why=DECISION_FORBIDDEN,
            )  # fmt: skip
            raise Refusal("forbidden", DECISION_FORBIDDEN)
        async for reply in self._replies(call):
            yield reply

    async def _call_decided(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        async for reply in self._replies(request.data):
            yield reply

    async def _replies(self, call: CallTool) -> AsyncIterator[ToolReply]:
        _block(call.block)
        try:
            EFFECT.subject.format(call=call.call)
        except SubjectError as error:
            raise Refusal("invalid_request", "The key of the call is not a key.") from error
        self._lineage.record_fork(call)
        async for reply in self._calls.call(call):
            yield reply

    async def _cancel(self, message: ReceivedMessage[CancelCall]) -> None:
        self.stop(message.keys["call"], message.data)

    def stop(self, call: str, wish: CancelCall) -> None:
        """Stop a call if it runs here, or comes here yet."""
        self._calls.stop(call, wish.reason or "the call was cancelled")

    def _importers(self) -> list[Importer]:
        return [owned.item for owned in self.context.plugins.importers()]

    async def _context_of(self, run: ActiveCall, spec: ToolSpec) -> ToolContext:
        call, context = run.call, self.context
        workspace = context.home.workspace(call.block)
        make_folder(workspace)
        memory = self.memory_of(call)
        reach = reach_of(await self.permissions.path_scopes(spec, call), context.config, context.home)
        files = partial(open_beneath, workspace, reach)
        return ToolContext(
            block=call.block,
            conversation=call.conversation,
            turn=call.turn,
            call=call.call,
            actor=call.actor,
            workspace=workspace,
            memory=memory,
            report=run.report,
            load=run.load,
            derived=run.mark_derived,
            resumed=run.resumed,
            model=self.model_of(call),
            documents=self.documents_of(call, files, memory),
            sandbox=CallSandbox(
                self._sandboxes, f"{call.block} {call.call}", partial(self.permissions.program_bounds, call)
            ),
            reach=reach,
            person=self.person_of(run, spec),
            planning=self.planning_of(call),
            permissions=ActorPermissions(call.permissions),
        )

    async def watch_folders(self) -> None:
        """Bring what changes in the watched folders into memory; of several workers on a machine one does."""
        context, bounds = self.context, self.context.config.settings.documents
        if not bounds.watch:
            return
        tools = WatcherDeps(context.bus, self._readers, bounds, WATCHER, _log_outcome)
        async with exclusive_lock(context.home.cache / "documents.lock"):
            await watch_folders(bounds.watch, tools)

    @cached_property
    def _readers(self) -> ReaderRegistry:
        return ReaderRegistry(owned.item for owned in self.context.plugins.readers())

    def documents_of(self, call: CallTool, files: OpenFiles, memory: Memory) -> Documents:
        """What a tool reads and searches documents with. They are part of memory, for whose request may not see it."""
        if not ActorPermissions(call.permissions).allows_memory("/", whole=True):
            return NoDocuments()
        context = self.context
        readers, reading = self._readers, self._reading
        return BlockDocuments(context.bus, call.block, call.conversation, files, readers, reading, memory)

    def memory_of(self, call: CallTool) -> Memory:
        """The memory of a tool's block, as far as the policies let the call reach there, without what was learned of
        somebody else or elsewhere."""
        memory = BlockMemory(self.context.bus, call.block, call.actor, scope_of(call))
        memory.importers = self._importers
        memory.check_access = MemoryAccess(self.permissions, call)
        memory.recipient = recipient_of(call.block, call.actor)
        return memory

    def model_of(self, call: CallTool) -> Completer:
        """What a tool asks a model with."""
        return BlockCompleter(
            self.context.bus, call.block, actor=call.actor, conversation=call.conversation, turn=call.turn
        )

    def person_of(self, run: ActiveCall, spec: ToolSpec) -> Person:
        """Whom a tool can ask or tell something."""
        return CallPerson(self.context.bus, run, spec, self._settings.answer_wait)

    def planning_of(self, call: CallTool) -> Planning:
        """How a tool holds the agent to planning."""
        return CallPlanning(self.context.bus, self._rules, call)


def _log_outcome(folder: Path, outcome: IngestReport) -> None:
    for one in outcome.skipped:
        log.warning("%s is not brought into memory: %s", one.source, one.reason)
    for path in outcome.gone:
        log.info("%s is no longer in %s; memory keeps it", path, folder)
    if outcome.added or outcome.removed:
        log.info("watched %s: %d brought, %d taken out", folder, len(outcome.added), len(outcome.removed))


def _block(name: str) -> str:
    if BLOCK.fullmatch(name) is None:
        raise Refusal("invalid_request", "The block's name is not a name of a block.")
    return name


def _allow_threads(count: int) -> None:
    """Let synchronous tools have as many threads; the limit is the event loop's, so it is only ever raised."""
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, count)
