"""The subjects of the cost ledger and of the counters of budgets."""

from trunkline.contracts.costs.messages import BudgetEvent, CostEntry, RequestOpened
from trunkline.contracts.streams import BUDGET_STREAM, COST_STREAM, COUNTER_STREAM, REQUEST_STREAM
from trunkline_bus import Counter, Subject, Topic

OPENED_REQUEST: Topic[RequestOpened] = Topic(
    name="opened requests",
    subject=Subject("trunkline.journal.request.{worker}.{id}"),
    payload=RequestOpened,
    stream=REQUEST_STREAM,
    doc="Requests to models that were sent and have no entry in the cost ledger yet.",
)
COST: Topic[CostEntry] = Topic(
    name="costs",
    subject=Subject("trunkline.evt.cost.{day}.{id}"),
    payload=CostEntry,
    stream=COST_STREAM,
    doc="The cost ledger: an entry for each request to a model, by its day in UTC. The memory worker writes it into "
    "memory.",
)
BUDGET_EVENT: Topic[BudgetEvent] = Topic(
    name="budget events",
    subject=Subject("trunkline.evt.budget.{event}"),
    payload=BudgetEvent,
    stream=BUDGET_STREAM,
    doc="A budget is used up, or was reset. Channels tell their owner, and the memory worker writes them into memory.",
)
BUDGET_COUNTER = Counter(
    name="budgets",
    subject=Subject("trunkline.count.{measure}.{window}.{of}"),
    stream=COUNTER_STREAM,
    doc="What was used of a budget in a day, an hour or a turn: micro-USD (`spent`, and with reservations `reserved`) "
    "or calls (`loops`), of all blocks (`total`), a block or a turn.",
)
