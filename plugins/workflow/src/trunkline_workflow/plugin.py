"""The plugin: declares its parts and nothing else."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trunkline
from trunkline.api.hooks import WorkerKind
from trunkline.api.model import ModelAdapter
from trunkline.api.tool import ToolMiddleware

if TYPE_CHECKING:
    import click

    from trunkline.api.gateway import HttpRoute
    from trunkline_workflow.http_routes import WorkflowRoutes


class WorkflowPlugin:
    """Declares the parts of workflows. Every worker has its own instance."""

    def __init__(self) -> None:
        self._routes: WorkflowRoutes | None = None

    def _http(self) -> "WorkflowRoutes":
        """Return the routes that lifespan and gateway share."""
        from trunkline_workflow.http_routes import WorkflowRoutes

        self._routes = self._routes or WorkflowRoutes()
        return self._routes

    @trunkline.hookimpl
    def trunkline_models(self) -> Iterable[ModelAdapter]:
        """The adapter that answers the turns of runs."""
        from trunkline_workflow.adapter import WorkflowAdapter

        return [WorkflowAdapter()]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Iterable[trunkline.Tool]:
        """Approval, wait and proposal."""
        from trunkline_workflow import tools

        return [tools.workflow_approval, tools.workflow_wait, tools.propose_workflow]

    @trunkline.hookimpl
    def trunkline_tool_middleware(self) -> Iterable[ToolMiddleware]:
        """A person decides about approval steps and proposals."""
        from trunkline_workflow.approval_guard import PersonDecides

        return [PersonDecides()]

    @trunkline.hookimpl
    def trunkline_commands(self) -> "Iterable[click.Command]":
        """``trunkline workflows``."""
        from trunkline_workflow.commands import workflows

        return [workflows]

    @trunkline.hookimpl
    def trunkline_lifespan(self, worker: WorkerKind) -> Iterable[trunkline.Lifespan]:
        """The connection of the routes, in every gateway."""
        return [self._http().lifespan] if worker == "gateway" else []

    @trunkline.hookimpl
    def trunkline_http_routes(self) -> "Iterable[HttpRoute]":
        """``/x/trunkline-workflow``: workflows and runs for the web app."""
        return self._http().routes()
