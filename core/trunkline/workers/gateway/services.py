"""The gateway's services, each created once here. The bus endpoints and the HTTP handlers call them."""

from dataclasses import dataclass
from typing import Self

from trunkline._util.secrets.redactor import Redactor
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.worker import WorkerContext
from trunkline.workers.gateway.approvals import ApprovalService
from trunkline.workers.gateway.block_cache import BlockCache
from trunkline.workers.gateway.block_stopper import BlockStopper
from trunkline.workers.gateway.block_tasks import BlockTasks
from trunkline.workers.gateway.blocks import BlockService
from trunkline.workers.gateway.conversations import ConversationService
from trunkline.workers.gateway.disk_space import BusDiskSpace
from trunkline.workers.gateway.grants import GrantStore
from trunkline.workers.gateway.message_service import MessageService
from trunkline.workers.gateway.queue_head import QueueHeadCache
from trunkline.workers.gateway.queue_limiter import QueueLimiter
from trunkline.workers.gateway.transcript_index import TranscriptIndex
from trunkline.workers.gateway.turn_lookup import TurnLookup
from trunkline.workers.gateway.workspaces import Workspaces
from trunkline_bus import Bus


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of one gateway worker. Data only."""

    bus: Bus
    turns: TurnLookup
    messages: MessageService
    approvals: ApprovalService
    grants: GrantStore
    conversations: ConversationService
    transcripts: TranscriptIndex
    queue_heads: QueueHeadCache
    blocks: BlockService
    room: BusDiskSpace
    audit: AuditLog

    @classmethod
    def from_context(cls, context: WorkerContext, cache: BlockCache) -> Self:
        """Return the services of one worker. ``cache`` must be open."""
        bus, config, plugins = context.bus, context.config.settings, context.plugins
        turns, grants = TurnLookup(bus), GrantStore(bus)
        audit = AuditLog(bus, config.audit.detail, Redactor(config.memory.redact))
        room = BusDiskSpace(context.home.bus if config.bus.url is None else None)
        conversations = ConversationService(bus, turns, cache)
        places, default = Workspaces(context.home), config.gateway.default_block
        stopping = BlockStopper(bus, turns, BlockTasks(bus, context.home.path))
        blocks = BlockService(bus, stopping, conversations, places, cache, audit, default)
        messages = MessageService(
            bus, turns, conversations, blocks,
            rules=plugins.admission_rules(),
            route=plugins.route,
            max_content=config.gateway.max_content,
            queue=QueueLimiter(turns, config.gateway.max_queued),
            room=room,
        )  # fmt: skip
        return cls(
            bus=bus,
            turns=turns,
            messages=messages,
            approvals=ApprovalService(bus, turns, grants),
            grants=grants,
            conversations=conversations,
            transcripts=TranscriptIndex(bus, turns),
            queue_heads=QueueHeadCache(turns),
            blocks=blocks,
            room=room,
            audit=audit,
        )
