"""One tool call: sent to the tools workers until one returns the outcome. The ledger makes a repeat
harmless."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import BUSY, CallTool, CancelCall, ToolOutcome, ToolProgress
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL, CANCEL_CALL
from trunkline.errors import ToolErrorKind, error_kind_for_code
from trunkline.workers.monitor.turn import RunToolCall
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault, Scope
from trunkline_bus.backoff import Backoff

log = logging.getLogger(__name__)

NO_WORKER_TIMEOUT = 60.0
"""Seconds without any tools worker after which a call fails."""

PAUSE, LONGEST_PAUSE = 0.2, 1.0
"""The first and the longest pause in seconds before a call that no tools worker has received is sent again. The pause
doubles after each attempt."""

MAX_SILENT_PAUSE = 5.0
"""The longest pause in seconds for a call whose worker is silent or busy. More frequent requests would not help."""


ShowProgress = Callable[[ToolProgress], Awaitable[None]]
"""Shows people the progress of a call."""


class ToolCaller:
    """Sends tool calls. ``silence`` is the number of seconds without a reply after which a worker counts as dead."""

    def __init__(self, bus: Bus, silence: float) -> None:
        self._bus = bus
        self._silence = silence

    async def call(
        self,
        command: RunToolCall,
        scope: Scope,
        actor: str,
        forked_from: str | None = None,
        *,
        show: ShowProgress | None = None,
        budget_turn: str = "",
    ) -> ToolOutcome:
        """Return the outcome of the call. Failures on the way to the worker are outcomes too."""
        request = CallTool(
            call=command.key,
            name=command.call.name,
            arguments=command.call.arguments,
            block=scope.block or "",
            conversation=scope.conversation or "",
            turn=scope.turn or "",
            actor=actor,
            approved=command.approved,
            forked_from=forked_from,
            answers=command.answers,
            reports=command.reports,
            budget_turn=budget_turn,
            again=command.again,
            permissions=command.permissions,
            timeout=command.call.timeout,
        )
        deadline = anyio.current_time() + NO_WORKER_TIMEOUT
        heard = command.again
        silent, absent = Backoff(PAUSE, MAX_SILENT_PAUSE), Backoff(PAUSE, LONGEST_PAUSE)
        while True:
            backoff = silent
            try:
                outcome = await self._ask(request, scope, show)
                if not _is_asked_again(request, outcome):
                    return outcome
                log.warning(
                    "tool call %s (%s): a question that was answered is ignored", command.key, request.name
                )
                if anyio.current_time() > deadline:
                    return _unapproved(command)
            except RemoteFault as fault:
                if fault.code != BUSY:
                    return _failed(command, fault.message, error_kind_for_code(fault.code))
                deadline = anyio.current_time() + NO_WORKER_TIMEOUT
            except CallTimeout:
                # A worker received the call: send the call again under the same key; the ledger has its state.
                log.warning(
                    "tool call %s (%s): its worker is silent; sending the call again",
                    command.key,
                    request.name,
                )
                deadline, heard = anyio.current_time() + NO_WORKER_TIMEOUT, True
            except BusError as error:
                heard = heard or not isinstance(
                    error, NoResponders
                )  # the request may have been sent before the error
                if anyio.current_time() > deadline:
                    log.error("tool call %s (%s): %s", command.key, request.name, error)
                    return _unavailable(command, heard)
                backoff = absent
            request = msgspec.structs.replace(request, again=heard)
            await backoff.sleep()

    async def cancel(self, key: str, reason: str) -> None:
        """Request that the worker which runs the call stops it. The request is sent once; a call that continues is
        limited by its timeout."""
        try:
            await self._bus.publish(CANCEL_CALL, CancelCall(reason=reason), call=key)
        except BusError as error:
            log.warning("the cancel of tool call %s could not be sent: %s", key, error)

    async def _ask(self, request: CallTool, scope: Scope, show: ShowProgress | None) -> ToolOutcome:
        note = ""
        endpoint = CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL
        async with self._bus.call_streaming(
            endpoint, request, scope=scope, idle_timeout=self._silence
        ) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
                if show is not None and (reply.output or reply.note != note):
                    note = reply.note
                    await show(reply)
        raise CallTimeout("the tools worker ended without an outcome")


class UnattendedToolCaller(ToolCaller):
    """Sends the calls of a loop without a person. Calls that need an approval are refused."""

    async def call(
        self,
        command: RunToolCall,
        scope: Scope,
        actor: str,
        forked_from: str | None = None,
        *,
        show: ShowProgress | None = None,
        budget_turn: str = "",
    ) -> ToolOutcome:
        """Return the outcome of the call; never ``approval``."""
        outcome = await super().call(command, scope, actor, forked_from, show=show, budget_turn=budget_turn)
        if outcome.status != "approval":
            return outcome
        is_question = isinstance(outcome.detail, ApprovalDetail) and outcome.detail.is_question
        need = "asks a person something" if is_question else "needs a person's approval"
        text = f"{command.call.name} {need}, and nobody can be asked here."
        if not outcome.is_waiting:
            return _failed(command, f"{text} It was not run.", "no_answer")
        await self.cancel(command.key, "nobody can be asked here")
        text = f"{text} The running call was stopped and may have had an effect; check before you repeat it."
        return _in_doubt(command, text)


def _is_asked_again(request: CallTool, outcome: ToolOutcome) -> bool:
    """Report whether the outcome asks again for the approval that the request already carries."""
    return (
        outcome.status == "approval"
        and request.approved is not None
        and outcome.call_hash == request.approved
    )


def _unapproved(command: RunToolCall) -> ToolOutcome:
    text = f"{command.call.name} was not run: it was approved, but no tools worker took the approval."
    return ToolOutcome(call=command.key, status="error", output=text, error_kind="unavailable")


def _unavailable(command: RunToolCall, answered: bool) -> ToolOutcome:
    """Return the outcome of a call that no worker answers. With ``answered`` a worker may have received the call, so
    its effect is unknown."""
    text = f"The tool {command.call.name} is unavailable: no tools worker answers."
    if not answered:
        return _failed(command, f"{text} It was not run.", "unavailable")
    return _in_doubt(command, f"{text} It may have been run; check before doing it again.")


def _failed(command: RunToolCall, text: str, kind: ToolErrorKind) -> ToolOutcome:
    return ToolOutcome(call=command.key, status="error", output=text, error_kind=kind)


def _in_doubt(command: RunToolCall, text: str) -> ToolOutcome:
    return ToolOutcome(call=command.key, status="unknown", output=text, error_kind="outcome_unknown")
