"""The retention of streams and buckets, in time and size: ``[retention]``. Plain data.

Everything that an installation writes by itself has a limit here or in the list of ``docs/how-to/operate.md``. Data
that people create (memory, workspaces, backups) has no limit; people delete it.
"""

from typing import Annotated

import msgspec

MEGABYTE = 1024 * 1024

Duration = Annotated[float, msgspec.Meta(gt=0)]
Megabytes = Annotated[float, msgspec.Meta(gt=0)]
FileCount = Annotated[int, msgspec.Meta(ge=1)]


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """``[retention]``: ages and sizes (1 MB is 1024 * 1024 bytes) of the data that the platform writes.

    The oldest data is deleted first. Three stores refuse new data instead: a full inbox refuses messages, a full store
    of large bodies refuses bodies, and a full store of uploaded files refuses uploads. Accepted messages are never
    dropped to make room.
    """

    inbox_mb: Megabytes = 256.0
    journal_days: Duration = 30.0
    journal_mb: Megabytes = 2_048.0
    effect_mb: Megabytes = 256.0
    feed_hours: Duration = 1.0
    feed_mb: Megabytes = 256.0
    fact_days: Duration = 7.0
    fact_mb: Megabytes = 64.0
    trace_days: Duration = 7.0
    trace_mb: Megabytes = 512.0
    audit_days: Duration = 30.0
    audit_mb: Megabytes = 256.0
    cost_days: Duration = 30.0
    cost_mb: Megabytes = 128.0
    dead_letter_days: Duration = 30.0
    dead_letter_mb: Megabytes = 256.0
    approval_mb: Megabytes = 64.0
    schedule_mb: Megabytes = 64.0
    body_mb: Megabytes = 1_024.0
    result_days: Duration = 30.0
    result_mb: Megabytes = 512.0
    file_days: Duration = 30.0
    file_mb: Megabytes = 1_024.0
    log_mb: Megabytes = 4.0
    log_files: FileCount = 2
    log_days: Duration = 30.0

    @property
    def body_days(self) -> float:
        """The days for which large bodies are kept: as long as any message may name one."""
        return max(self.journal_days, self.dead_letter_days)


DEFAULT_RETENTION = Retention()
"""The retention if none is configured."""
