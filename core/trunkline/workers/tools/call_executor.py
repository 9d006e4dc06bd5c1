"""Executes one call: ledger, guards, tool, ledger. ``call_registry.py`` reports its progress to the
callers."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.tools.function_tool import DEFAULT_TIMEOUT
from trunkline.contracts.tools.messages import PLATFORM_SOURCE, ToolOutcome, ToolSpec
from trunkline.contracts.tools.tool import ToolContext, ToolInvocation
from trunkline.errors import ToolError, TrunklineError
from trunkline.workers.tools import error_outcomes
from trunkline.workers.tools.administration import with_administration
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline.workers.tools.catalogue import Catalogue, CatalogueEntry, NoSuchTool
from trunkline.workers.tools.dispatch import ActivityRecorder, call_hash
from trunkline.workers.tools.ledger import (
    Abandoned,
    ApprovalPending,
    Completed,
    Ledger,
    LedgerConflict,
    NotStarted,
    SettledState,
    as_repeated,
)
from trunkline.workers.tools.live_catalogue import LiveCatalogue
from trunkline.workers.tools.path_locks import PathLocks
from trunkline.workers.tools.planning import with_planning_end
from trunkline.workers.tools.policy_source import PolicySource
from trunkline.workers.tools.result_store import ResultStore
from trunkline.workers.tools.sandboxes import with_read_only_sandbox
from trunkline.workers.tools.tool_execution import run_tool
from trunkline_bus import BusError

MAX_LOADED_TOOLS = 50
"""Largest number of tools that one call may load for the model."""

ContextFactory = Callable[[ActiveCall, ToolSpec], Awaitable[ToolContext]]
"""Creates the context of a tool. Raises TrunklineError when the workspace cannot be created, ToolError when
the permissions of the call cannot be determined."""


@dataclass(frozen=True, slots=True)
class ExecutorDeps:
    """The objects that a ``CallExecutor`` uses.

    ``slots`` limits the number of concurrent tools, ``timeout`` is for tools that set none, ``tasks`` runs
    the tools, ``record_activity`` records the plugin that is active. Without ``results`` no result is
    shortened or marked as data.
    """

    ledger: Ledger
    catalogue: LiveCatalogue
    path_locks: PathLocks
    make_context: ContextFactory
    policies: PolicySource
    slots: AbstractAsyncContextManager[object]
    timeout: float
    tasks: TaskGroup
    record_activity: ActivityRecorder
    results: ResultStore | None = None


@dataclass(slots=True)
class _Attempt:
    """The state of a call while this worker executes it.

    ``seq`` is the ledger's last record. ``record``: the outcome is to be written after that record. ``started``: the
    tool may have begun. ``lost``: another worker recorded the start first.
    """

    spec: ToolSpec | None = None
    seq: int = 0
    record: bool = False
    started: bool = False
    lost: bool = False


class CallExecutor:
    """Executes calls concurrently. Its ``execute`` is the handler of ``CallRegistry``."""

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(self, run: ActiveCall) -> ToolOutcome | None:
        """Return the outcome of the call, recorded where necessary; None when this worker hands the call back because
        it drains.

        Exceptions of tools and guards are converted to outcomes.
        """
        attempt = _Attempt()
        outcome = await self._run_once(run, attempt)
        if outcome is not None and attempt.spec is not None:
            outcome = _with_tool_facts(run, attempt.spec, outcome)
            outcome = await self._fit_result(run, attempt.spec, outcome)
        if outcome is None or not attempt.record or outcome.is_open:
            return outcome
        if attempt.spec is not None and attempt.spec.effect == "read":
            await self._deps.ledger.record_soon(run.call, outcome, attempt.seq)
            return outcome  # recorded in the background: a read without a recorded result may run again
        patient = attempt.spec is None or not attempt.spec.repeatable
        return await self._deps.ledger.record_outcome(run.call, outcome, attempt.seq, patient=patient)

    async def _fit_result(self, run: ActiveCall, spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome, limited to the size that a conversation takes, with the tools that it loads and the files
        that it gives. The platform's own tools limit and mark their results themselves.
        """
        if run.files and outcome.status == "ok" and not outcome.repeated:
            outcome = msgspec.structs.replace(outcome, files=run.files)
        if run.loads and outcome.status == "ok" and not outcome.repeated:
            outcome = msgspec.structs.replace(
                outcome, loads=tuple(dict.fromkeys(run.loads))[:MAX_LOADED_TOOLS]
            )
        if self._deps.results is None or outcome.repeated or spec.source == PLATFORM_SOURCE:
            return outcome
        return await self._deps.results.fit(run.call, spec, outcome)

    async def _run_once(self, run: ActiveCall, attempt: _Attempt) -> ToolOutcome | None:
        """Run the call unless the ledger has its outcome. Start again each time another worker recorded first.

        For a call that is sent for the first time the ledger is not read. If the ledger has a record of it
        nevertheless, the record of the start fails, and the ledger is read then.
        """
        # 1. Read the ledger. A recorded outcome is the answer even if the catalogue or the policies have changed,
        # since the effect has happened. 2. Look up the tool: its effect determines whether an abandoned call may run
        # again. 3. Refuse a call that cannot run. 4. Run the guards, record the start, and run the tool. The start is
        # recorded by compare-and-set over the record that step 1 read, so only one worker begins the call (ADR 0029).
        # The others return to step 1 with ``lost`` set.
        # After a crash before the record of the start, no worker has begun the call, and the monitor sends it again.
        # After a crash behind that record, the ledger has a started call without an outcome. The next worker finds by
        # liveness that the call is abandoned: it runs a repeatable call again, and records an unknown outcome for any
        # other.
        must_read = run.call.again or run.call.has_decisions
        while True:
            state, trouble = await self._ledger_state_or_leave(run) if must_read else (NotStarted(), None)
            must_read = True
            if state is None:
                return None
            if isinstance(state, Completed):
                return as_repeated(state.outcome)
            if isinstance(state, ApprovalPending) and run.call.approved != state.outcome.call_hash:
                return state.outcome
            catalogue = await self._deps.catalogue.current()
            listed = _resolve_tool(catalogue, run)
            attempt.seq, attempt.lost = state.seq, False
            # This check precedes the refusals: a tool that is removed or denied now may have had its effect before.
            if isinstance(state, Abandoned) and not (
                isinstance(listed, CatalogueEntry) and listed.spec.repeatable
            ):
                attempt.record = True
                return error_outcomes.unknown_outcome(run.call.call, state.started.tool)
            if isinstance(listed, NoSuchTool):
                listed = await self._with_hint(catalogue, listed, run.call.block)
            if isinstance(listed, ToolError):
                refusal = error_outcomes.refusal_outcome(run.call.call, listed)
                if await self._is_final(run, refusal, attempt):
                    return refusal
                continue
            run.resumed, run.is_remote = isinstance(state, Abandoned), listed.spec.is_remote
            # It is unknown whether the call has run. Only a repeatable call runs nevertheless.
            if trouble is not None and not listed.spec.repeatable:
                return error_outcomes.unreadable_record_outcome(run.call.call, run.call.name, trouble)
            outcome = await self._try_dispatch(run, catalogue, listed, attempt)
            # The call was stopped before its tool began here. Read the ledger once more: if another worker has run
            # the call meanwhile, its outcome counts (ADR 0029).
            if run.stopped is not None and not attempt.started:
                return await self._outcome_elsewhere(run) or outcome
            if not attempt.lost and await self._is_final(run, outcome, attempt):
                return outcome

    async def _with_hint(self, catalogue: Catalogue, missing: NoSuchTool, block: str) -> ToolError:
        """Return the error with a similar tool's name; without one when the block's limits cannot be
        determined."""
        try:
            limits = await self._deps.policies.limits_of(block)
        except ToolError:
            return missing
        return NoSuchTool(missing.name, catalogue.suggest(missing.name, limits))

    async def _is_final(self, run: ActiveCall, outcome: ToolOutcome | None, attempt: _Attempt) -> bool:
        """Report whether the outcome may be returned.

        When another worker, with other policies or plugins, may have the call, a refusal is recorded first, so that
        no other worker can start the call. If another worker has already started it, the outcome of that worker is
        awaited. A question to a person is recorded in the same way: the call can then start only with that approval.
        """
        unmade = outcome is not None and outcome.status in ("error", "approval") and not attempt.started
        if outcome is None or not (unmade and run.call.again) or (attempt.spec and attempt.spec.repeatable):
            return True
        if attempt.spec is not None:
            outcome = msgspec.structs.replace(outcome, effect=attempt.spec.effect)
        try:
            await self._deps.ledger.record_refusal(run.call, outcome, attempt.seq)
        except LedgerConflict:
            return False
        return True

    async def _outcome_elsewhere(self, run: ActiveCall) -> ToolOutcome | None:
        """Return the outcome from another worker of a call that was stopped before it began here; None when there is
        none.
        """
        state, _ = await self._ledger_state(run)
        return as_repeated(state.outcome) if isinstance(state, Completed) else None

    async def _ledger_state_or_leave(self, run: ActiveCall) -> tuple[SettledState | None, BusError | None]:
        """Return the result of ``_ledger_state``; None as the state when this worker drains first."""
        with anyio.CancelScope() as run.waiting:
            return await self._ledger_state(run)
        return None, None

    async def _ledger_state(self, run: ActiveCall) -> tuple[SettledState, BusError | None]:
        """Return the state of the call in the ledger, and the error when the ledger cannot be read. A repeatable call
        waits only briefly for the ledger.
        """
        listed = _resolve_tool(await self._deps.catalogue.current(), run)
        patient = not (isinstance(listed, CatalogueEntry) and listed.spec.repeatable)
        try:
            return await self._deps.ledger.settled_state(run.call.call, patient=patient), None
        except BusError as error:
            return NotStarted(), error

    async def _try_dispatch(
        self, run: ActiveCall, catalogue: Catalogue, listed: CatalogueEntry, attempt: _Attempt
    ) -> ToolOutcome | None:
        """Dispatch the call, unless it is stopped. Return None when the call is handed back."""
        attempt.spec = listed.spec
        if run.stopped is not None:
            return _stopped_outcome(run, attempt)
        with anyio.CancelScope() as run.attempt:
            return await self._dispatch(run, catalogue, listed, attempt)
        if run.question is not None and run.stopped is None:
            return run.question
        return None if run.handed_back else _stopped_outcome(run, attempt)

    async def _dispatch(
        self, run: ActiveCall, catalogue: Catalogue, listed: CatalogueEntry, attempt: _Attempt
    ) -> ToolOutcome:
        try:
            invocation = await self._make_invocation(run, listed)
        except ToolError as error:
            return error_outcomes.refusal_outcome(run.call.call, error)
        except TrunklineError as error:
            return error_outcomes.incident_outcome(
                run.call.call, f"{listed.spec.name} has no workspace to work in.", error
            )

        async def perform(checked: ToolInvocation) -> ToolOutcome:
            return await self._perform(run, listed, checked, attempt)

        outcome = await catalogue.dispatch(invocation, perform)
        return msgspec.structs.replace(outcome, call=run.call.call)

    async def _make_invocation(self, run: ActiveCall, listed: CatalogueEntry) -> ToolInvocation:
        call = run.call
        if not is_block_name(call.block):
            raise ToolError(
                f"{call.block!r} is not the name of a block. Nothing was run.", kind="invalid_arguments"
            )
        await self._deps.policies.wait_for_policies(call.block)
        return ToolInvocation(
            spec=listed.spec,
            arguments=run.arguments,
            context=await self._deps.make_context(run, listed.spec),
            call_hash=call_hash(listed.spec, run.arguments),
            approved=call.approved,
        )

    async def _perform(
        self, run: ActiveCall, listed: CatalogueEntry, invocation: ToolInvocation, attempt: _Attempt
    ) -> ToolOutcome:
        """Acquire locks and slot, record the start, run the tool."""
        # Acquire the locks and the slot before the start is recorded: a call that waits for them has not begun, so
        # its outcome is known after a crash or a stop. When the call is stopped while its start is recorded, the
        # checkpoint below raises: the tool does not begin, and the recorded outcome is "was not run" (ADR 0029).
        # ``attempt.record`` is set before the checkpoint, so that the record of the start is followed by an outcome.
        spec, deps = listed.spec, self._deps
        slot = nullcontext() if spec.is_remote else deps.slots  # a remote's tool takes no slot here
        async with deps.path_locks.acquire(invocation), slot:
            if spec.effect != "read":
                try:
                    attempt.seq = await deps.ledger.record_start(run.call, spec, attempt.seq)
                except LedgerConflict:
                    attempt.lost = True
                    return error_outcomes.error_outcome(run.call.call, "", "internal")
                except BusError as error:
                    return error_outcomes.incident_outcome(run.call.call, _NO_LEDGER.format(spec.name), error)
            attempt.record = True
            await anyio.lowlevel.checkpoint_if_cancelled()  # raises when the call was stopped meanwhile
            attempt.started = True
            timeout = deps.timeout if spec.timeout == DEFAULT_TIMEOUT else spec.timeout
            if not isinstance(run.call.timeout, msgspec.UnsetType):
                timeout = min(timeout, run.call.timeout)
            activity = deps.record_activity(listed.owner, "tool")
            return await run_tool(
                listed.tool,
                with_administration(with_planning_end(with_read_only_sandbox(invocation))),
                timeout=timeout,
                limit=run.limit,
                tasks=deps.tasks,
                noted=activity,
            )


_NO_LEDGER = "{} was not run, because its start cannot be recorded now."


def _with_tool_facts(run: ActiveCall, spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
    """Return the outcome with the facts of its tool. For a repeated one the ledger knows whether it is
    derived."""
    derived = outcome.derived if outcome.repeated else spec.derived or run.derived
    return msgspec.structs.replace(outcome, effect=spec.effect, derived=derived)


def _resolve_tool(catalogue: Catalogue, run: ActiveCall) -> CatalogueEntry | ToolError:
    try:
        listed, run.arguments = catalogue.resolve(run.call.name, run.call.arguments)
    except ToolError as error:
        return error
    run.tool = listed.spec.name
    return listed


def _stopped_outcome(run: ActiveCall, attempt: _Attempt) -> ToolOutcome:
    name, why = run.call.name, run.stopped or "the call was cancelled"
    if not attempt.started or attempt.spec is None:
        return error_outcomes.error_outcome(run.call.call, f"{name} was not run: {why}.", "cancelled")
    text = f"{name} was stopped before it ended: {why}."
    return error_outcomes.interrupted_outcome(run.call.call, attempt.spec, text, "cancelled")
