"""A helper for anyio task groups."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.abc import TaskGroup


@contextmanager
def without_group() -> Iterator[None]:
    """Raise a single exception of the block without the exception groups around it."""
    try:
        yield
    except BaseExceptionGroup as failure:
        only: BaseException = failure
        while isinstance(only, BaseExceptionGroup) and len(only.exceptions) == 1:
            only = only.exceptions[0]
        if only is failure:
            raise
        raise only from only.__cause__


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """Yield a task group whose tasks are cancelled at the end of the block. A single exception is raised without an
    exception group around it.
    """
    with without_group():
        async with anyio.create_task_group() as group:
            try:
                yield group
            finally:
                group.cancel_scope.cancel()
