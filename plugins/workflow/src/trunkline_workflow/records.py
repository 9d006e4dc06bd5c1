"""The records of runs and the files of workflows, in a block's memory. Used by the commands, for the owner."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from trunkline import RemoteFault, TrunklineError
from trunkline.api.bus import Bus
from trunkline.api.memory import (
    CALL_SECONDS,
    MEMORY_LIST,
    MEMORY_WRITE_MANY,
    OWNER,
    ListMemory,
    WriteManyMemory,
    block_folder,
    read_files,
)
from trunkline_workflow.paths import FOLDER, PROPOSALS, RUNS, proposal_path, run_path, workflow_path
from trunkline_workflow.run_message import RunStart

GATEWAY_CHANNEL = "cli"
"""The channel of the commands."""

ABSENT = ""
"""The hash of a file that must not be there yet."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that a person asked for: its frozen beginning, and the turn that runs it, "" until it is accepted.
    ``channel`` is the one by which it was asked for. A request that is repeated by another one would be another turn.
    """

    start: RunStart
    started_at: datetime
    channel: str = GATEWAY_CHANNEL
    conversation: str = ""
    turn: str = ""
    continues: str = ""


class WorkflowFiles:
    """The workflows, proposals and runs of one block. Raises BusError kinds, and TrunklineError for what is missing."""

    def __init__(self, bus: Bus, block: str) -> None:
        self._bus = bus
        self.block = block

    async def names(self) -> tuple[str, ...]:
        """Return the names of the files of workflows."""
        return await self._names(FOLDER, ".yaml")

    async def proposals(self) -> tuple[str, ...]:
        """Return the names of the proposals."""
        return await self._names(PROPOSALS, ".yaml")

    async def text(self, name: str) -> str | None:
        """Return the text of a workflow; None if there is no such file."""
        return await self._read(workflow_path(name))

    async def require_text(self, name: str) -> str:
        """Return the text of a workflow. Raises TrunklineError if there is no such file."""
        text = await self.text(name)
        if text is None:
            raise TrunklineError(
                f"There is no workflow {name!r} in the block {self.block}.",
                hint=f"Its file would be {block_folder(self.block)}/{workflow_path(name)} in memory. "
                '"trunkline workflows list" shows what there is.',
            )
        return text

    async def proposal(self, name: str) -> str | None:
        """Return the text of a proposal; None if there is none."""
        return await self._read(proposal_path(name))

    async def install(self, name: str, text: str, *, proposed: bool) -> None:
        """Write the file of a workflow, and take its proposal away."""
        gone = (self._path(proposal_path(name)),) if proposed else ()
        await self._write({workflow_path(name): text}, f"install the workflow {name}", gone=gone)

    async def save(self, record: RunRecord, *, new: bool = False) -> None:
        """Write the record of a run. Raises RemoteFault ``write_conflict`` if a new one is there already."""
        path = run_path(record.start.run)
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
        expected = {self._path(path): ABSENT} if new else {}
        await self._write({path: text}, f"run the workflow {record.start.workflow}", expected=expected)

    async def runs(self) -> tuple[RunRecord, ...]:
        """Return the records of all runs, newest first."""
        paths = [self._path(run_path(run)) for run in await self._names(RUNS, ".json")]
        records = [_decode(file.content) for file in await read_files(self._bus, tuple(paths))]
        return tuple(sorted((one for one in records if one), key=lambda one: one.started_at, reverse=True))

    async def forget(self, records: Iterable[RunRecord]) -> None:
        """Delete the records of runs. Their conversations stay."""
        gone = tuple(self._path(run_path(record.start.run)) for record in records)
        if gone:
            await self._write({}, f"forget {len(gone)} old runs of workflows", gone=gone)

    async def count_runs(self) -> int:
        """Return the number of records."""
        return len(await self._names(RUNS, ".json"))

    async def _names(self, folder: str, ending: str) -> tuple[str, ...]:
        try:
            request = ListMemory(path=self._path(folder))
            found = await self._bus.call(MEMORY_LIST, request, timeout=CALL_SECONDS, repeatable=True)
        except RemoteFault as fault:
            if fault.code == "not_found":
                return ()
            raise
        names = (one.path.rpartition("/")[2] for one in found.entries if one.kind == "file")
        return tuple(sorted(name.removesuffix(ending) for name in names if name.endswith(ending)))

    async def _read(self, path: str) -> str | None:
        files = await read_files(self._bus, (self._path(path),))
        return next((file.content for file in files), None)

    async def _write(
        self,
        files: dict[str, str],
        reason: str,
        *,
        gone: Iterable[str] = (),
        expected: dict[str, str] | None = None,
    ) -> None:
        request = WriteManyMemory(
            files={self._path(path): text for path, text in files.items()},
            actor=OWNER,
            reason=reason,
            gone=tuple(gone),
            expected=expected or {},
        )
        await self._bus.call(MEMORY_WRITE_MANY, request, timeout=CALL_SECONDS)

    def _path(self, path: str) -> str:
        return f"{block_folder(self.block)}/{path}"


def _decode(text: str) -> RunRecord | None:
    """Return the record in a file; None if a person made something else of it."""
    try:
        return msgspec.json.decode(text, type=RunRecord)
    except (msgspec.DecodeError, RecursionError):
        return None
