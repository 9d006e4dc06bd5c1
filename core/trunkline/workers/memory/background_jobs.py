"""Work that outlives its asker, and tells how far it is to whoever listens."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

P = TypeVar("P")
R = TypeVar("R")

PROGRESS_INTERVAL = 0.5
"""Seconds between two words about the progress."""


class BackgroundJobs:
    """Runs background jobs, for as long as ``run`` runs."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._open = anyio.Event()

    async def run(self) -> None:
        """Do what is asked for, until cancelled."""
        async with anyio.create_task_group() as self._group:
            self._open.set()
            await anyio.sleep_forever()

    async def run_detached(self, work: Callable[[Callable[[P], None]], Awaitable[R]]) -> AsyncIterator[P | R]:
        """The latest progress of ``work``, now and then, and at last what came of it; raises what the work raised.

        The work goes on when nobody listens any more. It may tell of its progress in any thread.
        """
        await self._open.wait()
        assert self._group is not None
        job = _BackgroundJob[P, R]()
        self._group.start_soon(job.run, work)
        async for progress in job.progress_updates():
            yield progress
        yield job.result()


class _BackgroundJob(Generic[P, R]):
    """One piece of work."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._latest: P | None = None
        self._outcome: list[R] = []
        self._error: Exception | None = None

    async def run(self, work: Callable[[Callable[[P], None]], Awaitable[R]]) -> None:
        """Do the work; what it raises is kept for the asker."""
        try:
            self._outcome.append(await work(self._report))
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def _report(self, progress: P) -> None:
        self._latest = progress

    async def progress_updates(self) -> AsyncIterator[P]:
        """The latest progress, now and then, until the work is done."""
        while not self._done.is_set():
            with anyio.move_on_after(PROGRESS_INTERVAL):
                await self._done.wait()
            if not self._done.is_set() and self._latest is not None:
                yield self._latest

    def result(self) -> R:
        """Return the job's result, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]
