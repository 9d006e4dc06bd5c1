"""The line of the audit log that a call leaves behind when it ends."""

from time import perf_counter

from msgspec import UnsetType

from trunkline.messages.tools import ToolOutcome
from trunkline.runtime.audit import AuditLog
from trunkline.tools.calls import Run, Work


def audited(work: Work, audit: AuditLog) -> Work:
    """The same work, noted. A result out of the ledger was noted when the call ended."""

    async def with_note(run: Run) -> ToolOutcome | None:
        began = perf_counter()
        outcome = await work(run)
        if outcome is not None and not outcome.repeated:
            call = run.call
            await audit.note(
                event="call",
                block=call.block,
                actor=call.actor,
                conversation=call.conversation,
                turn=call.turn,
                call=call.call,
                tool=run.tool or call.name,
                effect=outcome.effect,
                status=outcome.status,
                seconds=round(perf_counter() - began, 6),
                size=len(outcome.output)
                if isinstance(outcome.stored, UnsetType)
                else outcome.stored.characters,
                **audit.content(call.arguments, outcome.output),
            )
        return outcome

    return with_note
