"""Very many tool calls in one answer: the executed calls, the results for the model, and no delay for others."""

from collections import Counter
from collections.abc import Sequence

import anyio
import pytest

import trunkline
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.gateway.messages import MessageAccepted
from trunkline.contracts.models.adapter import Call, ModelAdapter, ModelRequest
from trunkline.contracts.turns.feed_messages import ApprovalRequested, ToolEnded
from trunkline.contracts.turns.journal_messages import ToolPlanned
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.platform import Platform, platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel

pytestmark = pytest.mark.anyio

MANY = 5_000
BEGUN = 20.0
"""Seconds in which the first calls of an answer have begun."""


class ManyCallsPlugin:
    """A plugin with a model that makes the requested number of calls, and tools that count their running calls."""

    def __init__(self) -> None:
        self.model = ScriptedModel(self._reply)
        self.gate = anyio.Event()
        self.inside = 0
        self.most_inside = 0
        self.ran: Counter[str] = Counter()

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self.model]

    @trunkline.hookimpl
    def trunkline_tools(self) -> Sequence[trunkline.Tool]:
        @trunkline.tool(effect="read")
        async def look(text: str) -> str:
            """Look."""
            self.ran[text] += 1
            return text

        @trunkline.tool(effect="write")
        async def wait(text: str) -> str:
            """Wait until let go."""
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
            self.ran[text] += 1
            try:
                await self.gate.wait()
            finally:
                self.inside -= 1
            return text

        return [look, wait]

    def _reply(self, request: ModelRequest) -> ReplyItems:
        last = request.messages[-1]
        if last.role != "user" or not last.content.startswith("make "):
            return "done"
        _, count, name = last.content.split()
        return [
            Call(ToolCall(id=f"call_{number}", name=name, arguments={"text": str(number)}))
            for number in range(int(count))
        ]


def answered_once(messages: Sequence[Message]) -> bool:
    """Report whether each call has one result, right behind it: no vendor accepts any other transcript."""
    owed: list[str] = []
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in owed:
                return False
            owed.remove(message.tool_call_id)
        elif owed:
            return False
        owed += [call.id for call in message.tool_calls]
    return not owed


async def planned(running: Platform, accepted: MessageAccepted) -> int:
    keys = {"conversation": accepted.conversation, "turn": accepted.turn}
    entries = [
        entry async for one in running.bus.history(JOURNAL, after=0, **keys) for entry in one.data.entries
    ]
    return sum(isinstance(entry, ToolPlanned) for entry in entries)


async def test_thousands_of_calls_in_one_answer() -> None:
    """Only the configured number of calls runs; each of the others has a result with the reason that it was not run.
    Other conversations are answered in the meantime."""
    plugin, config = ManyCallsPlugin(), {"runtime.provider_adapter": "scripted", "monitor.max_tool_calls": 50}
    async with platform(plugins=[plugin], config=config) as running:
        accepted = await running.send(f"make {MANY} look")
        assert (await running.say("hello")).text == "done"
        answer = await running.answer(accepted)
        ended = [event for event in answer.events if isinstance(event, ToolEnded)]
        assert answer.text == "done" and len(ended) == MANY
        assert plugin.ran == Counter(str(number) for number in range(50))
        refused = [event.output for event in ended if event.error]
        assert refused[0] == (
            f"look was not run: this is call 51 of {MANY} in one answer, and the first 50 are run. "
            "Call it again if it is still needed."
        )
        assert len(refused) == MANY - 50
        seen = plugin.model.requests[-1].messages
        assert answered_once(seen) and sum(message.role == "tool" for message in seen) == MANY
        assert answered_once(
            (await running.gateway.conversation(accepted.conversation, include_tools=True)).messages
        )


async def test_a_cancel_of_thousands_of_calls() -> None:
    """The cancel ends the turn before most calls have started; those are reported as not run, the others as unknown.
    Meanwhile another conversation is answered."""
    plugin = ManyCallsPlugin()
    config = {
        "runtime.provider_adapter": "scripted",
        "monitor.max_tool_calls": MANY,
        "monitor.parallel_tool_calls": 8,
    }
    async with platform(plugins=[plugin], config=config) as running:
        accepted = await running.send(f"make {MANY} wait")
        with anyio.fail_after(BEGUN):
            while plugin.inside < 8:  # noqa: ASYNC110 - the tools say it by a number
                await anyio.sleep(0.01)
        assert (await running.say("hello")).text == "done"
        await running.gateway.cancel(accepted.turn)
        answer = await running.answer(accepted)
        assert answer.ended.reason == "cancelled"
        assert plugin.most_inside == 8 and sum(plugin.ran.values()) == 8
        assert await planned(running, accepted) == 8
        stored = (await running.gateway.conversation(accepted.conversation, include_tools=True)).messages
        assert answered_once(stored)
        reported = Counter(message.content for message in stored if message.role == "tool")
        assert reported == {
            "The turn ended before this call began; it was not run.": MANY - 8,
            "The turn ended before this call did; whether it took effect is not known.": 8,
        }
        assert (await running.say("hello", conversation=accepted.conversation)).text == "done"


async def test_more_calls_than_a_worker_accepts() -> None:
    """A tools worker that has too many refuses more for the moment; they are asked for again, and each runs once."""
    plugin = ManyCallsPlugin()
    config = {
        "runtime.provider_adapter": "scripted",
        "monitor.parallel_tool_calls": 12,
        "tools.concurrency": 1,
        "tools.backlog": 5,
    }
    async with platform(plugins=[plugin], config=config) as running:
        plugin.gate.set()
        answer = await running.say("make 12 wait")
        assert answer.text == "done" and plugin.most_inside == 1
        assert plugin.ran == Counter(str(number) for number in range(12))
        assert not any(event.error for event in answer.events if isinstance(event, ToolEnded))


async def test_hundreds_of_approvals_at_once() -> None:
    """Each call of an answer may wait for a person; all are asked about, a yes runs one, and a cancel settles them."""
    plugin = ManyCallsPlugin()
    config = {
        "runtime.provider_adapter": "scripted",
        "monitor.max_tool_calls": 300,
        "permissions.approvals": "some",
    }
    async with platform(plugins=[plugin], config=config) as running:
        plugin.gate.set()
        accepted = await running.send("make 300 wait")
        with anyio.fail_after(running.timeout):
            asked = []
            async for event in running.gateway.watch(accepted.conversation, accepted.turn):
                asked += [event] if isinstance(event, ApprovalRequested) else []
                if len(asked) == 300:
                    break
        one = asked[-1]
        await running.gateway.decide(accepted.turn, one.call.id, one.call_hash, allow=True)
        with anyio.fail_after(running.timeout):
            while not plugin.ran:  # noqa: ASYNC110 - the tool says it by a number
                await anyio.sleep(0.01)
        await running.gateway.cancel(accepted.turn)
        answer = await running.answer(accepted)
        assert answer.ended.reason == "cancelled" and plugin.ran == Counter([one.call.arguments["text"]])
        assert answered_once(
            (await running.gateway.conversation(accepted.conversation, include_tools=True)).messages
        )
        with anyio.fail_after(running.timeout):
            while await running.gateway.waiting():  # noqa: ASYNC110 - asked over the bus
                await anyio.sleep(0.1)
