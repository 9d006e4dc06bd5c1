"""The envelopes of states and their changes: turns, conversations, blocks, workers, budgets and the stop."""

from datetime import datetime
from typing import Any, Literal

from trunkline.contracts.blocks.messages import BlockStatusName
from trunkline.contracts.costs.messages import BudgetMeasure
from trunkline.contracts.turns.lanes import Lane
from trunkline.contracts.turns.messages import FinishReason
from trunkline.contracts.workers.messages import WorkerKind
from trunkline.workers.gateway.http.schemas.schema_base import Out
from trunkline.workers.gateway.socket.envelope_base import ServerEnvelope
from trunkline.workers.gateway.socket.event_envelopes import TurnPayload


class AgentStatus(TurnPayload, frozen=True, kw_only=True, tag_field="kind", tag="agent"):
    """An agent's own status under ``name``, such as ``hud``: ``data`` for programs, ``text`` for people."""

    name: str
    data: dict[str, Any] = {}
    text: str = ""


TurnState = Literal["queued", "running", "parked", "finished"]


class TurnStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="turn"):
    """A turn began, waits for a person, or has ended. ``lane`` is its lane, if the gateway knows it."""

    block: str
    conversation: str
    turn: str
    status: TurnState
    reason: FinishReason | None = None
    lane: Lane | None = None


class ConversationStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="conversation"):
    """A conversation is new, was renamed, pinned or archived, or has new messages."""

    block: str
    conversation: str
    title: str | None = None
    created_at: datetime
    updated_at: datetime
    message_count: int = 0
    pinned: bool = False
    archived: bool = False


class BlockActivity(Out, frozen=True, kw_only=True, tag_field="kind", tag="block"):
    """The present activity of a block. ``changed`` means that its settings changed, or that it was created or removed:
    ask for it again.
    """

    block: str
    status: BlockStatusName = "SLEEPING"
    current_task: str | None = None
    error: str | None = None
    changed: bool = False


class WorkerStatus(Out, frozen=True, kw_only=True, tag_field="kind", tag="worker"):
    """A worker, if it is ``alive``. ``trouble`` keeps it from its work."""

    worker: str
    worker_kind: WorkerKind
    host: str = ""
    alive: bool = True
    draining: bool = False
    restarts: int = 0
    trouble: str = ""
    unstored: int = 0


class BudgetReset(Out, frozen=True, kw_only=True, tag_field="kind", tag="budget_reset"):
    """The owner reset a budget that was used up."""

    measure: BudgetMeasure
    window: str
    block: str = ""
    by: str = ""


StatusPayload = AgentStatus | TurnStatus | ConversationStatus | BlockActivity | WorkerStatus | BudgetReset


class StatusEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="status"):
    """A state, by its ``kind``."""

    payload: StatusPayload


class BankruptPayload(Out, frozen=True, kw_only=True):
    """The budget of ``block`` ("" for all blocks) or of one ``turn`` is used up: ``used`` of ``limit``, micro-USD for
    ``spend`` and calls for ``loops``, in the ``window``. ``opens_at`` is the end of the window.
    """

    measure: BudgetMeasure
    window: str
    block: str = ""
    turn: str = ""
    used: int
    limit: int
    opens_at: datetime | None = None


class BankruptEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="bankrupt"):
    """A budget is used up: no model is asked on it until it opens again."""

    payload: BankruptPayload


class PanicPayload(Out, frozen=True, kw_only=True):
    """The state: with ``on``, everything is stopped. ``by`` says who did that."""

    on: bool
    by: str = ""


class PanicEnvelope(ServerEnvelope, frozen=True, kw_only=True, tag="panic"):
    """The whole platform was stopped, or released."""

    payload: PanicPayload
