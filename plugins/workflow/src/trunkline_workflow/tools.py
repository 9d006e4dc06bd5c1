"""The tools of workflows: a person's approval of a step, a wait, and the proposal of a workflow."""

from datetime import UTC, datetime

import anyio

import trunkline
from trunkline import ToolError
from trunkline.api.memory import utc_now
from trunkline_workflow.definition import NAME, DefinitionError, parse_definition
from trunkline_workflow.paths import proposal_path

MAX_WAIT = 86_400.0
"""The longest wait of one call in seconds."""


@trunkline.tool(effect="read", in_plan_mode=True)
async def workflow_approval(
    workflow: str, step: str, message: str, run: str, sha256: str, changed_to: str = ""
) -> str:
    """Ask the owner to approve a step of a workflow. Runs of workflows call it; it is of no other use.

    Args:
        workflow: The workflow's name.
        step: The step's id.
        message: What the owner decides about.
        run: The run's id.
        sha256: The hash of the definition that the run began with.
        changed_to: The hash of the workflow's file, if the owner is told that it was changed since.
    """
    return "approved"


@workflow_approval.previewer
async def _preview_approval(
    workflow: str, step: str, message: str, run: str, sha256: str, changed_to: str = ""
) -> trunkline.ApprovalDetail:
    return trunkline.preview("message", approval_text(workflow, step, message, run, changed_to))


def approval_text(workflow: str, step: str, message: str, run: str, changed_to: str) -> str:
    """Return what the owner is shown."""
    text = f"Workflow {workflow}, step {step}, run {run}:\n\n{message}"
    if not changed_to:
        return text
    return (
        f"{text}\n\nThe file {workflow}.yaml was changed since this run began (it has the hash {changed_to[:12]} now). "
        "To approve continues the run with the definition that it began with. "
        f"trunkline workflows migrate {run} continues it with the changed file instead."
    )


@trunkline.tool(effect="read", timeout=MAX_WAIT + 60, in_plan_mode=True)
async def workflow_wait(until: str) -> str:
    """Wait until a time, for a day at most. Runs of workflows call it.

    Args:
        until: The time in ISO 8601 with its offset from UTC.
    """
    try:
        at = datetime.fromisoformat(until)
    except ValueError as error:
        raise ToolError(f"{until!r} is no time in ISO 8601.", kind="invalid_arguments") from error
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    seconds = (at - utc_now()).total_seconds()
    if seconds > MAX_WAIT:
        raise ToolError(f"{until} is more than a day away. Nothing was waited for.", kind="invalid_arguments")
    await anyio.sleep(max(0.0, seconds))
    return f"It is {until}."


@trunkline.tool(effect="write", idempotent=True, unbound_params=())
async def propose_workflow(context: trunkline.ToolContext, name: str, definition: str) -> str:
    """Propose a workflow to the owner: steps that run tools, ask for approval and decide. The owner is shown the exact
    text, and only the owner can install it.

    Args:
        name: The workflow's name, as the definition has it.
        definition: The whole YAML file: name, description, and steps with id, type (action, approval, conditional),
            action, args, next, on_approve, on_reject. Values of earlier steps are written as {{ steps.ID.field }}.
    """
    check_proposal(name, definition)
    path = proposal_path(name)
    await context.memory.write(path, definition)
    return (
        f"The owner saw the proposal {name}. Only a person can install it: trunkline workflows install {name}"
    )


@propose_workflow.previewer
async def _preview_proposal(
    context: trunkline.ToolContext, name: str, definition: str
) -> trunkline.ApprovalDetail:
    return trunkline.preview("message", definition)


def check_proposal(name: str, definition: str) -> None:
    """Raise ToolError if the text is no workflow of this name, or is longer than a person is shown at once."""
    if not NAME.fullmatch(name):
        raise ToolError(f"{name!r} cannot be the name of a workflow.", kind="invalid_arguments")
    try:
        found = parse_definition(definition)
    except DefinitionError as error:
        problems = "\n".join(map(str, error.problems))
        raise ToolError(
            f"This is no workflow. Nothing was proposed.\n{problems}", kind="invalid_arguments"
        ) from error
    if found.name != name:
        raise ToolError(
            f"The definition has the name {found.name!r}, not {name!r}. Nothing was proposed.",
            kind="invalid_arguments",
        )
    if left_out := trunkline.preview("message", definition).left_out:
        raise ToolError(
            f"The definition is {left_out} characters longer than a person is shown at once. Divide the workflow.",
            kind="too_large",
        )
