"""The built-in guards of the schema, path, gate and execute stages; ``policy_stage.py`` has the policy stage."""

import logging
from contextlib import suppress
from dataclasses import replace

from trunkline._util.paths import Folder, check_path, is_absolute_path
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.tools.tool import Proceed, Stage, ToolInvocation
from trunkline.errors import ToolError
from trunkline.workers.tools.arguments import prepare_arguments
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.path_locks import invocation_paths

log = logging.getLogger(__name__)


class SchemaStage:
    """Converts the arguments to the types of the tool's schema, or refuses with the error."""

    stage: Stage = "schema"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed with the converted arguments, or raise ToolError."""
        fitting = prepare_arguments(invocation.spec, invocation.arguments)
        return await proceed(replace(invocation, arguments=fitting))


class PathStage:
    """Refuses paths beyond the block's reach, paths through links, and protected names.

    It checks the parameters that the tool declares in ``paths``, after the plugins of the policy stage. The
    tool itself must open files with ``ToolContext.files``, which has the same reach and checks again at the
    moment of opening.
    """

    stage: Stage = "path"

    def __init__(self, permissions: CallAuthorizer) -> None:
        self._permissions = permissions

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise PathRefused, which states the permitted paths."""
        paths = [
            path if is_absolute_path(path) else check_path(path) for path in invocation_paths(invocation)
        ]
        if paths:
            await self._permissions.require(invocation)
            with invocation.context.files() as folder:
                for path in paths:
                    _refuse_links(folder, path)
        return await proceed(invocation)


def _refuse_links(folder: Folder, path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if folder.stat(path).kind == "link":
            raise ToolError(
                f"{path!r} is a symbolic link, which is not followed. Name the file itself.",
                kind="permission_denied",
            )


class QuotaStage:
    """Counts calls that a policy limits to a number of times a day, after all other built-in guards."""

    stage: Stage = "execute"

    def __init__(self, permissions: CallAuthorizer) -> None:
        self._permissions = permissions

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError when the limit is reached."""
        await self._permissions.use_quota(invocation)
        return await proceed(invocation)


class GateStage:
    """Refuses a call that carries the approval of another call. The gatekeeper decides which calls need approval."""

    stage: Stage = "gate"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed, or raise ToolError."""
        if invocation.approved is not None and invocation.approved != invocation.call_hash:
            log.warning("call %s carries an approval of another call", invocation.context.call)
            raise ToolError(
                f"The approval is for another call of {invocation.spec.name}: the tool, its description, its "
                "arguments or the targets of their paths differ. "
                "The call was not run. Call the tool again to ask for approval.",
                kind="conflict",
            )
        return await proceed(invocation)
