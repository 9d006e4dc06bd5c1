"""The line of the audit log that a call leaves behind when it ends."""

from time import perf_counter

from msgspec import UnsetType

from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.tools.call_registry import ActiveCall, CallHandler

CANCELLED = "cancelled"


def with_audit(work: CallHandler, audit: AuditLog) -> CallHandler:
    """The same work, noted. A result out of the ledger was noted when the call ended."""

    async def with_note(run: ActiveCall) -> ToolOutcome | None:
        began = perf_counter()
        try:
            outcome = await work(run)
        except Exception:
            await _note(
                audit, run, perf_counter() - began, status="unknown", why="it could not be carried out."
            )
            raise
        if outcome is not None and not outcome.repeated:
            await _note(
                audit,
                run,
                perf_counter() - began,
                effect=outcome.effect,
                status=_status(outcome),
                why=f"{run.stopped}." if run.stopped and outcome.status in ("error", "unknown") else "",
                size=len(outcome.output)
                if isinstance(outcome.stored, UnsetType)
                else outcome.stored.characters,
                **audit.describe_content(run.call.arguments, outcome.output),
            )
        return outcome

    return with_note


async def _note(audit: AuditLog, run: ActiveCall, seconds: float, **more: object) -> None:
    call = run.call
    await audit.record(
        event="call",
        block=call.block,
        actor=call.actor,
        conversation=call.conversation,
        turn=call.turn,
        call=call.call,
        tool=run.tool or call.name,
        seconds=round(seconds, 6),
        **more,
    )


def _status(outcome: ToolOutcome) -> str:
    """How it ended: one that somebody stopped before it could have an effect did not fail."""
    cancelled = outcome.status == "error" and outcome.error_kind == CANCELLED
    return CANCELLED if cancelled else outcome.status
