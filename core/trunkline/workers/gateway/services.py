"""The gateway's services, each created once here. The bus endpoints and the HTTP handlers call them."""

from dataclasses import dataclass
from typing import Self

from trunkline._util.secrets.redactor import Redactor
from trunkline.config import GatewaySettings
from trunkline.contracts.gateway.messages import DeletedResponse
from trunkline.contracts.gateway.subjects import DELETED_RESPONSE_BUCKET
from trunkline.home.kill_switch import KillSwitch
from trunkline.plugins import Plugins
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.auth.token_key import TokenKey
from trunkline.runtime.auth.token_registry import TokenRegistry
from trunkline.runtime.block_access import BlockAccess
from trunkline.runtime.worker import WorkerContext
from trunkline.workers.gateway.agents.agent_records import AgentRecords
from trunkline.workers.gateway.agents.agent_service import AgentService
from trunkline.workers.gateway.agents.task_notices import TaskNotices
from trunkline.workers.gateway.agents.task_reports import TaskReports
from trunkline.workers.gateway.agents.tasks import TaskStarter
from trunkline.workers.gateway.approvals import ApprovalService
from trunkline.workers.gateway.attachments import MEGABYTE, AttachmentLimits, AttachmentService
from trunkline.workers.gateway.auth.auth_service import AuthService
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.block_stopper import BlockStopper
from trunkline.workers.gateway.block_tasks import BlockTasks
from trunkline.workers.gateway.block_templates import BlockTemplates
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.conversation_service import ConversationService
from trunkline.workers.gateway.cost_service import CostService
from trunkline.workers.gateway.dead_letter_service import DeadLetterService
from trunkline.workers.gateway.disk_space import BusDiskSpace
from trunkline.workers.gateway.doctor_service import DoctorService
from trunkline.workers.gateway.document_service import DocumentService
from trunkline.workers.gateway.files import FileService
from trunkline.workers.gateway.grants import GrantStore
from trunkline.workers.gateway.memory_service import MemoryService
from trunkline.workers.gateway.memory_transfer import MemoryTransfer
from trunkline.workers.gateway.message_service import MessageService
from trunkline.workers.gateway.models import ModelService
from trunkline.workers.gateway.overview_service import OverviewService
from trunkline.workers.gateway.panic_service import PanicService
from trunkline.workers.gateway.push.push_notifier import PushNotifier
from trunkline.workers.gateway.push.push_service import PushService
from trunkline.workers.gateway.queue_head import QueueHeadCache
from trunkline.workers.gateway.queue_limiter import QueueLimiter
from trunkline.workers.gateway.settings_service import SettingsService
from trunkline.workers.gateway.setup_service import SetupService
from trunkline.workers.gateway.task_service import TaskService
from trunkline.workers.gateway.trace_service import TraceService
from trunkline.workers.gateway.transcript_index import TranscriptIndex
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline.workers.gateway.wake_ups import WakeUps
from trunkline.workers.gateway.workspaces import Workspaces
from trunkline_bus import Bus, KeyValue

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of one gateway worker. Data only."""

    bus: Bus
    access: BlockAccess
    auth: AuthService
    turns: TurnLookup
    messages: MessageService
    agents: AgentService
    approvals: ApprovalService
    push: PushService
    notifier: PushNotifier
    grants: GrantStore
    conversations: ConversationService
    transcripts: TranscriptIndex
    queue_heads: QueueHeadCache
    blocks: BlockService
    wake_ups: WakeUps
    models: ModelService
    memory: MemoryService
    memory_transfer: MemoryTransfer
    documents: DocumentService
    costs: CostService
    traces: TraceService
    dead_letters: DeadLetterService
    overview: OverviewService
    settings: SettingsService
    setup: SetupService
    tasks: TaskService
    doctor: DoctorService
    room: BusDiskSpace
    audit: AuditLog
    plugins: Plugins
    panic: PanicService
    attachments: AttachmentService
    files: FileService
    deleted_responses: KeyValue[DeletedResponse]

    @classmethod
    def from_context(
        cls,
        context: WorkerContext,
        cache: BlockCache,
        access: BlockAccess,
        key: TokenKey,
        registry: TokenRegistry,
    ) -> Self:
        """Return the services of one worker. ``cache`` and ``access`` must be open, and ``registry`` must run."""
        bus, config, plugins = context.bus, context.config.settings, context.plugins
        turns, grants = TurnLookup(bus), GrantStore(bus, access)
        audit = AuditLog(bus, config.audit.detail, Redactor(config.memory.redact))
        room = BusDiskSpace(context.home.bus if config.bus.url is None else None)
        conversations = ConversationService(bus, turns, cache, access)
        places, default = Workspaces(context.home), config.gateway.default_block
        stopping = BlockStopper(bus, turns, BlockTasks(bus, context.home.path))
        templates = BlockTemplates(context.home.templates, config.permissions)
        wake_ups, agents = WakeUps(bus), AgentRecords(bus)
        blocks = BlockService(
            bus, stopping, conversations, places, cache, audit, access, templates, wake_ups, agents, default
        )
        limits = _attachment_limits(config.gateway)
        attachments = AttachmentService(bus, limits)
        messages = MessageService(
            bus, turns, conversations, blocks,
            rules=plugins.admission_rules(),
            route=plugins.route,
            max_content=config.gateway.max_content,
            queue=QueueLimiter(turns, config.gateway.max_queued),
            room=room,
            attachments=attachments,
            access=access,
        )  # fmt: skip
        push = PushService(bus, key, registry, plugins.push_sender(), context.home.push_key)
        return cls(
            bus=bus,
            access=access,
            auth=AuthService.of(bus, turns, key, registry, audit, plugins.passkey_verifier()),
            turns=turns,
            messages=messages,
            agents=_agents(context, agents, turns, messages, access),
            approvals=ApprovalService(bus, turns, grants, access),
            push=push,
            notifier=PushNotifier(bus, push, access),
            grants=grants,
            conversations=conversations,
            transcripts=TranscriptIndex(bus, turns),
            queue_heads=QueueHeadCache(turns),
            blocks=blocks,
            wake_ups=wake_ups,
            models=ModelService(bus, conversations, access, default),
            memory=MemoryService(bus),
            memory_transfer=MemoryTransfer(
                bus, context.home.cache, lambda: [owned.item for owned in plugins.importers()]
            ),
            documents=DocumentService(
                bus,
                context.home.cache,
                lambda: [owned.item for owned in plugins.readers()],
                config.documents,
                limits.size,
            ),
            costs=CostService(bus, access),
            traces=TraceService(bus, messages),
            dead_letters=DeadLetterService(bus),
            overview=OverviewService(bus, KillSwitch(context.home.path)),
            settings=SettingsService(context.config, plugins, audit),
            setup=SetupService(context.config, plugins),
            tasks=TaskService(context.home.path, access),
            doctor=DoctorService(context.config),
            room=room,
            audit=audit,
            plugins=plugins,
            panic=PanicService(bus, KillSwitch(context.home.path), audit),
            attachments=attachments,
            deleted_responses=bus.kv(DELETED_RESPONSE_BUCKET),
            files=FileService(bus, max_size=limits.size, lifetime=config.retention.file_days * DAY_SECONDS),
        )


def _agents(
    context: WorkerContext,
    records: AgentRecords,
    turns: TurnLookup,
    messages: MessageService,
    access: BlockAccess,
) -> AgentService:
    bus = context.bus
    settings = context.config.settings
    starter = TaskStarter(bus, turns, messages, records, settings.agents, context.home.path)
    secrets = Redactor(settings.memory.redact)
    notices = TaskNotices(bus, turns, records, settings.channels.telling, secrets)
    reports = TaskReports(bus, turns, records, notices.wake)
    return AgentService(bus, records, starter, reports, notices, access)


def _attachment_limits(gateway: GatewaySettings) -> AttachmentLimits:
    return AttachmentLimits(
        gateway.max_attachments,
        gateway.max_attachment_mb * MEGABYTE,
        gateway.max_attachments_mb * MEGABYTE,
    )
