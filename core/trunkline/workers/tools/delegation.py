"""Calls of those to whom a block is lent, such as another agent over MCP. The subject says who asks, and of what block.

NATS lets each of them speak on subjects of its own, and what it says of itself counts for nothing. Its conversation,
its turn and the keys of its calls are derived so that they belong to it alone. So it cannot use an approval that a
person gave elsewhere, a stored result, or the record of another's call, and it cannot cancel another's call.
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

MAX_REQUESTS = 256
"""Calls of theirs that are answered at once, so that they leave room for the agents of the house."""


@dataclass(frozen=True, slots=True)
class DelegationService:
    """What it hands on to: ``list_tools`` answers with a block's tools, ``call`` answers a call, ``stop`` stops one."""

    list_tools: Callable[[ListTools], Awaitable[ToolCatalogue]]
    call: Callable[[CallTool], AsyncIterator[ToolReply]]
    stop: Callable[[str, CancelCall], None]

    async def answer(self, bus: Bus, service: Service) -> None:
        """Answer, and hear cancels, from now on."""
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
    """The call as it counts: of the agent and the block that the subject names. What it says that people decided is
    left in it, to be refused."""
    return CallTool(
        call=_derived_key(keys, call.call),
        name=call.name,
        arguments=call.arguments,
        block=keys["block"],
        conversation=f"lent_{_derived_key(keys, call.conversation)}",
        turn=f"lent_{_derived_key(keys, call.turn)}",
        actor=f"agent:{keys['agent']}",
        approved=call.approved,
        answers=call.answers,
        again=call.again,
    )


def _derived_key(keys: Mapping[str, str], key: str) -> str:
    return key_of("lent", keys["agent"], keys["block"], key)
