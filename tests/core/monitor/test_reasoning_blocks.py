"""Blocks of reasoning that a vendor requires back, in the requests of one turn."""

from collections.abc import Sequence

import msgspec
import pytest

import trunkline
from trunkline import ToolCall
from trunkline.api.model import Call, ModelAdapter, ModelRequest, ReasoningBlock, ReasoningDone, Text
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.journal_messages import (
    JournalEntry,
    ModelCallFinished,
    ToolFinished,
    TurnStarted,
)
from trunkline.contracts.turns.messages import TurnRequested
from trunkline.testing.platform import platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel
from trunkline.workers.monitor.turn import Turn
from trunkline.workers.monitor.turn_messages import append_request, new_messages

BLOCK = ReasoningBlock(
    vendor="scripted", model="deep", data={"type": "thinking", "thinking": "…", "signature": "c2ln"}
)


class Models:
    """A plugin with one adapter."""

    def __init__(self, model: ModelAdapter) -> None:
        self.model = model

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]


def in_turn() -> Turn:
    """Return a turn whose model reasoned and called a tool, and whose tool returned a result."""
    message = Message(id="msg_u", role="user", content="hello")
    request = TurnRequested(
        turn="turn_1", block="main", conversation="conv_1", message=message, actor="owner", channel="test"
    )
    turn = Turn()
    turn.advance(TurnStarted(request=request, model="deep"))
    call = ToolCall(id="call_1", name="look")
    turn.advance(ModelCallFinished(step=0, tool_calls=(call,), reasoning_blocks=(BLOCK,)))
    key = turn.steps[0].actions[0].key
    turn.advance(ToolFinished(call_id="call_1", outcome=ToolOutcome(call=key, status="ok", output="sea")))
    return turn


def test_a_block_is_in_the_message_of_its_answer() -> None:
    """Vendors require the block directly before the tool calls that it led to."""
    assert [message.reasoning for message in new_messages(in_turn())] == [(), (BLOCK,), ()]


def test_a_block_survives_a_restart() -> None:
    """A worker that takes the turn over reads the block from the journal."""
    resumed = Turn()
    for entry in in_turn().entries:
        resumed.apply(msgspec.json.decode(msgspec.json.encode(entry), type=JournalEntry))
    assert [message.reasoning for message in new_messages(resumed)] == [(), (BLOCK,), ()]


def test_a_block_is_not_stored() -> None:
    """Memory holds what people can read; a vendor takes blocks of the running turn only."""
    assert all(not message.reasoning for message in append_request(in_turn()).messages)


@pytest.mark.anyio
async def test_the_next_request_returns_the_block() -> None:
    """The adapter gets the block back with the result of the tool, and not in the next turn."""

    def script(request: ModelRequest) -> ReplyItems:
        if request.messages[-1].role == "tool":
            return "Calm."
        if request.messages[-1].content.startswith("again"):
            return "Still calm."
        return [ReasoningDone(BLOCK), Text("Let me see. "), Call(ToolCall(id="call_1", name="memory_list"))]

    model = ScriptedModel(script)
    async with platform(plugins=[Models(model)]) as running:
        first = await running.say("how is the sea?")
        await running.say("again", conversation=first.accepted.conversation)
    given = [
        [message.reasoning for message in request.messages if message.reasoning] for request in model.requests
    ]
    assert given == [[], [(BLOCK,)], []]
