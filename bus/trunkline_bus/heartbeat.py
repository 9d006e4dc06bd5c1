"""An action that is repeated at an interval while a ``with`` block runs. A short block starts no task."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType

from anyio.abc import TaskGroup

from trunkline_bus.errors import BusError

_log = logging.getLogger(__name__)


class Heartbeat:
    """Calls ``beat`` in ``group`` every ``seconds`` until the block ends.

    If a beat fails, no further beat is sent. Most blocks end before the first beat, so there is only a timer until
    then, and no task.
    """

    def __init__(self, group: TaskGroup, beat: Callable[[], Awaitable[None]], seconds: float) -> None:
        self._group = group
        self._beat = beat
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def __enter__(self) -> None:
        self._wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._group.start_soon, self._once)

    async def _once(self) -> None:
        if self._over:
            return
        try:
            await self._beat()
        except BusError as error:
            _log.debug("no further heartbeat: %s", error)
            return
        except Exception:  # an exception would end the task group of the whole connection
            _log.exception("a heartbeat failed")
            return
        if not self._over:
            self._wait()
