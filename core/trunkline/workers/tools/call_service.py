"""Answers calls and cancels of callers on the bus. The call itself runs in ``CallRegistry``."""

from collections.abc import AsyncIterator

from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.tools.messages import CallTool, CancelCall, ToolReply
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.call_registry import CallRegistry
from trunkline_bus import ReceivedMessage, Refusal, Request, SubjectError

MAX_REQUESTS = 4096
"""Requests for calls that are answered at once, if only by the answer that there are too many calls. Several may ask
for one call."""

DECISION_FORBIDDEN = (
    "Only the monitor may say what people decided about a call, and it does so elsewhere. Nothing was run."
)


class CallService:
    """Checks who may say what, and hands calls to the registry."""

    def __init__(self, calls: CallRegistry, ancestry: ConversationAncestry, audit: AuditLog) -> None:
        self._calls = calls
        self._ancestry = ancestry
        self._audit = audit

    async def handle_call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        """Answer a call of anybody who may call tools."""
        async for reply in self.call(request.data):
            yield reply

    async def handle_decided_call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        """Answer a call of the monitor, with what people decided about it. The server lets nobody else send it."""
        async for reply in self._replies(request.data):
            yield reply

    async def handle_cancel(self, message: ReceivedMessage[CancelCall]) -> None:
        """Stop the call that the subject names."""
        self.stop(message.keys["call"], message.data)

    async def call(self, call: CallTool) -> AsyncIterator[ToolReply]:
        """The replies to a call. One that claims a person's decision is refused: only the monitor may say that, on a
        subject of its own (ADR 0025)."""
        if call.has_decisions:
            await self._audit.record(
                event="decision", block=call.block, actor=call.actor, conversation=call.conversation, turn=call.turn,
                call=call.call, tool=call.name, decision="denied", why=DECISION_FORBIDDEN,
            )  # fmt: skip
            raise Refusal("forbidden", DECISION_FORBIDDEN)
        async for reply in self._replies(call):
            yield reply

    async def _replies(self, call: CallTool) -> AsyncIterator[ToolReply]:
        require_block_name(call.block)
        try:
            EFFECT.subject.format(call=call.call)
        except SubjectError as error:
            raise Refusal("invalid_request", "The key of the call is not a key.") from error
        self._ancestry.record_fork(call)
        async for reply in self._calls.call(call):
            yield reply

    def stop(self, call: str, request: CancelCall) -> None:
        """Stop a call, whether it runs here or arrives here later."""
        self._calls.stop(call, request.reason or "the call was cancelled")


def require_block_name(name: str) -> str:
    """The name. Raises Refusal when it is no name of a block."""
    if not is_block_name(name):
        raise Refusal("invalid_request", "The block's name is not a name of a block.")
    return name
