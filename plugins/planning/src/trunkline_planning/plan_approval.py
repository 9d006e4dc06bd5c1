"""The two ways out of planning. The platform asks a person about both, whatever is permitted: no agent lifts its own
limit."""

import trunkline
from trunkline import ToolError
from trunkline.api.memory import read_text, update_text
from trunkline.api.tool import Proceed, Stage, ToolInvocation
from trunkline_planning.plan import PlanDocument
from trunkline_planning.plan_tools import open_plan, plan_path
from trunkline_planning.version import plan_version


@trunkline.tool(effect="write", idempotent=True, in_plan_mode="ends")
async def approve_plan(context: trunkline.ToolContext, version: str) -> str:
    """Ask the owner to approve the plan. After approval, planning ends and you carry it out. Present it first.

    Args:
        version: The version that present_plan returned.
    """
    await _require_version(context, version)
    await context.planning.end()
    await update_text(
        context.memory, plan_path(context), lambda text: PlanDocument(text).with_state("approved").text
    )
    return "The owner approved the plan. Carry it out step by step; what needs approval is still asked about."


@approve_plan.previewer
async def _preview_plan(context: trunkline.ToolContext, version: str) -> trunkline.ApprovalDetail:
    return _full_preview(await _require_version(context, version))


@trunkline.tool(effect="write", idempotent=True, in_plan_mode="ends")
async def exit_plan_mode(context: trunkline.ToolContext, cancel: bool = False) -> str:
    """Ask the owner to end planning without an approved plan.

    Args:
        cancel: Whether to abandon the plan; otherwise it is kept, to be continued later.
    """
    await context.planning.end()
    if cancel and await read_text(context.memory, plan_path(context)):
        await update_text(
            context.memory, plan_path(context), lambda text: PlanDocument(text).with_state("abandoned").text
        )
        return "Planning has ended and the plan is abandoned."
    return "Planning has ended; the plan stays as it is."


class PlanVersionCheck:
    """Refuses an approval of a plan that is another one by now, or that nobody could see whole: none is asked for."""

    stage: Stage = "gate"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> trunkline.ToolOutcome:
        """Raises ToolError."""
        spec = invocation.spec
        if spec.source.startswith("native:") and spec.name == approve_plan.spec.name:
            _full_preview(
                await _require_version(invocation.context, str(invocation.arguments.get("version", "")))
            )
        return await proceed(invocation)


async def _require_version(context: trunkline.ToolContext, version: str) -> PlanDocument:
    plan = await open_plan(context)
    if not plan.entries("Steps"):
        raise ToolError("The plan has no steps yet. Add them with add_plan_step.", kind="not_found")
    if plan_version(plan.text) != version:
        raise ToolError(
            "The plan was changed meanwhile. Call present_plan and use the version that it returns.",
            kind="conflict",
        )
    return plan


def _full_preview(plan: PlanDocument) -> trunkline.ApprovalDetail:
    """The plan as a person is shown it. Raises ToolError when that is not all of it: nobody approves what they do not
    see."""
    shown = trunkline.preview("message", plan.text)
    if shown.left_out:
        raise ToolError(
            f"The plan is {shown.left_out} characters longer than a person is shown at once, so it cannot be approved. "
            "Say its steps in fewer words, or leave later ones to a plan of their own; then call present_plan again.",
            kind="too_large",
        )
    return shown
