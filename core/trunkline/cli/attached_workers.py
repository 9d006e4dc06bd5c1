"""Calls workers from a command: those of the running platform, or workers that are started for the duration of the
command.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from trunkline.contracts.workers.messages import WorkerKind
    from trunkline_bus import Bus

T = TypeVar("T")


def with_workers(job: "Callable[[Bus], Awaitable[T]]", *kinds: "WorkerKind", log: str = "") -> T:
    """Run a job with the running instance, or with workers of these kinds that run only as long as the job.

    With ``log``, these workers log to ``logs/<log>.log`` in the home; otherwise their warnings go to standard error.
    """
    from trunkline.cli.aio import run

    found: T = run(_attached, job, kinds, log)
    return found


async def _attached(job: "Callable[[Bus], Awaitable[T]]", kinds: "tuple[WorkerKind, ...]", log: str) -> T:
    from trunkline.cli.log_file import log_to_file
    from trunkline.config import load_config
    from trunkline.runtime.platform_connection import connect_to_platform
    from trunkline.workers import load_worker

    config = load_config()
    async with AsyncExitStack() as stack:
        if log:
            stack.enter_context(log_to_file(config, log))
        return await job(
            await stack.enter_async_context(connect_to_platform(config, load_worker, kinds=kinds))
        )
