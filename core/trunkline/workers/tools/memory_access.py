"""What of memory a call may reach while it runs, whatever way its tool goes there."""

from trunkline.contracts.memory.authorization import AuthorizingTransport
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.tool import Proceed, Stage, ToolInvocation
from trunkline.errors import ToolError
from trunkline.policy import ActorPermissions
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.memory_requests import memory_paths_of, normal_path


class MemoryAccess:
    """Asks the policies about each path. One that a person must approve first is open when the call named it, because
    then the gate has asked about it; ``named`` is told once the gates are passed."""

    def __init__(self, permissions: CallAuthorizer, call: CallTool) -> None:
        self._permissions = permissions
        self._call = call
        self._given = ActorPermissions(call.permissions)
        self._named: frozenset[tuple[str, bool]] = frozenset()
        self._writes = False

    def allow_named(self, paths: frozenset[tuple[str, bool]], *, writes: bool) -> None:
        """These were asked about, with all below them or without; to be read, or to be written too."""
        self._named, self._writes = paths, writes

    async def __call__(self, path: str, action: str, whole: bool) -> None:
        """Raises ToolError when the path may not be read or written."""
        where = normal_path(path)
        if not self._given.allows_memory(where, whole):
            raise ToolError(
                f"The permissions of this request do not include {where} in memory.", kind="permission_denied"
            )
        decision = await self._permissions.decide_memory(self._call, path, action, whole)
        answered = (where, True) in self._named or (not whole and (where, False) in self._named)
        if decision.allowed and (not decision.asks or (answered and (self._writes or action == "read"))):
            return
        why = "a person would have to approve it first." if decision.asks else decision.why
        raise ToolError(
            f"{where} may not be {'read' if action == 'read' else 'written'} here: {why}",
            kind="permission_denied",
        )


class MemoryStage:
    """Opens to a call what the gates have let through. Refuses nothing."""

    stage: Stage = "execute"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Proceed."""
        transport = invocation.context.memory.transport
        if isinstance(transport, AuthorizingTransport) and isinstance(transport.check_access, MemoryAccess):
            writes = invocation.spec.effect != "read"
            transport.check_access.allow_named(frozenset(memory_paths_of(invocation)), writes=writes)
        return await proceed(invocation)
