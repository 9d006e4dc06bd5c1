"""The memory worker: it serves a store on the bus, and publishes every committed change."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

import anyio
from msgspec.structs import replace

from trunkline._util.secrets.redactor import Redactor
from trunkline.contracts.memory.search import describe_search
from trunkline.contracts.memory.store import InstalledComponents, MemoryRule, StoreContext
from trunkline.contracts.memory.subjects import MEMORY_OPERATIONS
from trunkline.contracts.models.price_list import installed_prices
from trunkline.contracts.workers.messages import WorkerHeartbeat, WorkerKind
from trunkline.home.kill_switch import KillSwitch
from trunkline.runtime.ability_ledger import AbilityLedger
from trunkline.runtime.cost_ledger import CostLedger
from trunkline.runtime.worker import Worker, WorkerContext
from trunkline.workers.memory.background_jobs import BackgroundJobs
from trunkline.workers.memory.change_rules import ExistingBlockRule, PurgedTurnRule, RedactionRule
from trunkline.workers.memory.chunks.block_policies import BlockPolicies
from trunkline.workers.memory.chunks.chunk_types import TypeRegistry
from trunkline.workers.memory.chunks.reader import ChunkReader
from trunkline.workers.memory.chunks.writer import ChunkWriter
from trunkline.workers.memory.embedder_selection import select_embedder
from trunkline.workers.memory.handlers.attachments import AttachmentHandlers
from trunkline.workers.memory.handlers.change_publisher import ChangePublisher
from trunkline.workers.memory.handlers.chunks import ChunkHandlers
from trunkline.workers.memory.handlers.collections import CollectionHandlers
from trunkline.workers.memory.handlers.conversations import ConversationHandlers
from trunkline.workers.memory.handlers.endpoints import EndpointRegistry
from trunkline.workers.memory.handlers.files import FileHandlers
from trunkline.workers.memory.handlers.history import HistoryHandlers
from trunkline.workers.memory.handlers.maintenance import IndexHandlers, PurgeHandlers
from trunkline.workers.memory.handlers.transfer import TransferHandlers
from trunkline.workers.memory.log_writer import LogWriter
from trunkline.workers.memory.purge.external_data import ExternalData
from trunkline.workers.memory.purge.service import PurgeService, boilerplate_lines
from trunkline.workers.memory.store_selection import choose_store, index_provider
from trunkline.workers.memory.write_check import WriteCheck

DAY = 86_400.0


class Handlers(Protocol):
    """The handlers of a group of endpoints."""

    async def register(self, endpoints: EndpointRegistry) -> None:
        """Register the handlers."""
        ...


class MemoryWorker(Worker):
    """Serves one store, which it selects, configures and opens. ``handlers`` answer the requests."""

    kind: ClassVar[WorkerKind] = "memory"

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._default_block = context.config.settings.gateway.default_block
        memory = context.config.settings.memory
        self._store = choose_store(context.plugins, memory.store)
        self._indexes = index_provider(context.plugins, self._store)
        prices = installed_prices(context.config.settings.models.prices)
        self._ledger = CostLedger(context.bus, context.id, prices)
        self._embedder = select_embedder(
            context.plugins,
            memory.embedder,
            AbilityLedger(self._ledger, prices, context.id),
            KillSwitch(context.home.path),
        )
        self._redaction = RedactionRule(Redactor(memory.redact))
        rules = (owned.item for owned in context.plugins.memory_rules())
        self._purged_turns = PurgedTurnRule()
        self._rules: Sequence[MemoryRule] = (
            ExistingBlockRule(self._default_block),
            self._purged_turns,
            *rules,
            self._redaction,
        )
        self._publisher = ChangePublisher(context.bus)
        self._writes = WriteCheck(context.home.memory)
        self._jobs = BackgroundJobs()
        self._collections = self._indexes.document_collections(context.home.cache / "conversations")
        self._logs = LogWriter(self._store, context.bus, context.home.cache)
        self._purges = self._make_purge_service()
        self._chunk_writer, self._handlers = self._make_handlers()

    def with_status(self, heartbeat: WorkerHeartbeat) -> WorkerHeartbeat:
        """Return the heartbeat with the reason why memory cannot be written, if any."""
        return replace(heartbeat, trouble=self._writes.problem)

    def _installed(self) -> InstalledComponents:
        """Return the installed plugins, adapters and tools. If plugins are isolated, their tools are not known here, so
        no tools are listed.
        """
        plugins = self.context.plugins
        apart = any(plugin.status == "isolated" for plugin in plugins.report.plugins)
        return InstalledComponents(
            plugins={plugin.name: plugin.version for plugin in plugins.report.loaded},
            adapters=frozenset(owned.item.name for owned in plugins.models()),
            tools=frozenset() if apart else frozenset(owned.item.spec.name for owned in plugins.tools()),
        )

    def _make_purge_service(self) -> PurgeService:
        """Return the service that purges memory and external data."""
        context = self.context
        retention = context.config.settings.retention
        external_data = ExternalData(
            context.bus, context.home, retention, self._logs, self._collections, self._unqueried_plugins
        )
        purgers = [owned.item for owned in context.plugins.purgers()]

        def own_lines() -> frozenset[bytes]:
            texts = [
                *map(describe_search, (None, 0, 1)),
                *(text for purger in purgers for text in purger.texts),
            ]
            return boilerplate_lines(texts, (owned.item.spec for owned in context.plugins.tools()))

        return PurgeService(self._store, purgers, external_data, self._purged_turns, own_lines)

    def _unqueried_plugins(self) -> list[str]:
        """Return the installed plugins that a purge cannot query: those that are not loaded, and those whose purgers
        failed.
        """
        report = self.context.plugins.report
        broken = {trouble.owner for trouble in report.troubles if trouble.hook == "trunkline_purgers"}
        return [
            plugin.name for plugin in report.plugins if plugin.status != "loaded" or plugin.owner in broken
        ]

    def _make_handlers(self) -> tuple[ChunkWriter, Sequence[Handlers]]:
        """Return the writer of chunks, and the handlers of all endpoints."""
        store, plugins, redact = self._store, self.context.plugins, self._redaction.redact
        policies = BlockPolicies(store, self._default_block)
        reader = ChunkReader(self._indexes.chunk_index(store), policies)
        kinds = TypeRegistry(
            (owned.item for owned in plugins.chunk_types()), (owned.item for owned in plugins.link_types())
        )
        writer = ChunkWriter(store, reader, policies, kinds, redact)
        return writer, (
            FileHandlers(store, plugins.rank),
            HistoryHandlers(store),
            ConversationHandlers(store),
            AttachmentHandlers(store, self.context.bus),
            ChunkHandlers(reader, writer),
            PurgeHandlers(self._purges),
            CollectionHandlers(self._collections, redact),
            IndexHandlers(store, self._jobs),
            TransferHandlers(
                store, self.context.bus, self.context.home.cache, self._logs, self._publisher, self._jobs
            ),
        )

    async def open(self) -> None:
        """Open the store and register the handlers. Raises StorageError if history cannot be prepared."""
        home, memory = self.context.home, self.context.config.settings.memory
        await self._store.open(
            StoreContext(
                home.memory,
                home.cache,
                rules=self._rules,
                on_change=self._publisher.note,
                installed=self._installed,
                embedder=self._embedder,
                commit_window=memory.commit_window,
                fsync=memory.fsync,
            )
        )
        self.resources.push_async_callback(self._store.aclose)
        if self._embedder is not None:
            self.resources.push_async_callback(self._embedder.aclose)
        self.resources.push_async_callback(self._collections.aclose)
        await self._purges.load()
        endpoints = EndpointRegistry(self.context.service, self._publisher, self._writes)
        async with self.context.service.confirm_together():
            for answers in self._handlers:
                await answers.register(endpoints)
        endpoints.check_complete(MEMORY_OPERATIONS)

    async def serve(self) -> None:
        """Maintain the store and publish its changes until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._store.run_maintenance)
            group.start_soon(self._jobs.run)
            group.start_soon(self._publisher.run)
            group.start_soon(self._writes.run, lambda: self.announce())
            group.start_soon(self._chunk_writer.run_pruning)
            group.start_soon(self._logs.run)
            group.start_soon(self._ledger.run)
            group.start_soon(
                self._collections.run_cleanup, self._conversation_exists, self._collection_seconds
            )

    async def _conversation_exists(self, conversation: str) -> bool:
        return await self._store.find_conversation(conversation) is not None

    @property
    def _collection_seconds(self) -> float:
        return self.context.config.settings.documents.conversation_days * DAY
