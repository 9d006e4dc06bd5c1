"""Calls memory from a command: that of the running platform, or of a memory worker that is started for the command."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trunkline.cli.attached_workers import with_workers

if TYPE_CHECKING:
    from trunkline_bus import Bus

T = TypeVar("T")

COMMAND_SECONDS = 60.0
"""Seconds that a command waits for a reply of memory."""

FILES = (
    '"trunkline memory list" shows what is there, and "trunkline memory search NAME --names" finds a file.'
)
VERSIONS = '"trunkline memory history PATH" lists the versions there are of a file or folder.'
CHUNKS = '"trunkline memory chunks list" shows the chunks there are, with --archived the archived ones.'

NOT_FOUND_HINT = ("not_found", "invalid_path")
"""The error codes of a name that does not exist or is not valid."""


def with_memory(job: "Callable[[Bus], Awaitable[T]]", *, hint: str = "") -> T:
    """Run a job with the running instance, or with a memory worker that runs only as long as the job.

    ``hint`` is the hint of the error when memory has nothing of the name that the job requests.
    """

    async def asked(bus: "Bus") -> T:
        from trunkline.errors import TrunklineError
        from trunkline_bus import RemoteFault

        try:
            return await job(bus)
        except RemoteFault as fault:
            if hint and fault.code in NOT_FOUND_HINT:
                raise TrunklineError(fault.message, hint=hint) from fault
            raise

    return with_workers(asked, "memory")


def require_source(source: Path) -> None:
    """Raise StorageError when a source does not exist, before a worker is started or a file created for it."""
    from trunkline.errors import StorageError

    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
