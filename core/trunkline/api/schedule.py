"""Schedules: their files, states and due messages, and the client with which they send messages to the gateway."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline._util.toml import line_of as line_of
    from trunkline.contracts.memory.subjects import MEMORY_CHANGED as MEMORY_CHANGED
    from trunkline.contracts.schedules.messages import RunOutcome as RunOutcome
    from trunkline.contracts.schedules.messages import ScheduledTurn as ScheduledTurn
    from trunkline.contracts.schedules.messages import ScheduleDue as ScheduleDue
    from trunkline.contracts.schedules.messages import ScheduleRun as ScheduleRun
    from trunkline.contracts.schedules.messages import ScheduleState as ScheduleState
    from trunkline.contracts.schedules.paths import SCHEDULE_NAME_RULE as SCHEDULE_NAME_RULE
    from trunkline.contracts.schedules.paths import SCHEDULES_FOLDER as SCHEDULES_FOLDER
    from trunkline.contracts.schedules.paths import is_schedule_name as is_schedule_name
    from trunkline.contracts.schedules.paths import schedule_of as schedule_of
    from trunkline.contracts.schedules.paths import schedule_path as schedule_path
    from trunkline.contracts.schedules.paths import schedules_folder as schedules_folder
    from trunkline.contracts.schedules.subjects import SCHEDULE_BUCKET as SCHEDULE_BUCKET
    from trunkline.contracts.schedules.subjects import SCHEDULE_CHANNEL as SCHEDULE_CHANNEL
    from trunkline.contracts.schedules.subjects import SCHEDULE_DUE as SCHEDULE_DUE
    from trunkline.contracts.schedules.subjects import SCHEDULE_TIMER as SCHEDULE_TIMER
    from trunkline.contracts.schedules.subjects import SCHEDULED_TURN_BUCKET as SCHEDULED_TURN_BUCKET
    from trunkline.contracts.streams import SCHEDULE_CONSUMER as SCHEDULE_CONSUMER
    from trunkline.contracts.streams import SCHEDULED_TURN_CONSUMER as SCHEDULED_TURN_CONSUMER
else:
    from trunkline._util.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
