"""Identities, permissions and schedules for one call: the operations of gateway and memory, behind the checks that no
tool can skip.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.client import AuthClient
from trunkline.contracts.auth.identity import IdentityRecord, IdentityType
from trunkline.contracts.auth.messages import AccessChecked, AccessToken, PolicyList, PolicyView
from trunkline.contracts.memory.files import DeleteMemory, WriteMemory
from trunkline.contracts.memory.operation import CALL_SECONDS
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_WRITE
from trunkline.contracts.policies.messages import Policy, PolicyEffect
from trunkline.contracts.schedules.paths import SCHEDULE_NAME_RULE, is_schedule_name, schedule_path
from trunkline.contracts.tools.administration import Administration
from trunkline.contracts.tools.messages import CallTool
from trunkline.contracts.tools.tool import ToolInvocation
from trunkline.errors import ToolError, Unavailable, error_kind_for_code
from trunkline.policy import AccessRequest, ActorPermissions, decide
from trunkline.policy.block_access import BLOCK_RESOURCE
from trunkline.policy.turn_permissions import CHANNEL_ACTOR_PREFIX
from trunkline.workers.tools.authorization import CallAuthorizer, agent_subjects
from trunkline.workers.tools.ledger import scope_of
from trunkline_bus import Bus, BusError, RemoteFault

T = TypeVar("T")

TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class CallAdministration(Administration):
    """Identities, permissions and schedules for one call. ``may_change``: the owner has approved that exactly this call
    changes them.
    """

    bus: Bus
    authorizer: CallAuthorizer
    call: CallTool
    may_change: bool = False

    @property
    def is_owner(self) -> bool:
        """See ``Administration.is_owner``. A turn that somebody else steers, or of a token for some blocks, has not all
        of memory, and is not only the owner's.
        """
        by_owner = self.call.actor == OWNER or self.call.actor.startswith(CHANNEL_ACTOR_PREFIX)
        return by_owner and ActorPermissions(self.call.permissions).allows_memory("/", whole=True)

    async def check(self, resource: str, action: str, identity: str = "") -> AccessChecked:
        """See ``Administration.check``."""
        if identity and identity != self.call.actor:
            return await self._answered(self._owner_client().check(identity, resource, action))
        if resource.startswith(BLOCK_RESOURCE):
            return await self._check_block(resource, action)
        subjects = agent_subjects(self.call.block, self.call.actor)
        asked = AccessRequest(
            subjects=subjects, resources=(resource,), action=action, conversation=self.call.conversation
        )
        policies = await self.authorizer.policies(self.call.block)
        decision = decide(asked, policies, datetime.now(UTC), {})
        return AccessChecked(allowed=decision.allowed, asks=decision.asks, why=decision.why, by=decision.by)

    async def _check_block(self, resource: str, action: str) -> AccessChecked:
        """Return whether the caller may use a block: the gateway decides, as it does about the requests of the caller.
        The agent itself uses no block.
        """
        caller = OWNER if self.is_owner else self.call.actor
        client = AuthClient(self.bus, actor=caller, timeout=TIMEOUT)
        return await self._answered(client.check(caller, resource, action))

    async def identities(self) -> tuple[IdentityRecord, ...]:
        """See ``Administration.identities``."""
        return await self._answered(self._owner_client().identities())

    async def policies(self) -> PolicyList:
        """See ``Administration.policies``."""
        return await self._answered(self._owner_client().policies())

    async def tokens(self) -> tuple[AccessToken, ...]:
        """See ``Administration.tokens``."""
        return await self._answered(self._owner_client().tokens())

    async def create_identity(self, id: str, type: IdentityType, display_name: str) -> IdentityRecord:
        """See ``Administration.create_identity``."""
        return await self._answered(self._changing_client().create_identity(id, type, display_name))

    async def grant(
        self, subject: str, action: str, resource: str, *, effect: PolicyEffect = "allow", note: str = ""
    ) -> PolicyView:
        """See ``Administration.grant``."""
        policy = Policy(subject=subject, action=action, resource=resource, effect=effect, note=note)
        return await self._answered(self._changing_client().grant(policy))

    async def revoke(self, policy_id: str) -> PolicyView:
        """See ``Administration.revoke``."""
        return await self._answered(self._changing_client().revoke(policy_id))

    async def save_schedule(self, name: str, text: str) -> None:
        """See ``Administration.save_schedule``."""
        path = self._changed_schedule(name)
        write = WriteMemory(
            path=path,
            content=text,
            actor=self.call.actor,
            reason=f"set the schedule {name} of {self.call.block}",
        )
        await self._answered(
            self.bus.call(MEMORY_WRITE, write, scope=scope_of(self.call), timeout=CALL_SECONDS)
        )

    async def remove_schedule(self, name: str) -> None:
        """See ``Administration.remove_schedule``."""
        path = self._changed_schedule(name)
        delete = DeleteMemory(
            path=path, actor=self.call.actor, reason=f"remove the schedule {name} of {self.call.block}"
        )
        await self._answered(
            self.bus.call(MEMORY_DELETE, delete, scope=scope_of(self.call), timeout=CALL_SECONDS)
        )

    def _changed_schedule(self, name: str) -> str:
        """Return the path of a schedule that this call may change."""
        self._require_approved_owner()
        if not is_schedule_name(name):
            raise ToolError(f"A schedule's name has {SCHEDULE_NAME_RULE}.", kind="invalid_arguments")
        return schedule_path(self.call.block, name)

    def _owner_client(self) -> AuthClient:
        self._require_owner()
        return AuthClient(self.bus, actor=OWNER, timeout=TIMEOUT)

    def _changing_client(self) -> AuthClient:
        self._require_approved_owner()
        return AuthClient(self.bus, actor=OWNER, timeout=TIMEOUT)

    def _require_owner(self) -> None:
        if not self.is_owner:
            raise ToolError(
                "Only the owner may see or change who may enter and what they may do, and what runs on a schedule. "
                "This turn is somebody else's.",
                kind="permission_denied",
            )

    def _require_approved_owner(self) -> None:
        self._require_owner()
        if not self.may_change:
            raise ToolError(
                "Who may enter, what they may do, and what runs on a schedule changes only by a call that the owner "
                "has approved.",
                kind="permission_denied",
            )

    async def _answered(self, reply: Awaitable[T]) -> T:
        try:
            return await reply
        except RemoteFault as fault:
            raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except Unavailable as error:
            raise ToolError("No gateway answers now. Try again later.", kind="unavailable") from error
        except BusError as error:
            raise ToolError("Memory does not answer now. Try again later.", kind="unavailable") from error


def with_administration(invocation: ToolInvocation) -> ToolInvocation:
    """Return the invocation in the form that the tool receives: it may change identities, permissions and schedules
    only with an approval of exactly this call, and only if it declares that it administers.
    """
    own, allowed = invocation.context.administration, invocation.approved == invocation.call_hash
    if not (invocation.spec.administers and allowed and isinstance(own, CallAdministration)):
        return invocation
    return replace(
        invocation, context=replace(invocation.context, administration=replace(own, may_change=True))
    )
