"""``trunkline workflows``: what is installed, what runs, and what waits for a person. One module a verb."""

import click

from trunkline.api.cli import LazyGroup

EXAMPLES = """
trunkline workflows list
trunkline workflows run deploy-app --input version=1.4
trunkline workflows show last
trunkline workflows approve last
"""

VERBS: dict[str, str] = {
    "list": "List the workflows of a block, or its runs.",
    "check": "Check a workflow, and name each mistake with its line.",
    "install": "Install a workflow from a file, or one that an agent proposed.",
    "run": "Begin a run.",
    "show": "Show a workflow or a run, also as a drawing.",
    "approve": "Approve the step at which a run waits.",
    "deny": "Reject the step at which a run waits.",
    "cancel": "End a run.",
    "migrate": "Continue a run with the changed file of its workflow.",
    "logs": "Show what a run has done, call by call.",
    "schema": "Print the JSON schema of workflows, for editors.",
}


@click.group("workflows", cls=LazyGroup, package=__name__, table=VERBS, examples=EXAMPLES)
def workflows() -> None:
    """Run workflows: steps in a YAML file that call tools, ask for approval and decide."""
