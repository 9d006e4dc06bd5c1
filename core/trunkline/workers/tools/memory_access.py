"""Checks every access of a running call to memory, through every way that a tool has."""

from trunkline.contracts.memory.authorization import AuthorizingTransport
from trunkline.contracts.tools.messages import CallTool, ToolOutcome
from trunkline.contracts.tools.tool import Proceed, Stage, ToolInvocation
from trunkline.errors import ToolError
from trunkline.policy import ActorPermissions
from trunkline.workers.tools.authorization import CallAuthorizer
from trunkline.workers.tools.memory_requests import memory_paths_of, normal_path


class MemoryAccess:
    """Checks each path against the policies.

    A path that needs approval is open if the call named it in its arguments, because the gate has then asked about
    it. ``MemoryStage`` calls ``allow_named`` after the gates have passed.
    """

    def __init__(self, permissions: CallAuthorizer, call: CallTool) -> None:
        self._permissions = permissions
        self._call = call
        self._given = ActorPermissions(call.permissions)
        self._named: frozenset[tuple[str, bool]] = frozenset()
        self._writes = False

    def allow_named(self, paths: frozenset[tuple[str, bool]], *, writes: bool) -> None:
        """Open these paths, alone or with everything below them, for reading or also for writing."""
        self._named, self._writes = paths, writes

    async def __call__(self, path: str, action: str, whole: bool) -> None:
        """Raise ToolError when the path may not be read or written."""
        where = normal_path(path)
        if not self._given.allows_memory(where, whole):
            raise ToolError(
                f"The permissions of this request do not include {where} in memory.", kind="permission_denied"
            )
        decision = await self._permissions.decide_memory(self._call, path, action, whole)
        approved = (where, True) in self._named or (not whole and (where, False) in self._named)
        if decision.allowed and (not decision.asks or (approved and (self._writes or action == "read"))):
            return
        why = "a person must approve it first." if decision.asks else decision.why
        raise ToolError(
            f"{where} may not be {'read' if action == 'read' else 'written'} here: {why}",
            kind="permission_denied",
        )


class MemoryStage:
    """Opens the paths that the call names, after the gates have passed. Refuses nothing."""

    stage: Stage = "execute"

    async def __call__(self, invocation: ToolInvocation, proceed: Proceed) -> ToolOutcome:
        """Open the named paths and proceed."""
        transport = invocation.context.memory.transport
        if isinstance(transport, AuthorizingTransport) and isinstance(transport.check_access, MemoryAccess):
            writes = invocation.spec.effect != "read"
            transport.check_access.allow_named(frozenset(memory_paths_of(invocation)), writes=writes)
        return await proceed(invocation)
