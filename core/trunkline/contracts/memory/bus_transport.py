"""BusTransport sends memory's operations over the bus. ``block_memory`` makes the ``Memory`` of a block with it."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from trunkline._util.batch import batched
from trunkline.contracts.memory.access import AccessCheck, CallerAccess, allow_all
from trunkline.contracts.memory.authorization import AuthorizingTransport
from trunkline.contracts.memory.client import Memory
from trunkline.contracts.memory.export_transfer import export_memory
from trunkline.contracts.memory.files import MEMORY_READ_MANY, MemoryFile, ReadManyMemory
from trunkline.contracts.memory.import_transfer import import_memory
from trunkline.contracts.memory.importer import Importer
from trunkline.contracts.memory.learned_visibility import Recipient
from trunkline.contracts.memory.operation import CALL_SECONDS, MemoryOperation
from trunkline.contracts.memory.store import NOWHERE
from trunkline.contracts.memory.transfer import MemoryImport
from trunkline.errors import ToolError, TrunklineError, error_kind_for_code
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault, Scope

Q = TypeVar("Q", bound=msgspec.Struct)
A = TypeVar("A")

READ_BATCH = 200
"""The maximum number of files in one request, so that the reply stays small."""


def no_importers() -> Sequence[Importer]:
    """Return no importers. Then only Trunkline's own exports are recognised."""
    return ()


async def read_files(bus: Bus, paths: tuple[str, ...], *, timeout: float = CALL_SECONDS) -> list[MemoryFile]:
    """Return the files that exist, with one request for each ``READ_BATCH`` of them. Raises BusError."""
    files: list[MemoryFile] = []
    for some in batched(paths, READ_BATCH):
        request = ReadManyMemory(paths=some)
        files += (await bus.call(MEMORY_READ_MANY, request, timeout=timeout, repeatable=True)).files
    return files


def block_memory(
    bus: Bus,
    block: str,
    actor: str,
    scope: Scope = NOWHERE,
    *,
    timeout: float = CALL_SECONDS,
    check_access: AccessCheck = allow_all,
    recipient: Recipient | None = None,
    importers: Callable[[], Sequence[Importer]] = no_importers,
) -> Memory:
    """Return the memory of one block for one actor. History records ``actor``, and the conversation and turn of
    ``scope``.

    ``check_access`` decides what may be read and written. ``recipient`` is who sees the replies; None is for a caller
    that itself decides what it shows to whom, such as a context source. ``importers`` read archives of other systems.
    """
    sender = BusTransport(bus, block, actor, scope, timeout=timeout, importers=importers)
    access = CallerAccess(
        sender,
        block,
        actor,
        conversation=scope.conversation or "",
        check_access=check_access,
        recipient=recipient,
    )
    return Memory(AuthorizingTransport(access), block)


class BusTransport:
    """Sends requests to the memory worker, with ``scope`` in their envelopes. ``timeout`` is in seconds."""

    def __init__(
        self,
        bus: Bus,
        block: str,
        actor: str,
        scope: Scope = NOWHERE,
        *,
        timeout: float = CALL_SECONDS,
        importers: Callable[[], Sequence[Importer]] = no_importers,
    ) -> None:
        self._bus = bus
        self._block = block
        self._actor = actor
        self._scope = scope
        self._timeout = timeout
        self._importers = importers

    async def call(self, operation: MemoryOperation[Q, A], request: Q) -> A:
        """Send a request. If memory refuses it, the cause of the ToolError is the RemoteFault."""
        try:
            return await self._bus.call(operation, request, scope=self._scope, timeout=self._timeout)
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except NoResponders as error:
            raise ToolError(
                "Memory is not available right now. Nothing was changed; try again.", kind="unavailable"
            ) from error
        except CallTimeout as error:
            raise ToolError(
                "Memory did not answer in time. It may have completed the operation; check.", kind="timeout"
            ) from error
        except BusError as error:
            raise ToolError("Memory cannot be reached right now.", kind="unavailable") from error

    async def export(self, target: Path) -> int:
        """Let memory write the archive, and fetch it."""
        try:
            return (await export_memory(self._bus, target)).size
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except (BusError, TrunklineError) as error:
            raise ToolError(
                "Memory could not be exported, or the archive not fetched. Try again.", kind="unavailable"
            ) from error

    async def import_archive(self, source: Path, *, kind: str | None, dry_run: bool) -> MemoryImport:
        """Prepare the archive, upload it, and let memory import it."""
        with ExitStack() as held:
            from trunkline.contracts.memory.import_preparation import prepare_import

            ready = prepare_import(source, self._importers(), source.parent, kind=kind, block=self._block)
            try:
                archive = await anyio.to_thread.run_sync(held.enter_context, ready)
                return await import_memory(
                    self._bus, archive, actor=self._actor, dry_run=dry_run, scope=self._scope
                )
            except RemoteFault as fault:
                raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
            except TrunklineError as error:
                raise ToolError(
                    f"{error} {error.hint or ''}".replace(f"{source.parent}/", "").strip(),
                    kind="invalid_arguments",
                ) from error
            except (BusError, OSError) as error:
                raise ToolError(
                    "The archive could not be brought in. Try again.", kind="unavailable"
                ) from error
