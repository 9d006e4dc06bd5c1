"""Calls of outside agents, such as another agent over MCP, in the name of a block. The subject names the agent and
the block.

NATS permits each agent to publish only on its own subjects; identities in the message are ignored. The keys of
conversation, turn and call are derived from the agent's name. So an agent cannot use an approval, a stored result or
a ledger record of another agent, and cannot cancel another agent's call.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from trunkline.contracts.tools.messages import CallTool, CancelCall, ListTools, ToolCatalogue, ToolReply
from trunkline.contracts.tools.subjects import (
    DELEGATED_CALL_TOOL,
    DELEGATED_CANCEL_CALL,
    DELEGATED_LIST_TOOLS,
)
from trunkline_bus import Bus, ReceivedMessage, Request, Service, key_of

DELEGATED = "delegated_"
"""The beginning of the keys of conversations and turns of outside agents. No conversation of a person begins so."""

MAX_REQUESTS = 256
"""Largest number of delegated calls that are answered concurrently, so that capacity remains for the
platform's agents."""


@dataclass(frozen=True, slots=True)
class DelegationService:
    """The functions that serve delegated requests: ``list_tools`` returns a block's tools, ``call`` runs a
    call, ``stop`` stops one."""

    list_tools: Callable[[ListTools], Awaitable[ToolCatalogue]]
    call: Callable[[CallTool], AsyncIterator[ToolReply]]
    stop: Callable[[str, CancelCall], None]

    async def answer(self, bus: Bus, service: Service) -> None:
        """Serve the endpoints, and subscribe to cancels."""
        await bus.subscribe(DELEGATED_CANCEL_CALL, self._cancel)
        await service.add(DELEGATED_LIST_TOOLS, self._list)
        await service.add(DELEGATED_CALL_TOOL, self._call, limit=MAX_REQUESTS)

    async def _list(self, request: Request[ListTools]) -> ToolCatalogue:
        return await self.list_tools(ListTools(block=request.keys["block"], version=request.data.version))

    async def _call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        async for reply in self.call(delegated_call(request.data, request.keys)):
            yield reply

    async def _cancel(self, message: ReceivedMessage[CancelCall]) -> None:
        self.stop(_derived_key(message.keys, message.keys["call"]), message.data)


def delegated_call(call: CallTool, keys: Mapping[str, str]) -> CallTool:
    """Return the call in the name of the agent and the block of the subject. Claimed decisions are kept, so that the
    call is refused for them; so are the caller's permissions, which only restrict.
    """
    return CallTool(
        call=_derived_key(keys, call.call),
        name=call.name,
        arguments=call.arguments,
        block=keys["block"],
        conversation=f"{DELEGATED}{_derived_key(keys, call.conversation)}",
        turn=f"{DELEGATED}{_derived_key(keys, call.turn)}",
        actor=f"agent:{keys['agent']}",
        approved=call.approved,
        answers=call.answers,
        again=call.again,
        permissions=call.permissions,
    )


def is_delegated(call: CallTool) -> bool:
    """Report whether an outside agent made the call, so that no person reads its conversation."""
    return call.conversation.startswith(DELEGATED)


def _derived_key(keys: Mapping[str, str], key: str) -> str:
    return key_of("lent", keys["agent"], keys["block"], key)
