"""Runs as people see them: begun, looked up, and with a state that follows from the definition and the transcript."""

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from trunkline import RemoteFault, TrunklineError, Unavailable
from trunkline.api.bus import Bus, BusError
from trunkline.api.gateway import GatewayClient, SendMessage
from trunkline.api.memory import utc_now
from trunkline.api.tool import Approval
from trunkline.api.turn import JOURNAL, ApprovalRecorded
from trunkline_workflow.adapter import run_state
from trunkline_workflow.definition import Definition, text_hash
from trunkline_workflow.records import GATEWAY_CHANNEL, RunRecord, WorkflowFiles
from trunkline_workflow.run import RunState
from trunkline_workflow.run_journal import RunJournal, Status, read_conversation, read_journal
from trunkline_workflow.run_message import MODEL, DoneCall, RunStart, write_start

log = logging.getLogger(__name__)

LAST = "last"

REPEATED = timedelta(hours=12)
"""The time in which the request of a run is repeated."""

UNDECIDED = ("engine_unavailable", "storage_failure")
"""The faults after which a message may be accepted all the same."""

KEPT_RUNS, KEPT = 200, timedelta(days=30)
"""A block keeps its newest 200 runs, those of the last 30 days, and those that wait for a person."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with its state. ``approvals`` are the calls that wait for a person. ``file_hash`` is the hash of the
    workflow's file now, "" if it is gone.
    """

    record: RunRecord
    state: RunState
    journal: RunJournal
    approvals: tuple[Approval, ...] = ()
    file_hash: str = ""

    @property
    def status(self) -> Status:
        """The status of the run."""
        return self.journal.status(self.state)

    @property
    def detail(self) -> str:
        """Why the run failed; "" if it did not."""
        finished = self.journal.finished
        if finished is not None and finished.code is not None:
            return f"The turn ended with {finished.code}. {finished.detail}".rstrip()
        return str(self.state.context.get("error", "")) if self.status == "failed" else ""

    @property
    def is_edited(self) -> bool:
        """Report whether the file was changed since the run began."""
        return self.file_hash not in ("", self.record.start.sha256)

    @property
    def ended(self) -> bool:
        """Report whether the run has ended."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def frozen(self) -> dict[str, Any]:
        """The frozen state of the run, as JSON shows it."""
        start, asked = self.record.start, [one.asked_at for one in self.approvals]
        return {
            "run": start.run,
            "block": start.block,
            "workflow_name": start.workflow,
            "current_step": self.state.current_step,
            "status": self.status,
            "context": self.state.context,
            "frozen_at": min(asked).isoformat() if asked else None,
            "started_at": self.record.started_at.isoformat(),
            "definition_sha256": start.sha256,
            "file_sha256": self.file_hash or None,
            "conversation": self.record.conversation,
            "turn": self.record.turn,
            "continues": self.record.continues or None,
            "steps": [msgspec.to_builtins(visit) for visit in self.state.visits],
            "approvals": [one.id for one in self.approvals],
            "approvers": {call: _decision(one) for call, one in self.journal.decisions.items()},
            "detail": self.detail,
        }


class Runs:
    """The runs of one block. Raises Unavailable and RemoteFault of the gateway, BusError kinds, and TrunklineError."""

    def __init__(self, bus: Bus, block: str, channel: str = GATEWAY_CHANNEL) -> None:
        self._bus = bus
        self._channel = channel
        self.files = WorkflowFiles(bus, block)
        self.gateway = GatewayClient(bus, channel)

    async def begin(
        self, definition: Definition, inputs: dict[str, Any], continued: RunView | None = None
    ) -> RunRecord:
        """Begin a run, with the results of the run that it continues.

        The record is stored first. If this process ends before the turn is accepted, the next one of this channel that
        reads the record asks again with the same id, so a run begins once. A run that the gateway refuses has no
        record.
        """
        check_inputs(definition, inputs)
        start = RunStart(
            run=secrets.token_hex(4),
            block=self.files.block,
            workflow=definition.name,
            sha256=definition.sha256,
            definition=definition.text,
            inputs=inputs,
            done=_done_calls(continued) if continued else {},
        )
        earlier = continued.record.start.run if continued else ""
        record = RunRecord(start=start, started_at=utc_now(), channel=self._channel, continues=earlier)
        await self.files.save(record, new=True)
        try:
            accepted = await self._accepted(record)
        except RemoteFault as fault:
            if fault.code not in UNDECIDED:
                await self.files.forget([record])
            raise
        try:
            await self._forget_old()
        except (BusError, RemoteFault, Unavailable) as error:  # the run has begun
            log.warning("old runs of workflows of the block %s stay: %s", self.files.block, error)
        return accepted

    async def _forget_old(self) -> None:
        if await self.files.count_runs() <= KEPT_RUNS:
            return
        since = utc_now() - KEPT
        old = [one for one in (await self.list())[KEPT_RUNS:] if one.started_at < since]
        waiting = {one.turn for one in await self.gateway.waiting()} if old else set()
        await self.files.forget(one for one in old if one.turn not in waiting)

    async def list(self) -> tuple[RunRecord, ...]:
        """Return the records, newest first."""
        return await self.files.runs()

    async def find(self, id: str) -> RunRecord:
        """Return the run of an id, of the beginning of one, or the ``last``. Raises TrunklineError."""
        records = await self.list()
        found = records[:1] if id == LAST else [one for one in records if one.start.run.startswith(id)]
        if len(found) == 1:
            return await self._accepted(found[0])
        what = f"{len(found)} runs begin with {id!r}" if found else f"There is no run {id!r}"
        raise TrunklineError(
            f"{what} in the block {self.files.block}.",
            hint='"trunkline workflows list --runs" shows the runs; --block names another block.',
        )

    async def view(self, record: RunRecord) -> RunView:
        """Return a run with its state now. One whose turn is not known is asked for again."""
        return await self.seen(await self._accepted(record))

    async def seen(self, record: RunRecord) -> RunView:
        """Return a run with its state now, and change nothing."""
        journal = await self._journal(record)
        shown = []
        if journal.waiting:
            waiting = await self.gateway.waiting()
            shown = [one for one in waiting if one.turn == record.turn and one.call in journal.waiting]
        now = await self.files.text(record.start.workflow)
        return RunView(
            record=record,
            state=run_state(record.start, journal.results),
            journal=journal,
            approvals=tuple(shown),
            file_hash=text_hash(now) if now is not None else "",
        )

    async def _accepted(self, record: RunRecord) -> RunRecord:
        """Return the record with its turn, which is asked for if it is not known and this channel asked before. Later
        than REPEATED it is not asked for, because a journal that has expired would not prevent a second run."""
        if record.turn or record.channel != self._channel or not _is_repeated(record):
            return record
        start = record.start
        accepted = await self.gateway.send(
            SendMessage(
                content=write_start(start),
                block=start.block,
                client_id=f"workflow {start.run}",
                model=MODEL,
                background=True,
            )
        )
        record = msgspec.structs.replace(record, conversation=accepted.conversation, turn=accepted.turn)
        await self.files.save(record)
        return record

    async def _journal(self, record: RunRecord) -> RunJournal:
        if not record.turn:
            return RunJournal() if _is_repeated(record) else RunJournal(is_empty=False, is_expired=True)
        keys = {"conversation": record.conversation, "turn": record.turn}
        entries = [
            entry
            async for stored in self._bus.history(JOURNAL, after=0, **keys)
            for entry in stored.data.entries
        ]
        if entries:
            return read_journal(entries)
        try:
            found = await self.gateway.conversation(record.conversation, include_tools=True)
        except RemoteFault as fault:
            if fault.code == "not_found":  # no monitor has begun the turn
                return RunJournal()
            raise
        return read_conversation(found.messages) if found.running is None else RunJournal()


def _is_repeated(record: RunRecord) -> bool:
    """Report whether the request of a run may still be repeated."""
    return utc_now() - record.started_at <= REPEATED


def check_inputs(definition: Definition, inputs: Mapping[str, Any]) -> None:
    """Raise TrunklineError if an input is unknown or missing."""
    if unknown := [name for name in inputs if name not in definition.inputs]:
        known = ", ".join(definition.inputs) or "none"
        raise TrunklineError(f"The workflow {definition.name} has no input {unknown[0]!r}; it has: {known}.")
    for name, default in definition.inputs.items():
        if default is None and inputs.get(name) is None:
            raise TrunklineError(
                f"The workflow {definition.name} needs the input {name!r}.",
                hint=f"Give --input {name}=VALUE.",
            )


def _done_calls(continued: RunView) -> dict[str, DoneCall]:
    """Return the calls of a run that have a result, by their ids."""
    done = dict(continued.record.start.done)
    for call in continued.state.calls:
        if (result := continued.journal.results.get(call.id)) is not None:
            done[call.id] = DoneCall(
                tool=call.tool, arguments=call.arguments, text=result.text, kind=result.kind
            )
    return done


def _decision(one: ApprovalRecorded) -> dict[str, Any]:
    at = one.decided_at if isinstance(one.decided_at, datetime) else None
    return {"allow": one.allow, "by": one.by, "at": at.isoformat() if at else None}
