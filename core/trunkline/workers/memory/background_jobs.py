"""Jobs that continue if their requester stops listening, and that report their progress."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

P = TypeVar("P")
R = TypeVar("R")

PROGRESS_INTERVAL = 0.5
"""Seconds between two progress reports."""


class BackgroundJobs:
    """Runs background jobs while ``run`` runs."""

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._open = anyio.Event()

    async def run(self) -> None:
        """Run the jobs until cancelled."""
        async with anyio.create_task_group() as self._group:
            self._open.set()
            await anyio.sleep_forever()

    async def run_detached(self, work: Callable[[Callable[[P], None]], Awaitable[R]]) -> AsyncIterator[P | R]:
        """Yield the latest progress of ``work`` periodically, and its result at the end. Raise what ``work`` raises.

        ``work`` continues if the caller stops iterating. It may report its progress in any thread.
        """
        await self._open.wait()
        assert self._group is not None
        job = _BackgroundJob[P, R]()
        self._group.start_soon(job.run, work)
        async for progress in job.progress_updates():
            yield progress
        yield job.result()


class _BackgroundJob(Generic[P, R]):
    """A job, with its latest progress and its result."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._latest: P | None = None
        self._outcome: list[R] = []
        self._error: Exception | None = None

    async def run(self, work: Callable[[Callable[[P], None]], Awaitable[R]]) -> None:
        """Run the work, and keep its exception for the requester."""
        try:
            self._outcome.append(await work(self._report))
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def _report(self, progress: P) -> None:
        self._latest = progress

    async def progress_updates(self) -> AsyncIterator[P]:
        """Yield the latest progress periodically until the work is done."""
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
