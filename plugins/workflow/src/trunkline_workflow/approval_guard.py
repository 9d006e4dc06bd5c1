"""The gate before the tools that always need a person, whatever the policies permit."""

import trunkline
from trunkline import ToolError
from trunkline.api.memory import read_text
from trunkline.api.tool import Proceed, Stage, ToolInvocation
from trunkline_workflow.definition import text_hash
from trunkline_workflow.paths import workflow_path
from trunkline_workflow.tools import check_proposal, propose_workflow, workflow_approval


class PersonDecides:
    """Asks a person about each approval step and each proposal.

    An approval is refused, before and after it is asked for, if the workflow's file is not the one that the question
    says. The run then asks again, and the question says what was changed.
    """

    stage: Stage = "gate"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> trunkline.ToolOutcome:
        """Raises ToolError."""
        spec = invocation.spec
        if not spec.source.startswith("native:"):
            return await proceed(invocation)
        if spec.name == workflow_approval.spec.name:
            await _require_known_file(invocation)
        elif spec.name == propose_workflow.spec.name:
            check_proposal(str(invocation.arguments["name"]), str(invocation.arguments["definition"]))
        else:
            return await proceed(invocation)
        if invocation.approved == invocation.call_hash:
            return await proceed(invocation)
        return trunkline.ToolOutcome(
            call=invocation.context.call,
            status="approval",
            call_hash=invocation.call_hash,
            question=_question(invocation),
        )


def _question(invocation: ToolInvocation) -> str:
    arguments, block = invocation.arguments, invocation.context.block
    if invocation.spec.name == propose_workflow.spec.name:
        return f"The agent of block {block} proposes the workflow {arguments['name']}. Keep the proposal?"
    return f"The workflow {arguments['workflow']} of block {block} waits at the step {arguments['step']}. Continue?"


async def _require_known_file(invocation: ToolInvocation) -> None:
    """Raise ToolError if the workflow's file has changed to what the question does not say. A file that is gone changes
    no run."""
    arguments = invocation.arguments
    text = await read_text(invocation.context.memory, workflow_path(str(arguments["workflow"])))
    now = text_hash(text)
    if not text or now in (arguments["sha256"], arguments.get("changed_to")):
        return
    raise ToolError(
        f"changed_to={now} The file of the workflow {arguments['workflow']} was changed since this run began, so the "
        "step was not approved.",
        kind="conflict",
    )
