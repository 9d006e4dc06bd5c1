"""Plan mode that an agent has started: denials for one conversation, stored among the owner's policies in memory.

Agents cannot write these policies directly. They only forbid, so starting plan mode needs no approval. Ending it
needs a person's approval, and it never expires. The owner sees these files and may delete them.
"""

from dataclasses import replace

import msgspec

from trunkline.contracts.conversations.messages import utc_now
from trunkline.contracts.memory.files import DeleteMemory, WriteManyMemory
from trunkline.contracts.memory.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.contracts.policies.messages import Conditions, Policy
from trunkline.contracts.tools.messages import CallTool
from trunkline.contracts.tools.planning import Planning
from trunkline.contracts.tools.tool import ToolInvocation
from trunkline.errors import ToolError, error_kind_for_code
from trunkline.runtime.guard_cache import GuardCache
from trunkline.runtime.owner_policies import POLICY_FOLDER, OwnerPolicies
from trunkline_bus import Bus, BusError, RemoteFault, key_of

MEMORY_TIMEOUT = 10.0
"""Seconds to wait for a reply of memory."""

PLATFORM_ACTOR = "trunkline"
"""The author in memory's history: the platform, at an agent's request."""

POLICY_ID_PREFIX = "planning-"
"""The prefix of the ids of these policies."""

DENIED_ACTIONS = {"make": "write:make", "send": "send", "run": "exec:run", "agent": "write:agent"}
"""The denied actions, by the last part of the policy's id."""


class CallPlanning(Planning):
    """Plan mode in the conversation of one call. ``may_end``: a person has approved that this call ends plan mode."""

    def __init__(
        self, bus: Bus, owner_policies: GuardCache[OwnerPolicies], call: CallTool, *, may_end: bool = False
    ) -> None:
        self._bus = bus
        self._owner_policies = owner_policies
        self._call = call
        self._may_end = may_end

    def allowing_end(self) -> "CallPlanning":
        """Return a copy for a call that may end plan mode."""
        return CallPlanning(self._bus, self._owner_policies, self._call, may_end=True)

    async def begin(self) -> None:
        """See ``Planning.begin``."""
        if await self.holds():
            return
        files = {_path(id): _text(self._policy(id, action)) for id, action in self._ids().items()}
        request = WriteManyMemory(
            files=files, actor=PLATFORM_ACTOR, reason="the agent plans in this conversation"
        )
        try:
            await self._bus.call(MEMORY_WRITE_MANY, request, timeout=MEMORY_TIMEOUT)
        except BusError as error:
            raise ToolError(
                "Planning could not be started: memory does not answer. Try again.", kind="unavailable"
            ) from error
        self._owner_policies.clear()

    async def end(self) -> None:
        """See ``Planning.end``."""
        if not self._may_end:
            raise ToolError(
                "Only a person can end planning, by approving the call that asks for it. Planning continues.",
                kind="permission_denied",
            )
        existing = {policy.id for policy in await self._owner_policies.get(POLICY_FOLDER)}
        for id in existing & self._ids().keys():
            await self._delete(id)
        self._owner_policies.clear()

    async def holds(self) -> bool:
        """See ``Planning.holds``."""
        rules = await self._owner_policies.get(POLICY_FOLDER)
        return self._ids().keys() <= {one.id for one in rules if one.conditions.until is None}

    async def _delete(self, id: str) -> None:
        request = DeleteMemory(
            path=_path(id), actor=PLATFORM_ACTOR, reason="a person approved the end of planning"
        )
        try:
            await self._bus.call(MEMORY_DELETE, request, timeout=MEMORY_TIMEOUT)
        except RemoteFault as fault:
            if fault.code != "not_found":
                raise ToolError(fault.message, kind=error_kind_for_code(fault.code)) from fault
        except BusError as error:
            raise ToolError(
                "Planning could not be ended: memory does not answer. Try again.", kind="unavailable"
            ) from error

    def _ids(self) -> dict[str, str]:
        key = key_of("planning", self._call.block, self._call.conversation)[:16]
        return {f"{POLICY_ID_PREFIX}{key}-{name}": action for name, action in DENIED_ACTIONS.items()}

    def _policy(self, id: str, action: str) -> Policy:
        return Policy(
            id=id,
            subject=f"block:{self._call.block}",
            resource="tool:*",
            action=action,
            effect="deny",
            conditions=Conditions(conversation=self._call.conversation),
            note="The agent plans in this conversation; approve its plan, or delete this file, and it works again.",
            created=utc_now(),
            created_by=PLATFORM_ACTOR,
        )


def with_planning_end(invocation: ToolInvocation) -> ToolInvocation:
    """Return the invocation in the form that the tool receives.

    Plan mode ends only with an approval of exactly this call, and only by a tool that declares that it ends planning.
    """
    planning, allowed = invocation.context.planning, invocation.approved == invocation.call_hash
    if not (invocation.spec.ends_planning and allowed and isinstance(planning, CallPlanning)):
        return invocation
    return replace(invocation, context=replace(invocation.context, planning=planning.allowing_end()))


def _path(id: str) -> str:
    return f"{POLICY_FOLDER}/{id}.json"


def _text(policy: Policy) -> str:
    return msgspec.json.format(msgspec.json.encode(policy), indent=2).decode() + "\n"
