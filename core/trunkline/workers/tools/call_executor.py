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
    """The state of a call while it is carried out.

    ``seq`` is the ledger's last record, ``record`` whether the outcome is to be written after it, ``started``
    whether the tool may have begun, ``lost`` whether another worker was first.
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
        """Return the outcome of the call, recorded where necessary; None when another worker has it and this
        one drains.

        Exceptions of tools and guards never leave it.
        """
        attempt = _Attempt()
        outcome = await self._run_once(run, attempt)
        if outcome is not None and attempt.spec is not None:
            outcome = _with_tool_facts(run, attempt.spec, outcome)
            outcome = await self._fit_result(run, attempt.spec, outcome)
        if outcome is None or not attempt.record or outcome.status == "approval":
            return outcome
        if attempt.spec is not None and attempt.spec.effect == "read":
            await self._deps.ledger.record_soon(run.call, outcome, attempt.seq)
            return outcome  # recorded in the background: a read without a recorded result may run again
        patient = attempt.spec is None or not attempt.spec.repeatable
        return await self._deps.ledger.record_outcome(run.call, outcome, attempt.seq, patient=patient)

    async def _fit_result(self, run: ActiveCall, spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome in the size that a conversation takes, with the tools that it loads. The
        platform's own tools limit and mark their results themselves."""
        if run.loads and outcome.status == "ok" and not outcome.repeated:
            outcome = msgspec.structs.replace(
                outcome, loads=tuple(dict.fromkeys(run.loads))[:MAX_LOADED_TOOLS]
            )
        if self._deps.results is None or outcome.repeated or spec.source == PLATFORM_SOURCE:
            return outcome
        return await self._deps.results.fit(run.call, spec, outcome)

    async def _run_once(self, run: ActiveCall, attempt: _Attempt) -> ToolOutcome | None:
        """Run the call unless the ledger has its outcome; start over each time another worker was faster.

        For a call that is sent for the first time the ledger is not read. If it has a record all the same,
        the record of the start fails, and the ledger is read then.
        """
        # 1. The ledger comes first: an outcome that it has is the answer, whatever the catalogue or the policies say
        # now, since the effect has happened. 2. Then the tool is looked up: only its effect tells whether an abandoned
        # call may run again. 3. What cannot run is refused. 4. The guards and the tool follow, and behind the guards,
        # immediately before the tool, the record of the start, by compare-and-set over the record that was read in 1.
        # So of all workers that came this far one begins (ADR 0029); the others come back to 1 as ``lost``.
        #
        # A crash before the record of the start leaves a call that nobody began, and the monitor asks again. A crash
        # behind it leaves a started call without an outcome. The worker that is asked next sees by liveness that it is
        # abandoned: it runs a repeatable call again, and records of any other that its outcome is unknown.
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
            # In doubt before it is refused: the tool may be gone or denied by now, and still have had its effect.
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
            run.resumed, run.away = isinstance(state, Abandoned), listed.spec.is_remote
            # It is unknown whether the call has run. A repeatable call runs all the same.
            if trouble is not None and not listed.spec.repeatable:
                return error_outcomes.unreadable_record_outcome(run.call.call, run.call.name, trouble)
            outcome = await self._try_dispatch(run, catalogue, listed, attempt)
            # Stopped before its tool began here. The ledger is read once more, because another worker may have run it
            # meanwhile, and then its outcome counts (ADR 0029).
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

        When another worker may have the call, under other policies or plugins, a refusal is recorded first,
        so that no worker starts it any more; if one has started it, its outcome is awaited. The same holds
        for a question to a person: the call then starts only with that approval.
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
        """Return the outcome of a call that was stopped before it began here, if another worker has run it
        meanwhile."""
        state, _ = await self._ledger_state(run)
        return as_repeated(state.outcome) if isinstance(state, Completed) else None

    async def _ledger_state_or_leave(self, run: ActiveCall) -> tuple[SettledState | None, BusError | None]:
        """Return the state as ``_ledger_state``; None when this worker drains before another worker has ended
        the call."""
        with anyio.CancelScope() as run.waiting:
            return await self._ledger_state(run)
        return None, None

    async def _ledger_state(self, run: ActiveCall) -> tuple[SettledState, BusError | None]:
        """Return the state of the call in the ledger, and the error when it cannot be read. For a call that
        may run again the ledger is awaited only briefly."""
        listed = _resolve_tool(await self._deps.catalogue.current(), run)
        patient = not (isinstance(listed, CatalogueEntry) and listed.spec.repeatable)
        try:
            return await self._deps.ledger.settled_state(run.call.call, patient=patient), None
        except BusError as error:
            return NotStarted(), error

    async def _try_dispatch(
        self, run: ActiveCall, catalogue: Catalogue, listed: CatalogueEntry, attempt: _Attempt
    ) -> ToolOutcome | None:
        """Dispatch the call, unless it is stopped before or meanwhile; None when it is handed back."""
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
        # Locks and slot before the record of the start: a call that waits for them has not begun, and a crash or a stop
        # while it waits leaves no doubt about it. A stop during the record raises behind it, so the call does not
        # begin, and its recorded outcome is "was not run" (ADR 0029). ``attempt.record`` is set before that, so that
        # the record of the start does not stay without an end.
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
            await anyio.lowlevel.checkpoint_if_cancelled()  # it was stopped while its start was recorded
            attempt.started = True
            timeout = deps.timeout if spec.timeout == DEFAULT_TIMEOUT else spec.timeout
            activity = deps.record_activity(listed.owner, "tool")
            return await run_tool(
                listed.tool,
                with_planning_end(with_read_only_sandbox(invocation)),
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
