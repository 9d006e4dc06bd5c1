"""Creates the context of a tool for one call: workspace, services, sandbox, and the reach of its files."""

from functools import partial

from trunkline._util.paths import open_beneath
from trunkline.config import Config
from trunkline.contracts.tools.messages import ToolSpec
from trunkline.contracts.tools.tool import ToolContext
from trunkline.home.paths import Home, make_folder
from trunkline.policy import ActorPermissions
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.call_registry import ActiveCall
from trunkline.workers.tools.call_services import CallServices
from trunkline.workers.tools.path_scopes import reach_of
from trunkline.workers.tools.sandboxes import CallSandbox, SandboxSelector


class ToolContextFactory:
    """Creates a ``ToolContext`` for each call."""

    def __init__(
        self,
        config: Config,
        home: Home,
        authorizer: CallAuthorizer,
        sandboxes: SandboxSelector,
        services: CallServices,
    ) -> None:
        self._config = config
        self._home = home
        self._authorizer = authorizer
        self._sandboxes = sandboxes
        self._services = services

    async def make(self, run: ActiveCall, spec: ToolSpec) -> ToolContext:
        """Create the context of a call.

        Raises:
          TrunklineError: the workspace cannot be created.
          ToolError: the policies that limit the call cannot be read.
        """
        call, services = run.call, self._services
        workspace = self._home.workspace(call.block)
        make_folder(workspace)
        memory = services.memory(call)
        reach = reach_of(await self._authorizer.path_scopes(spec, call), self._config, self._home)
        files = partial(open_beneath, workspace, reach)
        bounds = partial(self._authorizer.program_bounds, call)
        return ToolContext(
            block=call.block,
            conversation=call.conversation,
            turn=call.turn,
            call=call.call,
            actor=call.actor,
            workspace=workspace,
            memory=memory,
            report=run.report,
            load=run.load,
            derived=run.mark_derived,
            resumed=run.resumed,
            model=services.model(call),
            abilities=services.abilities(call),
            documents=services.documents(call, files, memory),
            sandbox=CallSandbox(
                self._sandboxes, f"{call.block} {call.call}", bounds, tool=spec.name, output=run.output
            ),
            reach=reach,
            person=services.person(run, spec),
            planning=services.planning(call),
            outgoing=services.outgoing(run),
            agents=services.agents(run, spec),
            administration=services.administration(call),
            permissions=ActorPermissions(call.permissions),
        )
