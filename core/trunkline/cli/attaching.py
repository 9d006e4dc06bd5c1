"""Asking workers from a command: of the platform that runs, or of workers for as long as the command takes."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from trunkline.messages.workers import WorkerKind
    from trunkline_bus import Bus

T = TypeVar("T")


def with_workers(job: "Callable[[Bus], Awaitable[T]]", *kinds: "WorkerKind") -> T:
    """Run a job with the instance that runs, or with workers of these kinds for as long as this takes."""
    from trunkline.cli.aio import run

    found: T = run(_attached, job, kinds)
    return found


async def _attached(job: "Callable[[Bus], Awaitable[T]]", kinds: "tuple[WorkerKind, ...]") -> T:
    from trunkline.config import load_config
    from trunkline.runtime.attach import attached
    from trunkline.workers import load_worker

    async with attached(load_config(), load_worker, kinds=kinds) as bus:
        return await job(bus)
