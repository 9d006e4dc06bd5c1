"""The schemas of background tasks."""

from datetime import datetime
from typing import Literal

from trunkline.workers.gateway.http.schemas.schema_base import Out


class TaskItem(Out, frozen=True, kw_only=True):
    """A background task that an agent of ``block`` started. ``state`` is ``lost`` if its end is unknown, as after a
    restart of the machine. Of a task that has ended, ``exit_code`` is that of the program, ``killed`` the reason why it
    was ended, and ``fault`` what failed around it.
    """

    id: str
    block: str
    state: Literal["running", "ended", "lost"]
    command: str
    started: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    killed: str = ""
    fault: str = ""


class TaskList(Out, frozen=True, kw_only=True):
    """The background tasks, the newest first."""

    tasks: tuple[TaskItem, ...]


class TaskDetail(TaskItem, frozen=True, kw_only=True):
    """A background task with the last lines of its output."""

    output: str = ""
