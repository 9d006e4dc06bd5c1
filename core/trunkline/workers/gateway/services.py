"""The gateway's services: what can be asked of it, through whichever face, the bus or HTTP. Each is made once, here."""

from dataclasses import dataclass
from typing import Self

from trunkline._util.secrets.redactor import Secrets
from trunkline.runtime.audit_log import AuditLog
from trunkline.runtime.worker import WorkerContext
from trunkline.workers.gateway.approvals import Approvals
from trunkline.workers.gateway.block_cache import KnownBlocks
from trunkline.workers.gateway.block_stopper import Stopping
from trunkline.workers.gateway.block_tasks import LeftRunning
from trunkline.workers.gateway.blocks import Blocks
from trunkline.workers.gateway.conversations import Conversations
from trunkline.workers.gateway.disk_space import Room
from trunkline.workers.gateway.grants import Grants
from trunkline.workers.gateway.message_service import Messages
from trunkline.workers.gateway.queue_head import Ahead
from trunkline.workers.gateway.queue_limiter import Queue
from trunkline.workers.gateway.transcript_index import Transcripts
from trunkline.workers.gateway.turn_lookup import Turns
from trunkline.workers.gateway.workspaces import Workspaces
from trunkline_bus import Bus


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What the faces stand on. Data only."""

    bus: Bus
    turns: Turns
    messages: Messages
    approvals: Approvals
    grants: Grants
    conversations: Conversations
    transcripts: Transcripts
    ahead: Ahead
    blocks: Blocks
    room: Room
    audit: AuditLog

    @classmethod
    def of(cls, context: WorkerContext, known: KnownBlocks) -> Self:
        """Those of one worker; ``known`` is open."""
        bus, config, plugins = context.bus, context.config.settings, context.plugins
        turns, grants = Turns(bus), Grants(bus)
        audit = AuditLog(bus, config.audit.detail, Secrets(config.memory.redact))
        room = Room(context.home.bus if config.bus.url is None else None)
        conversations = Conversations(bus, turns, known)
        places, default = Workspaces(context.home), config.gateway.default_block
        stopping = Stopping(bus, turns, LeftRunning(bus, context.home.path))
        blocks = Blocks(bus, stopping, conversations, places, known, audit, default)
        messages = Messages(
            bus, turns, conversations, blocks,
            rules=plugins.admission_rules(),
            route=plugins.route,
            max_content=config.gateway.max_content,
            queue=Queue(turns, config.gateway.max_queued),
            room=room,
        )  # fmt: skip
        return cls(
            bus=bus,
            turns=turns,
            messages=messages,
            approvals=Approvals(bus, turns, grants, audit),
            grants=grants,
            conversations=conversations,
            transcripts=Transcripts(bus, turns),
            ahead=Ahead(turns),
            blocks=blocks,
            room=room,
            audit=audit,
        )
