"""Asking memory from a command: of the platform that runs, or of a memory worker for as long as that takes."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trunkline.cli.attached_workers import with_workers

if TYPE_CHECKING:
    from trunkline_bus import Bus

T = TypeVar("T")

OWNER = "owner"
"""The actor of what a person does with a command."""

COMMAND_SECONDS = 60.0
"""Seconds that a command waits for a reply of memory."""

FILES = (
    '"trunkline memory list" shows what is there, and "trunkline memory search NAME --names" finds a file.'
)
VERSIONS = '"trunkline memory history PATH" lists the versions there are of a file or folder.'
CHUNKS = '"trunkline memory chunks list" shows the chunks there are, with --archived the archived ones.'

NOT_FOUND_HINT = ("not_found", "invalid_path")
"""The codes of what names nothing that can be shown or changed."""


def with_memory(job: "Callable[[Bus], Awaitable[T]]", *, hint: str = "") -> T:
    """Run a job with the instance that runs, or with a memory worker for as long as this takes.

    ``hint`` says what to do when memory has nothing of the name that the job asks for.
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
    """Raises StorageError for what is not there, before anything is started or made for it."""
    from trunkline.errors import StorageError

    if not source.exists():
        raise StorageError(f"There is no file or folder {source}.", hint="Check the spelling.")
