"""Decides about the step at which a run waits. Contains no command."""

from typing import TYPE_CHECKING

from trunkline_workflow.commands._common import watch

if TYPE_CHECKING:
    from trunkline.api.tool import Approval
    from trunkline_workflow.runs import Runs, RunView


PATIENCE = 120.0
"""Seconds in which a decision must arrive when this command waits for the run."""

HASTE = 5.0
"""The same when it does not wait: without a running platform nothing arrives."""


async def decide(runs: "Runs", run: str, *, allow: bool, as_begun: bool, wait: bool) -> "RunView":
    """Decide about the only call that waits, and return the run after it.

    Raises:
        TrunklineError: nothing waits, or the workflow's file was changed and ``as_begun`` is false.
    """
    patience = PATIENCE if wait else HASTE
    view = await runs.view(await runs.find(run))
    view = await _until_it_asks(runs, view, patience)
    asked = _only_approval(view)
    if allow and view.is_edited and not as_begun:
        _refuse_edited(view)
    await _submit(runs, asked, allow=allow)
    after = await _after(runs, view, asked, patience)
    if allow and as_begun and after.is_edited and after.approvals and _is_same_step(view, after):
        # The gate refused the first approval, because its question did not say that the file was changed.
        again = _only_approval(after)
        await _submit(runs, again, allow=True)
        after = await _after(runs, after, again, patience)
    return await watch(runs, after) if wait else after


async def _until_it_asks(runs: "Runs", view: "RunView", seconds: float) -> "RunView":
    """Return a run that is on its way to a step that waits, once it is there, or after the time."""
    import anyio

    with anyio.move_on_after(seconds):
        while not view.ended and not view.approvals:
            await anyio.sleep(0.2)
            view = await runs.view(view.record)
    return view


async def _submit(runs: "Runs", asked: "Approval", *, allow: bool) -> None:
    await runs.gateway.decide(asked.turn, asked.call, asked.call_hash, allow=allow)


async def _after(runs: "Runs", view: "RunView", asked: "Approval", seconds: float) -> "RunView":
    """Return the run when the decision has arrived and it has ended or asks again, or after the time."""
    import anyio

    with anyio.move_on_after(seconds):
        while True:
            view = await runs.view(view.record)
            if view.ended or (asked.id not in {one.id for one in view.approvals}):
                break
            await anyio.sleep(0.2)
    return await _until_it_asks(runs, view, seconds)


def _only_approval(view: "RunView") -> "Approval":
    from trunkline import TrunklineError

    if len(view.approvals) == 1:
        return view.approvals[0]
    raise TrunklineError(
        f"The run {view.record.start.run} waits for nobody: it is {view.status}.",
        hint=f'"trunkline workflows show {view.record.start.run}" shows what was decided, and by whom.',
    )


def _refuse_edited(view: "RunView") -> None:
    from trunkline import TrunklineError

    start = view.record.start
    raise TrunklineError(
        f"The file of the workflow {start.workflow} was changed since the run {start.run} began: its hash was "
        f"{start.sha256[:12]} and is {view.file_hash[:12]}. Nothing was approved.",
        hint=f"trunkline workflows migrate {start.run} continues with the changed file; "
        f"trunkline workflows approve {start.run} --as-begun with the definition that the run began with.",
    )


def _is_same_step(before: "RunView", after: "RunView") -> bool:
    return before.state.current_step == after.state.current_step
