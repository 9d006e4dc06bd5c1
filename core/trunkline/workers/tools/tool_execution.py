"""Runs one tool: time limit, cancellation, and conversion of its exceptions. Uses no ledger and no guards."""

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Tool, ToolInvocation
from trunkline.workers.tools import error_outcomes

log = logging.getLogger(__name__)

GRACE = 1.0
"""Seconds that a cancelled tool has to stop; after that its task is abandoned."""


async def run_tool(
    tool: Tool,
    invocation: ToolInvocation,
    *,
    timeout: float,
    limit: anyio.CancelScope,
    tasks: TaskGroup,
    noted: AbstractContextManager[None],
) -> ToolOutcome:
    """Run the tool for at most ``timeout`` seconds, in a separate task in ``tasks``.

    The separate task allows the worker to abandon a tool that ignores its cancellation. The deadline of ``limit``, a
    new scope, may be extended while the tool runs. ``noted`` is entered while the tool runs. Raises only the
    cancellation of the caller.
    """
    job = _ToolJob(tool, invocation, noted)
    tasks.start_soon(job.run)
    try:
        limit.deadline = anyio.current_time() + timeout
        with limit:
            await job.ended.wait()
    finally:
        await job.stop()
    return job.outcome or _timed_out(invocation, timeout)


@dataclass(slots=True)
class _ToolJob:
    tool: Tool
    invocation: ToolInvocation
    noted: AbstractContextManager[None]
    outcome: ToolOutcome | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        try:
            with self.scope, self.noted:
                self.outcome = await self._guarded()
        finally:
            self.ended.set()

    async def _guarded(self) -> ToolOutcome:
        try:
            return self._checked(await self.tool(self.invocation.context, dict(self.invocation.arguments)))
        except BaseException as error:
            if isinstance(error, anyio.get_cancelled_exc_class()) and error_outcomes.is_being_cancelled():
                raise
            return self._failure(error)

    def _failure(self, error: BaseException) -> ToolOutcome:
        call, spec = self.invocation.context.call, self.invocation.spec
        error_of_tool = error_outcomes.tool_error_in(error)
        if error_of_tool is not None:
            return error_outcomes.refusal_outcome(call, error_of_tool)
        return error_outcomes.crash_outcome(call, spec, error)

    def _checked(self, output: object) -> ToolOutcome:
        call, spec = self.invocation.context.call, self.invocation.spec
        if not isinstance(output, str):
            kind = type(output).__name__
            return error_outcomes.incident_outcome(
                call, f"{spec.name} ran, but returned {kind} instead of text.", tool=spec.name
            )
        return ToolOutcome(call=call, status="ok", output=error_outcomes.encodable_text(output))

    async def stop(self) -> None:
        """Cancel the tool and wait for its end, but not longer than the grace time."""
        if self.ended.is_set():
            return
        self.scope.cancel()
        with anyio.move_on_after(GRACE, shield=True):
            await self.ended.wait()
        if not self.ended.is_set():
            log.warning("tool %s ignores its cancellation; its task is abandoned", self.invocation.spec.name)


def _timed_out(invocation: ToolInvocation, timeout: float) -> ToolOutcome:
    """Return the outcome of a timeout. It does not claim that the tool stopped: a thread first finishes its system
    call.
    """
    text = f"{invocation.spec.name} did not finish within {timeout:g} seconds and was asked to stop."
    return error_outcomes.interrupted_outcome(invocation.context.call, invocation.spec, text, "timeout")
