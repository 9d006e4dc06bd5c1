"""The streams on the server, and the consumers of the inbox and of timers."""

from msgspec.structs import replace

from trunkline_bus import (
    ConsumerSpec,
    StreamSpec,
    Transform,
)

DEFAULT_PARTITIONS = 8
"""The number of partitions of a new inbox. An existing inbox keeps the number in its stream's configuration
(``runtime.partitions``).
"""

INBOX_STREAM, JOURNAL_STREAM, EFFECT_STREAM, FEED_STREAM = "INBOX", "JOURNAL", "EFFECT", "FEED"
SPAN_STREAM, FACT_STREAM, DEAD_STREAM, AUDIT_STREAM = "SPANS", "FACTS", "DEAD", "AUDIT"
APPROVAL_STREAM, TIMER_STREAM, SCHEDULE_STREAM = "APPROVALS", "TIMERS", "SCHEDULES"
REQUEST_STREAM, COST_STREAM, BUDGET_STREAM, COUNTER_STREAM = "REQUESTS", "COSTS", "BUDGETS", "COUNTERS"


PIN_GROUP = "monitors"

FAILOVER_SECONDS = 1.2
"""Seconds of silence after which a monitor's partitions and their unacknowledged messages pass to another monitor. A
person waits that long if a monitor dies. A monitor that pauses for that long costs a second model call, and nothing
else.
"""


def inbox_consumer(partition: int) -> ConsumerSpec:
    """Return the consumer of one partition. The server pins the consumer to one live monitor, and to another monitor
    if that one dies.
    """
    return ConsumerSpec(
        stream=INBOX_STREAM,
        name=f"part-{partition}",
        filter=f"trunkline.turn.part.{partition}.*",
        ack_wait=FAILOVER_SECONDS,
        max_ack_pending=10_000,
        pinned_group=PIN_GROUP,
        pin_timeout=FAILOVER_SECONDS,
    )


ALL_PARTITIONS_CONSUMER = replace(inbox_consumer(0), name="*", filter="trunkline.turn.part.*.*")
"""All inbox consumers at once, as a pattern for permissions."""


LEARNER_CONSUMER = ConsumerSpec(
    stream=FACT_STREAM,
    name="learner",
    filter="trunkline.evt.turn.*.finished",
    description="Turns that ended, for the one who learns from them in the background",
    deliver="new",
    ack_wait=5.0,
    max_ack_pending=1,
    batch=1,
    pinned_group="learners",
    pin_timeout=3.0,
)
"""One turn at a time, to one live worker: learning from a turn builds on what was learned from the previous one."""


COMPACTION_CONSUMER = ConsumerSpec(
    stream=FACT_STREAM,
    name="compaction",
    filter="trunkline.evt.turn.*.finished",
    description="Turns that ended, for the one who compacts their conversations in the background",
    deliver="new",
    ack_wait=5.0,
    max_ack_pending=1,
    batch=1,
    pinned_group="compaction",
    pin_timeout=3.0,
)
"""One turn at a time, to one live monitor, so that no two monitors summarise a conversation in the background."""


DEADLINE_CONSUMER = ConsumerSpec(
    stream=TIMER_STREAM,
    name="deadlines",
    filter="trunkline.turn.due.*.*",
    description="Approvals whose reminder or end has come, for the gateways",
    ack_wait=10.0,
)
"""Any gateway may process what is due. If it dies meanwhile, another gateway does."""


SCHEDULE_CONSUMER = ConsumerSpec(
    stream=SCHEDULE_STREAM,
    name="schedules",
    filter="trunkline.schedule.due.*.*",
    description="Schedules that are due, for the gateways",
    ack_wait=5.0,
)
"""Any gateway may send the message of a schedule that is due. If it dies meanwhile, another gateway does."""


SCHEDULED_TURN_CONSUMER = ConsumerSpec(
    stream=FACT_STREAM,
    name="scheduled-turns",
    filter="trunkline.evt.turn.*.finished",
    description="Turns that ended, for the gateway that records the runs of schedules",
    deliver="new",
    ack_wait=30.0,
)
"""Any gateway may record the end of a schedule's turn, and tell the owner of it."""


AGENT_CONSUMER = ConsumerSpec(
    stream=FACT_STREAM,
    name="agents",
    filter="trunkline.evt.turn.*.finished",
    description="Turns that ended, for the gateways, which report the tasks of agents",
    deliver="new",
    ack_wait=10.0,
)
TASK_CONSUMER = ConsumerSpec(
    stream=TIMER_STREAM,
    name="task-deadlines",
    filter="trunkline.turn.task-due.*",
    description="Tasks of agents whose time is over, for the gateways",
    ack_wait=10.0,
)
"""As for ``DEADLINE_CONSUMER``, any gateway may process what is due."""


def inbox_transform(source: str, partitions: int) -> Transform:
    """Return the transform that distributes messages published under ``source`` to partitions by conversation."""
    return Transform(
        source=source,
        destination=f"trunkline.turn.part.{{{{partition({partitions},1)}}}}.{{{{wildcard(1)}}}}",
    )


STREAMS = (
    StreamSpec(
        name=INBOX_STREAM,
        subjects=("trunkline.turn.inbox.*",),
        retention="workqueue",
        transform=inbox_transform("trunkline.turn.inbox.*", DEFAULT_PARTITIONS),
        duplicate_window=600.0,
        discard="new",
        description="Accepted messages, until they are answered",
    ),
    StreamSpec(
        name=JOURNAL_STREAM,
        subjects=("trunkline.journal.turn.*.*",),
        duplicate_window=600.0,
        description="The journal of every turn",
    ),
    StreamSpec(
        name=EFFECT_STREAM,
        subjects=("trunkline.journal.effect.*",),
        duplicate_window=600.0,
        description="The effect ledger",
    ),
    StreamSpec(
        name=FEED_STREAM,
        subjects=("trunkline.feed.turn.*.*",),
        persist_async=True,
        description="What turns show while they run",
    ),
    StreamSpec(
        name=FACT_STREAM,
        subjects=("trunkline.evt.turn.*.*",),
        description="Facts about turns",
    ),
    StreamSpec(
        name=APPROVAL_STREAM,
        subjects=("trunkline.evt.approval.*",),
        max_msgs_per_subject=1,
        allow_msg_ttl=True,
        description="The state of each approval",
    ),
    StreamSpec(
        name=TIMER_STREAM,
        subjects=(
            "trunkline.turn.timer.*.*",
            "trunkline.turn.due.*.*",
            "trunkline.turn.task-timer.*",
            "trunkline.turn.task-due.*",
        ),
        retention="workqueue",
        allow_schedules=True,
        description="Approvals and tasks of agents that will be reminded of or given up, and those that are due",
    ),
    StreamSpec(
        name=SCHEDULE_STREAM,
        subjects=("trunkline.schedule.timer.*.*", "trunkline.schedule.due.*.*"),
        retention="workqueue",
        allow_schedules=True,
        description="Schedules that the server will publish when they are due, and those that are due",
    ),
    StreamSpec(
        name=SPAN_STREAM,
        subjects=("trunkline.evt.trace.*.spans",),
        persist_async=True,
        description="Finished spans",
    ),
    StreamSpec(
        name=AUDIT_STREAM,
        subjects=("trunkline.evt.audit.*.noted",),
        description="Decisions and calls, until they are in memory",
    ),
    StreamSpec(
        name=REQUEST_STREAM,
        subjects=("trunkline.journal.request.*.*",),
        discard="new",
        description="Requests to models that have no entry in the cost ledger yet",
    ),
    StreamSpec(
        name=COST_STREAM,
        subjects=("trunkline.evt.cost.*.*",),
        description="The cost ledger, until it is in memory",
    ),
    StreamSpec(
        name=BUDGET_STREAM,
        subjects=("trunkline.evt.budget.*",),
        description="Budgets that were used up or reset",
    ),
    StreamSpec(
        name=COUNTER_STREAM,
        subjects=("trunkline.count.*.*.*",),
        allow_counter=True,
        duplicate_window=600.0,
        description="What is used of budgets",
    ),
    StreamSpec(
        name=DEAD_STREAM,
        subjects=("trunkline.dead.*",),
        description="What could not be decoded or handled",
    ),
)
"""All streams. ``topology`` sets their configured replicas, ages and sizes."""
