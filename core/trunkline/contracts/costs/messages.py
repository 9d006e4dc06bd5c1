"""The entries of the cost ledger, one for each request to a model, and the events of budgets."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from trunkline.contracts.conversations.messages import Usage
from trunkline.contracts.models.media_usage import NO_MEDIA, MediaUsage
from trunkline.contracts.models.messages import MicroUSD
from trunkline_bus import Payload

RequestStatus = Literal["finished", "failed", "cancelled", "interrupted"]
"""How a request ended. ``interrupted`` means that the worker died before it recorded the end."""

BudgetMeasure = Literal["spend", "loops"]
"""What a budget limits: micro-USD, or calls of models."""


class CostEntry(Payload, frozen=True, kw_only=True, omit_defaults=True, tag="cost.entry.v1"):
    """One request that was sent to a model. A call of a model may need several: retries, fallbacks, a repair.

    ``budget_turn`` is as in ``ModelRequest``. ``at`` is the time of the request, ``seconds`` its duration.
    ``operation`` is OpenTelemetry's ``gen_ai.operation.name``. ``requested`` is the model that the request named (""
    for the adapter's default), ``model`` the one that answered. ``usage`` and ``media`` are what the vendor counted.
    ``cost`` is their price in micro-USD; None if the model has no price, which ``price`` identifies (``Rate.version``).
    ``trace`` is the id of the OpenTelemetry trace. ``worker`` sent the request. ``fault`` is the ``ModelFault`` of a
    failed request.

    ``estimated`` is true if the vendor did not say what it counted, because the answer did not reach its end: then
    ``usage`` and ``cost`` are upper estimates. If several entries have the same ``id``, the last one holds.
    """

    id: str
    at: datetime
    block: str = ""
    conversation: str = ""
    turn: str = ""
    budget_turn: str = ""
    actor: str = ""
    trace: str = ""
    purpose: str = "turn"
    operation: str = "chat"
    adapter: str
    vendor: str = ""
    requested: str = ""
    model: str = ""
    status: RequestStatus
    fault: str = ""
    usage: Usage = Usage()
    media: MediaUsage = NO_MEDIA
    cost: MicroUSD | None = None
    price: str = ""
    estimated: bool = False
    seconds: float = 0.0
    worker: str = ""

    @property
    def day(self) -> str:
        """The day of the request in UTC, such as ``2026-11-27``."""
        return f"{self.at.astimezone(UTC):%Y-%m-%d}"


class RequestOpened(Payload, frozen=True, kw_only=True, omit_defaults=True, tag="cost.opened.v1"):
    """A request to a model is about to be sent. The record is deleted when the request's entry is in the ledger.

    ``entry`` is the entry if nobody records another end. Costs are in micro-USD and upper estimates: ``input_cost`` of
    the request without its answer, ``token_cost`` of one token of the answer, ``max_cost`` of both with the longest
    answer. All are 0 if the model has no price.
    """

    entry: CostEntry
    input_cost: int = 0
    token_cost: float = 0.0
    max_cost: int = 0


class BudgetRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A budget is used up (``bankrupt``), or the owner reset it (``reset``).

    The budget is that of ``block`` ("" for all blocks together), or of one ``turn``, in a ``window``: a day
    (``2026-11-27``) or an hour (``2026-11-27T14``) in the owner's time zone, or ``turn``. ``used`` and ``limit`` are
    micro-USD for ``spend``, and calls for ``loops``. ``opens_at`` is the end of the window; None for a turn. ``by`` is
    who reset the budget.
    """

    id: str
    at: datetime
    event: Literal["bankrupt", "reset"]
    measure: BudgetMeasure
    window: str
    block: str = ""
    turn: str = ""
    used: int = 0
    limit: int = 0
    opens_at: datetime | None = None
    by: str = ""


class BudgetEvent(Payload, BudgetRecord, frozen=True, kw_only=True, tag="budget.event.v1"):
    """A budget is used up or was reset, as the bus and memory keep it. The fields are those of ``BudgetRecord``."""
