"""Asking memory from a command: of the platform that runs, or of a memory worker for as long as that takes."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from trunkline_bus import Bus

T = TypeVar("T")

OWNER = "owner"
"""The actor of what a person does with a command."""


def with_memory(job: "Callable[[Bus], Awaitable[T]]") -> T:
    """Run a job with the instance that runs, or with a memory worker for as long as this takes."""
    from trunkline.cli.aio import run

    found: T = run(_with_attached, job)
    return found


async def _with_attached(job: "Callable[[Bus], Awaitable[T]]") -> T:
    from trunkline.config import load_config
    from trunkline.runtime.attach import attached
    from trunkline.workers import load_worker

    async with attached(load_config(), load_worker, kinds=("memory",)) as bus:
        return await job(bus)
