"""A helper for anyio task groups."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """Yield a task group whose tasks are cancelled at the end of the block. A single exception is raised without an
    exception group around it.
    """
    try:
        async with anyio.create_task_group() as group:
            try:
                yield group
            finally:
                group.cancel_scope.cancel()
    except BaseExceptionGroup as failure:
        if len(failure.exceptions) == 1:
            raise failure.exceptions[0] from failure.exceptions[0].__cause__
        raise
