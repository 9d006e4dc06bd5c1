"""Planning that an agent has bound itself to: denials for one conversation, among the owner's policies in memory.

Agents cannot write there. What is written here only ever forbids, so beginning needs nobody; ending does. The owner
sees these files, and may delete them.
"""

from datetime import timedelta

import msgspec

from trunkline.abc.planning import Planning
from trunkline.errors import ToolError
from trunkline.messages.conversation import now
from trunkline.messages.memory import DeleteMemory, WriteManyMemory
from trunkline.messages.policies import Conditions, Policy
from trunkline.messages.tools import CallTool
from trunkline.subjects import MEMORY_DELETE, MEMORY_WRITE_MANY
from trunkline.tools.remembered import Remembered
from trunkline.tools.rules import FOLDER, Rules
from trunkline_bus import Bus, BusError, RemoteFault, key_of

SECONDS = 10.0

BY = "trunkline"
"""Whom history names: the platform, at an agent's wish."""

PREFIX = "planning-"
"""How the ids of these policies begin."""

KEPT = timedelta(days=90)
"""For how long it holds after the plan was last worked on: nobody comes back to every conversation."""

DENIED = {"make": "write:make", "send": "send", "run": "exec:run"}
"""What nobody does who only plans, by the last part of a policy's id."""


class CallPlanning(Planning):
    """Planning in the conversation of one call."""

    def __init__(self, bus: Bus, rules: Remembered[Rules], call: CallTool) -> None:
        self._bus = bus
        self._rules = rules
        self._call = call

    async def begin(self) -> None:
        """See ``Planning.begin``."""
        if await self.holds(for_long=True):
            return
        files = {_path(id): _text(self._policy(id, action)) for id, action in self._ids().items()}
        wish = WriteManyMemory(files=files, actor=BY, reason="the agent plans in this conversation")
        try:
            await self._bus.call(MEMORY_WRITE_MANY, wish, timeout=SECONDS)
        except BusError as error:
            raise ToolError("Planning could not be begun: memory does not take it. Try again.") from error
        await self._rules.renew()

    async def end(self) -> None:
        """See ``Planning.end``."""
        if self._call.approved is None:
            raise ToolError(
                "Only a person ends planning, by approving the call that asks for it. It goes on."
            )
        held = {policy.id for policy in await self._rules.of(FOLDER)}
        for id in held & self._ids().keys():
            await self._delete(id)
        await self._rules.renew()

    async def holds(self, *, for_long: bool = False) -> bool:
        """See ``Planning.holds``; with ``for_long`` also for half of the time that it is kept from the beginning."""
        then = now() + (KEPT / 2 if for_long else timedelta())
        rules = await self._rules.of(FOLDER)
        lasting = {one.id for one in rules if one.conditions.until is None or one.conditions.until > then}
        return self._ids().keys() <= lasting

    async def _delete(self, id: str) -> None:
        wish = DeleteMemory(path=_path(id), actor=BY, reason="a person approved the end of planning")
        try:
            await self._bus.call(MEMORY_DELETE, wish, timeout=SECONDS)
        except RemoteFault as fault:
            if fault.code != "not_found":
                raise ToolError(fault.message) from fault
        except BusError as error:
            raise ToolError("Planning could not be ended: memory does not answer. Try again.") from error

    def _ids(self) -> dict[str, str]:
        key = key_of("planning", self._call.block, self._call.conversation)[:16]
        return {f"{PREFIX}{key}-{name}": action for name, action in DENIED.items()}

    def _policy(self, id: str, action: str) -> Policy:
        return Policy(
            id=id,
            subject=f"block:{self._call.block}",
            resource="tool:*",
            action=action,
            effect="deny",
            conditions=Conditions(conversation=self._call.conversation, until=now() + KEPT),
            note="The agent plans in this conversation; approve its plan, or delete this file, and it works again.",
            created=now(),
            created_by=BY,
        )


def _path(id: str) -> str:
    return f"{FOLDER}/{id}.json"


def _text(policy: Policy) -> str:
    return msgspec.json.format(msgspec.json.encode(policy), indent=2).decode() + "\n"
