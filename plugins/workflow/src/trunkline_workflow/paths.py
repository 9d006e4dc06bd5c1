"""The places of workflows, runs and proposals in a block's memory. Paths are relative to the block's folder."""

FOLDER = "workflows"
"""Only the owner can change what is in it."""

RUNS, PROPOSALS = f"{FOLDER}/runs", "workflow-proposals"


def workflow_path(name: str) -> str:
    """Return the path of a workflow's file."""
    return f"{FOLDER}/{name}.yaml"


def run_path(run: str) -> str:
    """Return the path of the record of a run."""
    return f"{RUNS}/{run}.json"


def proposal_path(name: str) -> str:
    """Return the path of a proposal, which agents may write."""
    return f"{PROPOSALS}/{name}.yaml"
