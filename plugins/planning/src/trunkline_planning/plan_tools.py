"""The tools that make a plan: ``plans/CONVERSATION.md`` in the block's memory. None of them ends planning."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

import trunkline
from trunkline import ToolError
from trunkline.api.memory import read_text, update_text
from trunkline_planning.plan import PlanDocument, one_line
from trunkline_planning.version import plan_version

StepNumber = Annotated[int, msgspec.Meta(ge=1, le=999)]


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True)
async def enter_plan_mode(here: trunkline.ToolContext, task_description: str, context: str = "") -> str:
    """Begin a plan. From then on you can only read and plan in this conversation, until the owner approves the plan or
    its end. For work that should be agreed on before anything is changed.

    Args:
        task_description: What the plan is for, in a line.
        context: What is known about it so far.
    """
    begun = PlanDocument.new(task_description, context)
    await here.planning.begin()
    await update_text(here.memory, plan_path(here), lambda before: before if _is_open(before) else begun.text)
    return (
        f"Planning: only reading and the plan tools work now. The plan is {plan_path(here)} in memory. Add steps, "
        "files and risks, then present_plan and approve_plan."
    )


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True)
async def add_plan_step(
    context: trunkline.ToolContext,
    step_number: StepNumber,
    title: str,
    description: str = "",
    files_involved: tuple[str, ...] = (),
) -> str:
    """Add a step to the plan, or put another in the place of the one with this number.

    Args:
        step_number: Its place, from 1.
        title: What is done, in a few words.
        description: How, and how one sees that it is done.
        files_involved: The files that it changes or reads.
    """
    files = f" ({', '.join(f'`{one_line(file)}`' for file in files_involved)})" if files_involved else ""
    more = f": {one_line(description)}" if description.strip() else ""
    entry = f"**{one_line(title)}**{more}{files}"
    return await _edit(context, lambda plan: plan.with_step(step_number, entry))


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True)
async def add_plan_file(
    context: trunkline.ToolContext, file_path: str, action: str, description: str = ""
) -> str:
    """Add a file that the plan makes, changes or deletes.

    Args:
        file_path: Its path.
        action: create, modify or delete.
        description: What becomes of it.
    """
    more = f": {one_line(description)}" if description.strip() else ""
    entry = f"`{one_line(file_path)}` ({one_line(action)}){more}"
    return await _edit(context, lambda plan: plan.with_entry("Files", entry))


@trunkline.tool(effect="write", idempotent=True, in_plan_mode=True)
async def add_plan_risk(context: trunkline.ToolContext, risk: str, mitigation: str = "") -> str:
    """Add what may go wrong, and what is done about it.

    Args:
        risk: What may go wrong.
        mitigation: What is done so that it does not, or does no harm.
    """
    more = f" Mitigation: {one_line(mitigation)}" if mitigation.strip() else ""
    entry = f"{one_line(risk)}{more}"
    return await _edit(context, lambda plan: plan.with_entry("Risks", entry))


@trunkline.tool(effect="read", in_plan_mode=True, untrusted_output=True, derived=True)
async def present_plan(context: trunkline.ToolContext) -> str:
    """Return the whole plan, to be shown to the owner, and the version by which approve_plan names it."""
    plan = await open_plan(context)
    if not plan.entries("Steps"):
        raise ToolError("The plan has no steps yet. Add them with add_plan_step.", kind="not_found")
    return f"{plan.text}\nversion: {plan_version(plan.text)}"


@trunkline.tool(effect="read", in_plan_mode=True, untrusted_output=True, derived=True)
async def get_plan_status(context: trunkline.ToolContext) -> dict[str, Any]:
    """Report whether you are planning in this conversation, and how far the plan is."""
    text = await read_text(context.memory, plan_path(context))
    plan = PlanDocument(text)
    return {
        "planning": await context.planning.holds(),
        "plan": plan_path(context) if text else None,
        "title": plan.title if text else None,
        "state": plan.state if text else None,
        "steps": len(plan.entries("Steps")),
        "files": len(plan.entries("Files")),
        "risks": len(plan.entries("Risks")),
    }


def plan_path(context: trunkline.ToolContext) -> str:
    """The path of the conversation's plan in the block's memory."""
    return f"plans/{context.conversation}.md"


async def open_plan(context: trunkline.ToolContext) -> PlanDocument:
    """The plan that is being made. Raises ToolError when there is none."""
    text = await read_text(context.memory, plan_path(context))
    if not _is_open(text):
        raise ToolError("There is no open plan. Begin one with enter_plan_mode.", kind="not_found")
    return PlanDocument(text)


async def _edit(context: trunkline.ToolContext, edit: Callable[[PlanDocument], PlanDocument]) -> str:
    await open_plan(context)
    plan = PlanDocument(
        await update_text(context.memory, plan_path(context), lambda text: edit(PlanDocument(text)).text)
    )
    counts = ", ".join(f"{len(plan.entries(name))} {name.lower()}" for name in ("Steps", "Files", "Risks"))
    return f"Written. The plan has {counts}."


def _is_open(text: str) -> bool:
    return bool(text) and PlanDocument(text).state == "planning"
