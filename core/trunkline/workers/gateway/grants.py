"""Lasting approvals: policies in memory, bound to a tool and the shape of its arguments.

The author of a grant is the person who decided. Agents cannot write the folder of the grants.
"""

from datetime import UTC, datetime

import msgspec

from trunkline.contracts.approvals.messages import GrantList
from trunkline.contracts.auth.scopes import TokenScope
from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.memory.files import DeleteMemory, ListMemory, ReadManyMemory, WriteManyMemory
from trunkline.contracts.memory.history import MemoryHistory
from trunkline.contracts.memory.subjects import (
    MEMORY_DELETE,
    MEMORY_HISTORY,
    MEMORY_LIST,
    MEMORY_READ_MANY,
    MEMORY_WRITE_MANY,
)
from trunkline.contracts.policies.messages import Conditions, Policy
from trunkline.contracts.turns.journal_messages import ApprovalAsked
from trunkline.contracts.turns.messages import ApprovalDecided
from trunkline.errors import ErrorCode
from trunkline.runtime.block_access import BlockAccess
from trunkline.workers.gateway.errors import InvalidField, refusal
from trunkline.workers.gateway.sender import Sender
from trunkline.workers.gateway.turn_lookup import TurnState
from trunkline_bus import Bus, RemoteFault, key_of

FOLDER = "policies"
ID_PREFIX = "approved-"
"""The beginning of the ids of these policies. The owner wrote the other files of the folder; they are never
revoked here."""

MEMORY_TIMEOUT = 10.0
AT_ONCE = 200


class GrantStore:
    """Writes, lists and revokes grants.

    Methods raise Refusal with a fixed code, and BusError when memory does not answer.
    """

    def __init__(self, bus: Bus, access: BlockAccess) -> None:
        self._bus = bus
        self._access = access

    def policy_for(self, decision: ApprovalDecided, state: TurnState, record: ApprovalAsked) -> Policy | None:
        """Return the policy that a decision creates; None for a decision about a single call.

        Raises InvalidField when the call has no shape, so that it can only be allowed once.
        """
        if not decision.allow or decision.scope == "once":
            return None
        detail, request = record.detail, state.request
        call = state.call(decision.call)
        if isinstance(detail, msgspec.UnsetType) or not detail.shape or call is None:
            raise InvalidField(("scope",), "This can only be allowed once.")
        conversation = request.conversation if decision.scope == "conversation" else None
        tool = detail.tool or call.name
        return Policy(
            id=ID_PREFIX + key_of(request.block, tool, detail.shape, conversation or "")[:16],
            subject=f"block:{request.block}",
            resource=f"tool:{tool}",
            action=detail.effect or "*",
            effect="allow",
            conditions=Conditions(shape=detail.shape, conversation=conversation),
            note=detail.covers,
            created=utc_now(),
            created_by=decision.by,
        )

    async def write(self, grant: Policy) -> None:
        """Write a grant. An existing one stays as it is."""
        if await self._find(grant.id):
            return
        text = msgspec.json.format(msgspec.json.encode(grant), indent=2).decode() + "\n"
        request = WriteManyMemory(
            files={_path(grant.id): text}, actor=grant.created_by, reason=f"allowed: {grant.note}"
        )
        await self._bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)

    async def write_missed(self, grant: Policy, request: ApprovalAsked) -> None:
        """Write a grant unless its file changed after the question was asked.

        A gateway that crashed after recording the decision has not written the grant. Repeating the decision must not
        restore a grant that was revoked since.
        """
        since = (
            datetime.min.replace(tzinfo=UTC)
            if isinstance(request.asked_at, msgspec.UnsetType)
            else request.asked_at
        )
        changed = await self._changed(grant.id)
        # history has whole seconds: in doubt the grant counts as revoked, and the person is asked again
        if changed is None or changed < since.replace(microsecond=0):
            await self.write(grant)

    async def _changed(self, id: str) -> datetime | None:
        """Return the time of the last change of a grant; None when the grant never existed."""
        request = MemoryHistory(path=_path(id), limit=1)
        try:
            changes = (
                await self._bus.call(MEMORY_HISTORY, request, timeout=MEMORY_TIMEOUT, repeatable=True)
            ).changes
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return None
            raise
        return changes[0].timestamp if changes else None

    async def list_grants(self, sender: Sender) -> GrantList:
        """Return the grants of the blocks that the sender may read, oldest first."""
        rights = await self._access.rights_of(sender.identity)
        try:
            listing = await self._bus.call(MEMORY_LIST, ListMemory(path=FOLDER), timeout=MEMORY_TIMEOUT)
        except RemoteFault as fault:
            if fault.code == ErrorCode.NOT_FOUND:
                return GrantList(grants=())
            raise
        names = (entry.path.rpartition("/")[2] for entry in listing.entries)
        ids = [name.removesuffix(".json") for name in names if name.startswith(ID_PREFIX)]
        found = [
            grant
            for id in ids
            for grant in await self._find(id)
            if rights.may(TokenScope.READ, grant.subject.removeprefix("block:"))
        ]
        return GrantList(grants=tuple(sorted(found, key=lambda grant: (str(grant.created), grant.id))))

    async def revoke(self, id: str, sender: Sender) -> None:
        """Revoke a grant. Refused with ``not_found``, and with ``forbidden`` for anyone but the owner with a token for
        all blocks."""
        owner = sender.require_administrator("revokes grants")
        if not id.startswith(ID_PREFIX) or not await self._find(id):
            raise refusal(
                ErrorCode.NOT_FOUND,
                f"There is no grant {id!r}. trunkline approvals granted lists the grants.",
            )
        request = DeleteMemory(path=_path(id), actor=owner, reason="no longer allowed")
        await self._bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)

    async def _find(self, id: str) -> list[Policy]:
        request = ReadManyMemory(paths=(_path(id),))
        files = (
            await self._bus.call(MEMORY_READ_MANY, request, timeout=MEMORY_TIMEOUT, repeatable=True)
        ).files
        try:
            return [
                msgspec.structs.replace(msgspec.json.decode(file.content.encode(), type=Policy), id=id)
                for file in files
            ]
        except msgspec.MsgspecError:
            return []  # a file that cannot be decoded grants nothing; the tools report it


def _path(id: str) -> str:
    return f"{FOLDER}/{id}.json"
