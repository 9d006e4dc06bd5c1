"""The topics and buckets of schedules."""

from trunkline.contracts.schedules.messages import ScheduledTurn, ScheduleDue, ScheduleState
from trunkline.contracts.streams import SCHEDULE_STREAM
from trunkline_bus import BucketSpec, Subject, Topic

SCHEDULE_CHANNEL = "schedule"
"""The name of the channel through which due schedules send their messages."""

TURN_SECONDS = 30 * 86_400.0
"""Seconds for which the schedule of a turn is remembered. A turn may wait so long for an approval."""

SCHEDULE_TIMER: Topic[ScheduleDue] = Topic(
    name="schedule timers",
    subject=Subject("trunkline.schedule.timer.{block}.{schedule}"),
    payload=ScheduleDue,
    stream=SCHEDULE_STREAM,
    doc="A message schedule: the server publishes it under `trunkline.schedule.due` when the schedule is due.",
)
SCHEDULE_DUE: Topic[ScheduleDue] = Topic(
    name="schedules due",
    subject=Subject("trunkline.schedule.due.{block}.{schedule}"),
    payload=ScheduleDue,
    stream=SCHEDULE_STREAM,
    doc="A schedule is due. Durable until a gateway has sent its message.",
)
SCHEDULE_BUCKET: BucketSpec[ScheduleState] = BucketSpec(
    name="schedules",
    payload=ScheduleState,
    max_bytes=16 * 1024 * 1024,
    description="The state of each schedule: its next due time and its last runs",
)
SCHEDULED_TURN_BUCKET: BucketSpec[ScheduledTurn] = BucketSpec(
    name="scheduled-turns",
    payload=ScheduledTurn,
    ttl=TURN_SECONDS,
    max_bytes=16 * 1024 * 1024,
    description="Which schedule a turn belongs to",
)
