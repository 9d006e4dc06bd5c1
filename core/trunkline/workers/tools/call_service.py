"""Answers calls and cancels on the bus. ``CallRegistry`` runs the calls."""

from collections.abc import AsyncIterator

from trunkline.contracts.blocks.paths import is_block_name
from trunkline.contracts.tools.messages import CallTool, CancelCall, ToolReply
from trunkline.contracts.turns.subjects import EFFECT
from trunkline.runtime.audit_log import AuditLog
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.call_registry import CallRegistry
from trunkline_bus import ReceivedMessage, Refusal, Request, SubjectError

MAX_REQUESTS = 4096
"""Largest number of requests that are answered concurrently, including those refused because of too many
calls. Several requests may join one call."""

DECISION_FORBIDDEN = (
    "Only the monitor may send people's decisions about a call, on a subject of its own. Nothing was run."
)


class CallService:
    """Checks which caller may send what, and passes calls to the registry."""

    def __init__(self, calls: CallRegistry, ancestry: ConversationAncestry, audit: AuditLog) -> None:
        self._calls = calls
        self._ancestry = ancestry
        self._audit = audit

    async def handle_call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        """Answer a call of any caller."""
        async for reply in self.call(request.data):
            yield reply

    async def handle_decided_call(self, request: Request[CallTool]) -> AsyncIterator[ToolReply]:
        """Answer a call from the monitor that carries people's decisions. The server permits only the monitor to
        publish here.
        """
        async for reply in self._replies(request.data):
            yield reply

    async def handle_cancel(self, message: ReceivedMessage[CancelCall]) -> None:
        """Stop the call that the subject names."""
        self.stop(message.keys["call"], message.data)

    async def call(self, call: CallTool) -> AsyncIterator[ToolReply]:
        """Yield the replies to a call. A call that claims a person's decision is refused: only the monitor may send
        decisions, on a separate subject (ADR 0025).
        """
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
            raise Refusal(
                "invalid_request", "The call's key must not contain blanks, dots or wildcards."
            ) from error
        self._ancestry.record_fork(call)
        async for reply in self._calls.call(call):
            yield reply

    def stop(self, call: str, request: CancelCall) -> None:
        """Stop a call that runs here or arrives here later."""
        self._calls.stop(call, request.reason or "the call was cancelled")


def require_block_name(name: str) -> str:
    """Return the name. Raises Refusal when it is not a valid block name."""
    if not is_block_name(name):
        raise Refusal("invalid_request", "The request names no valid block.")
    return name
