"""One tool call: sent to the tools workers until one tells how it ended. The ledger makes a repeat harmless."""

import logging

import anyio
import msgspec

from trunkline.messages.approvals import ApprovalDetail
from trunkline.messages.tools import CallTool, CancelCall, ToolOutcome
from trunkline.monitor.turn import RunTool
from trunkline.subjects import CALL_DECIDED, CALL_TOOL, CANCEL_CALL
from trunkline_bus import Bus, BusError, CallTimeout, NoResponders, RemoteFault, Scope

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds without any tools worker after which a call fails."""

PAUSE = 0.2


class Actor:
    """Sends tool calls. ``silence`` is after how many seconds without a sign of life a worker counts as gone."""

    def __init__(self, bus: Bus, silence: float) -> None:
        self._bus = bus
        self._silence = silence

    async def outcome(
        self, command: RunTool, scope: Scope, actor: str, forked_from: str | None = None
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
        )
        deadline = anyio.current_time() + PATIENCE
        heard = command.again
        while True:
            try:
                return await self._ask(request, scope)
            except RemoteFault as fault:
                return ToolOutcome(call=command.key, status="error", output=fault.message)
            except CallTimeout:
                # Somebody had the call: ask again under the same key, the ledger knows how far it came.
                log.warning(
                    "tool call %s (%s): its worker went silent, asking again", command.key, request.name
                )
                deadline, heard = anyio.current_time() + PATIENCE, True
            except BusError as error:
                heard = heard or not isinstance(error, NoResponders)  # it may have been sent before it failed
                if anyio.current_time() > deadline:
                    log.error("tool call %s (%s): %s", command.key, request.name, error)
                    return _unavailable(command, heard)
            request = msgspec.structs.replace(request, again=heard)
            await anyio.sleep(PAUSE)

    async def stop(self, key: str, reason: str) -> None:
        """Have whoever runs the call stop it. Said once: a call that goes on all the same has its own timeout."""
        try:
            await self._bus.publish(CANCEL_CALL, CancelCall(reason=reason), call=key)
        except BusError as error:
            log.warning("tool call %s could not be told to stop: %s", key, error)

    async def _ask(self, request: CallTool, scope: Scope) -> ToolOutcome:
        endpoint = CALL_DECIDED if request.decided else CALL_TOOL
        async with self._bus.call_streaming(
            endpoint, request, scope=scope, idle_timeout=self._silence
        ) as replies:
            async for reply in replies:
                if isinstance(reply, ToolOutcome):
                    return reply
        raise CallTimeout("the tools worker ended without an outcome")


class Unasking(Actor):
    """Sends calls of a loop at which nobody can be asked: one that needs a person's yes is refused."""

    async def outcome(
        self, command: RunTool, scope: Scope, actor: str, forked_from: str | None = None
    ) -> ToolOutcome:
        """How the call ended; never ``approval``."""
        outcome = await super().outcome(command, scope, actor, forked_from)
        if outcome.status != "approval":
            return outcome
        is_question = isinstance(outcome.detail, ApprovalDetail) and outcome.detail.is_question
        need = "asks a person something" if is_question else "needs a person's approval"
        text = f"{command.call.name} {need}, and nobody can be asked here."
        if not outcome.waits:
            return ToolOutcome(call=command.key, status="error", output=f"{text} It was not run.")
        await self.stop(command.key, "nobody can be asked here")
        text = (
            f"{text} It was stopped in its middle, and may have had an effect; check before doing it again."
        )
        return ToolOutcome(call=command.key, status="unknown", output=text)


def _unavailable(command: RunTool, heard: bool) -> ToolOutcome:
    """``heard``: a worker may have had the call before all went silent, so nobody can say what it did."""
    text = f"The tool {command.call.name} is unavailable: no tools worker answers."
    if not heard:
        return ToolOutcome(call=command.key, status="error", output=f"{text} It was not run.")
    text = f"{text} It may have been run; check before doing it again."
    return ToolOutcome(call=command.key, status="unknown", output=text)
