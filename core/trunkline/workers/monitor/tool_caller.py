"""One tool call: sent to the tools workers until one tells how it ended. The ledger makes a repeat harmless."""

import logging

import anyio
import msgspec

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.tools.messages import BUSY, CallTool, CancelCall, ToolOutcome
from trunkline.contracts.tools.subjects import CALL_DECIDED_TOOL, CALL_TOOL, CANCEL_CALL
from trunkline.errors import ToolErrorKind, error_kind_for_code
from trunkline.workers.monitor.turn import RunToolCall
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault, Scope

log = logging.getLogger(__name__)

NO_WORKER_TIMEOUT = 60.0
"""Seconds without any tools worker after which a call fails."""

PAUSE, LONGEST_PAUSE = 0.2, 1.0
"""Seconds before a call is sent again of which no tools worker has heard, doubled each time."""

MAX_SILENT_PAUSE = 5.0
"""The same for a call whose worker went silent or has too many: asking more often makes neither quicker."""


class ToolCaller:
    """Sends tool calls. ``silence`` is after how many seconds without a sign of life a worker counts as gone."""

    def __init__(self, bus: Bus, silence: float) -> None:
        self._bus = bus
        self._silence = silence

    async def call(
        self, command: RunToolCall, scope: Scope, actor: str, forked_from: str | None = None
    ) -> ToolOutcome:
        """How the call ended; every failure of the way there is an outcome too."""
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
            again=command.again,
            permissions=command.permissions,
        )
        deadline = anyio.current_time() + NO_WORKER_TIMEOUT
        heard, pause = command.again, PAUSE
        while True:
            longest = MAX_SILENT_PAUSE
            try:
                outcome = await self._ask(request, scope)
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
                # Somebody had the call: ask again under the same key, the ledger knows how far it came.
                log.warning(
                    "tool call %s (%s): its worker went silent, asking again", command.key, request.name
                )
                deadline, heard = anyio.current_time() + NO_WORKER_TIMEOUT, True
            except BusError as error:
                heard = heard or not isinstance(error, NoResponders)  # it may have been sent before it failed
                if anyio.current_time() > deadline:
                    log.error("tool call %s (%s): %s", command.key, request.name, error)
                    return _unavailable(command, heard)
                longest = LONGEST_PAUSE
            request = msgspec.structs.replace(request, again=heard)
            await anyio.sleep(pause)
            pause = min(2 * pause, longest)

    async def cancel(self, key: str, reason: str) -> None:
        """Have whoever runs the call stop it. Said once: a call that goes on all the same has its own timeout."""
        try:
            await self._bus.publish(CANCEL_CALL, CancelCall(reason=reason), call=key)
        except BusError as error:
            log.warning("tool call %s could not be told to stop: %s", key, error)

    async def _ask(self, request: CallTool, scope: Scope) -> ToolOutcome:
        endpoint = CALL_DECIDED_TOOL if request.has_decisions else CALL_TOOL
        async with self._bus.call_streaming(
            endpoint, request, scope=scope, idle_timeout=self._silence
        ) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
        raise CallTimeout("the tools worker ended without an outcome")


class UnattendedToolCaller(ToolCaller):
    """Sends calls of a loop at which nobody can be asked: one that needs a person's yes is refused."""

    async def call(
        self, command: RunToolCall, scope: Scope, actor: str, forked_from: str | None = None
    ) -> ToolOutcome:
        """How the call ended; never ``approval``."""
        outcome = await super().call(command, scope, actor, forked_from)
        if outcome.status != "approval":
            return outcome
        is_question = isinstance(outcome.detail, ApprovalDetail) and outcome.detail.is_question
        need = "asks a person something" if is_question else "needs a person's approval"
        text = f"{command.call.name} {need}, and nobody can be asked here."
        if not outcome.is_waiting:
            return _failed(command, f"{text} It was not run.", "no_answer")
        await self.cancel(command.key, "nobody can be asked here")
        text = (
            f"{text} It was stopped in its middle, and may have had an effect; check before doing it again."
        )
        return _in_doubt(command, text)


def _is_asked_again(request: CallTool, outcome: ToolOutcome) -> bool:
    """Report whether a person is to be asked for the very approval that the request carries. The first yes counts."""
    return (
        outcome.status == "approval"
        and request.approved is not None
        and outcome.call_hash == request.approved
    )


def _unapproved(command: RunToolCall) -> ToolOutcome:
    text = f"{command.call.name} was not run: it was approved, but no tools worker took the approval."
    return ToolOutcome(call=command.key, status="error", output=text, error_kind="unavailable")


def _unavailable(command: RunToolCall, heard: bool) -> ToolOutcome:
    """``heard``: a worker may have had the call before all went silent, so nobody can say what it did."""
    text = f"The tool {command.call.name} is unavailable: no tools worker answers."
    if not heard:
        return _failed(command, f"{text} It was not run.", "unavailable")
    return _in_doubt(command, f"{text} It may have been run; check before doing it again.")


def _failed(command: RunToolCall, text: str, kind: ToolErrorKind) -> ToolOutcome:
    return ToolOutcome(call=command.key, status="error", output=text, error_kind=kind)


def _in_doubt(command: RunToolCall, text: str) -> ToolOutcome:
    return ToolOutcome(call=command.key, status="unknown", output=text, error_kind="outcome_unknown")
