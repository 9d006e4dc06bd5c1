"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.model import ModelAdapter
from trunkline.api.tool import ToolMiddleware

if TYPE_CHECKING:
    import click


@trunkline.hookimpl
def trunkline_models() -> Iterable[ModelAdapter]:
    """The adapter that answers the turns of runs."""
    from trunkline_workflow.adapter import WorkflowAdapter

    return [WorkflowAdapter()]


@trunkline.hookimpl
def trunkline_tools() -> Iterable[trunkline.Tool]:
    """Approval, wait and proposal."""
    from trunkline_workflow import tools

    return [tools.workflow_approval, tools.workflow_wait, tools.propose_workflow]


@trunkline.hookimpl
def trunkline_tool_middleware() -> Iterable[ToolMiddleware]:
    """A person decides about approval steps and proposals."""
    from trunkline_workflow.approval_guard import PersonDecides

    return [PersonDecides()]


@trunkline.hookimpl
def trunkline_commands() -> "Iterable[click.Command]":
    """``trunkline workflows``."""
    from trunkline_workflow.commands import workflows

    return [workflows]
