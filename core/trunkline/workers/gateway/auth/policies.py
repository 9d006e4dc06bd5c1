"""The owner's policies: lists, adds and removes them, and answers what an identity may do by them."""

import re
from datetime import UTC, datetime

import msgspec

from trunkline._util.toml import SettingsFileError
from trunkline.contracts.actors import OWNER
from trunkline.contracts.auth.identity import IdentityRecord
from trunkline.contracts.auth.messages import (
    AccessChecked,
    CheckAccess,
    GrantAccess,
    PolicyList,
    PolicyView,
    RevokeAccess,
)
from trunkline.contracts.memory.files import DeleteMemory, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Policy
from trunkline.errors import ErrorCode
from trunkline.policy import AccessRequest, decide
from trunkline.policy.block_access import BLOCK_ACTIONS, BLOCK_RESOURCE, may_use_block
from trunkline.policy.explanation import describe_policy
from trunkline.policy.validation import find_mistake
from trunkline.runtime.owner_policies import POLICY_FOLDER, parse_policy, read_policy_files
from trunkline.workers.gateway.auth.auth_audit import AuthAudit
from trunkline.workers.gateway.auth.identities import IdentityService
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline_bus import Bus, Refusal, RemoteFault, key_of

MEMORY_TIMEOUT = 10.0
GROUPS = ("*", "type:", "block:")
"""The beginnings of subjects that are no identities."""

PLATFORM_PREFIXES = ("approved-", "planning-", "god-", "host-network-")
"""The beginnings of the ids of policies that other operations write and remove."""

POLICY_ID = r"[a-z0-9][a-z0-9._-]{0,63}"


class PolicyService:
    """Lists, adds and removes policies, and checks access.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, identities: IdentityService, audit: AuthAudit) -> None:
        self._bus = bus
        self._identities = identities
        self._audit = audit

    async def list_policies(self, subject: str | None = None) -> PolicyList:
        """Return the policies by id."""
        found: list[Policy] = []
        unreadable: list[str] = []
        for file in await read_policy_files(self._bus):
            try:
                found.append(parse_policy(file))
            except SettingsFileError:
                unreadable.append(file.path)
        shown = [one for one in found if subject in (None, one.subject)]
        return PolicyList(
            policies=tuple(sorted(shown, key=lambda one: one.id)), unreadable=tuple(sorted(unreadable))
        )

    async def grant(self, request: GrantAccess) -> PolicyView:
        """Add a policy. Refused with ``invalid_request`` if it would never apply, with ``not_found`` if its subject is
        no identity, and with ``conflict`` if its id is in use or its subject was revoked.
        """
        policy = await self.checked(request)
        path = f"{POLICY_FOLDER}/{policy.id}.json"
        stored = msgspec.structs.replace(policy, id="")  # the file's name is the id
        text = msgspec.json.format(msgspec.json.encode(stored), indent=2).decode() + "\n"
        says = describe_policy(policy)
        change = WriteManyMemory(
            files={path: text}, expected={path: ""}, actor=request.actor, reason=f"granted: {says}"
        )
        try:
            await self._bus.call(MEMORY_WRITE_MANY, change, timeout=MEMORY_TIMEOUT)
        except RemoteFault as fault:
            if fault.code != "write_conflict":
                raise
            raise refusal(ErrorCode.CONFLICT, f"There is a policy {policy.id} already.") from fault
        await self._audit.record("access_granted", request.actor, f"{policy.id}: {says}.")
        return PolicyView(policy=policy, says=says)

    async def revoke(self, request: RevokeAccess) -> PolicyView:
        """Remove a policy. Refused with ``not_found``."""
        found = next((one for one in (await self.list_policies()).policies if one.id == request.id), None)
        if found is None:
            raise refusal(ErrorCode.NOT_FOUND, f"There is no policy {request.id!r}.")
        says = describe_policy(found)
        change = DeleteMemory(
            path=f"{POLICY_FOLDER}/{found.id}.json", actor=request.actor, reason=f"revoked: {says}"
        )
        await self._bus.call(MEMORY_DELETE, change, timeout=MEMORY_TIMEOUT)
        await self._audit.record("access_revoked", request.actor, f"{found.id}: {says}.")
        return PolicyView(policy=found, says=says)

    async def check(self, request: CheckAccess) -> AccessChecked:
        """Return whether an identity may do something: a denial wins, what nothing permits is refused, and an identity
        that is unknown or not active may do nothing.
        """
        try:
            identity = await self._identities.get(request.identity)
        except Refusal:
            return AccessChecked(allowed=False, why=f"There is no identity {request.identity!r}.")
        if identity.status != "active":
            return AccessChecked(allowed=False, why=f"{identity.id} is {identity.status}.")
        if identity.id == OWNER:
            return AccessChecked(allowed=True, why="The owner may do everything.")
        listed = await self.list_policies()
        if listed.unreadable:
            why = f"A policy cannot be read, so nothing is permitted: {listed.unreadable[0]}."
            return AccessChecked(allowed=False, why=why)
        return _decided(identity, request, listed.policies)

    async def checked(self, request: GrantAccess) -> Policy:
        """Return the policy as it would be stored, with its id and its author. Refused as ``grant`` is, besides for an
        id in use.
        """
        given = request.policy
        if (mistake := find_mistake(given)) is not None:
            raise InvalidField((mistake.field,), mistake.problem)
        if not given.subject.startswith(GROUPS):
            await self._require_not_revoked(given.subject)
        id = given.id or f"granted-{key_of(given.subject, given.resource, given.action, given.effect)[:16]}"
        if re.fullmatch(POLICY_ID, id) is None or id.startswith(PLATFORM_PREFIXES):
            raise InvalidField(("id",), f"{id!r} cannot be the id of a policy here.")
        return msgspec.structs.replace(given, id=id, created=datetime.now(UTC), created_by=request.actor)

    async def _require_not_revoked(self, id: str) -> None:
        """Refuse what would never count: a revoked identity may do nothing, for good."""
        if (await self._identities.get(id)).status == "revoked":
            raise refusal(ErrorCode.CONFLICT, f"{id!r} was revoked, which is final. Create another identity.")


def _decided(identity: IdentityRecord, request: CheckAccess, policies: tuple[Policy, ...]) -> AccessChecked:
    now = datetime.now(UTC)
    if request.resource.startswith(BLOCK_RESOURCE):
        block = request.resource.removeprefix(BLOCK_RESOURCE)
        if request.action not in BLOCK_ACTIONS:
            return AccessChecked(allowed=False, why=f"In a block one may {', '.join(BLOCK_ACTIONS)}.")
        allowed = may_use_block(identity.id, identity.type, request.action, block, policies, now)
        why = (
            "a policy shares the block for that."
            if allowed
            else "no policy shares the block for that, or one denies it."
        )
        return AccessChecked(allowed=allowed, why=why)
    subjects = frozenset({"*", identity.id, f"type:{identity.type}"})
    asked = AccessRequest(subjects=subjects, resources=(request.resource,), action=request.action)
    decision = decide(asked, policies, now, {})
    return AccessChecked(allowed=decision.allowed, asks=decision.asks, why=decision.why, by=decision.by)
