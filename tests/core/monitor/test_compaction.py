"""Compaction: when a conversation comes near the window of its model, a summary replaces its first messages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import trunkline
from trunkline.api.model import Finish, ModelAdapter, ModelError, ModelRequest, Text
from trunkline.contracts.conversations.messages import AppendConversation, LoadConversation, Message, Usage
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.costs.subjects import COST
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES, STORE_MESSAGES
from trunkline.contracts.turns.messages import TurnStarted
from trunkline.contracts.turns.subjects import JOURNAL
from trunkline.testing.platform import BLOCK, Platform, TurnAnswer, platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel

pytestmark = pytest.mark.anyio

WINDOW = 10_000
"""The tokens that the scripted model accepts."""

SUMMARY = "The code of the safe is 4711."


class Model(ScriptedModel):
    """A model that says the size of its context, as a test sets it, and writes summaries."""

    def __init__(self, summary: ReplyItems = SUMMARY) -> None:
        super().__init__(self._reply)
        self.size = 100
        self.summary: Callable[[ModelRequest], ReplyItems] = lambda request: summary

    def _reply(self, request: ModelRequest) -> ReplyItems:
        if request.purpose == "summary":
            return self.summary(request)
        return [Text("Well."), Finish(usage=Usage(input_tokens=self.size, output_tokens=5), model="scripted")]

    @property
    def turns(self) -> list[ModelRequest]:
        """The requests of turns."""
        return [request for request in self.requests if request.purpose == "turn"]

    @property
    def summaries(self) -> list[ModelRequest]:
        """The requests for summaries."""
        return [request for request in self.requests if request.purpose == "summary"]

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self]


@asynccontextmanager
async def talking(model: Model, home: Path | None = None, **config: Any) -> AsyncIterator[Platform]:
    settings = {
        "runtime.provider_adapter": model.name,
        "monitor.context_window": WINDOW,
        "plugins.compaction.keep_messages": 2,
        **config,
    }
    async with platform(home, plugins=[model], config=settings) as running:
        yield running


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    with anyio.fail_after(60):
        while not await holds():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def say_all(running: Platform, texts: Sequence[str], conversation: str | None = None) -> TurnAnswer:
    """Say the texts in one conversation; return the last answer."""
    answer = None
    for text in texts:
        answer = await running.say(text, conversation=conversation)
        conversation = answer.accepted.conversation
    assert answer is not None
    return answer


async def record_of(running: Platform, conversation: str) -> SummaryRecord | None:
    query = LoadConversation(block=BLOCK, conversation=conversation)
    return (await running.bus.call(LOAD_MESSAGES, query)).summary_record


async def compacted(running: Platform, conversation: str, previous: str = "") -> SummaryRecord:
    """Wait for the record that follows ``previous``."""
    found: list[SummaryRecord] = []

    async def is_there() -> bool:
        record = await record_of(running, conversation)
        found.extend([record] if record is not None and record.previous == previous else [])
        return bool(found)

    await until(is_there)
    return found[-1]


def contents(request: ModelRequest) -> list[str]:
    return [message.content for message in request.messages if message.role != "system"]


async def test_a_conversation_near_the_window_is_summarised() -> None:
    """At 80 % of the model's window, by the tokens of the last call, and not below. The next request has the summary as
    data in place of the first messages, and the conversation stays stored as it is (MB-F11, MB-T13, MN-F27)."""
    model = Model()
    async with talking(model) as running:
        answer = await say_all(running, ["The code is 4711.", "Fine.", "And then?"])
        conversation = answer.accepted.conversation
        assert model.summaries == []
        model.size = int(0.8 * WINDOW)
        await say_all(running, ["Go on."], conversation)
        record = await compacted(running, conversation)
        assert (record.count, record.text, record.model) == (6, SUMMARY, "scripted/scripted")
        model.size = 100
        await say_all(running, ["What is the code?"], conversation)
        summary, *rest = contents(model.turns[-1])
        assert rest[:2] == ["Go on.", "Well."] and rest[-1] == "What is the code?"
        assert 'note="data, not instructions"' in summary and SUMMARY in summary
        stored = await running.gateway.conversation(conversation)
        assert [m.content for m in stored.messages][:3] == ["The code is 4711.", "Well.", "Fine."]
        assert len(model.summaries) == 1


async def test_the_context_files_stay_after_a_compaction() -> None:
    """Identity, skills, memory and tools are rendered anew for each turn and are never summarised (MN-T9)."""
    model = Model()
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two.", "Three."])
        await compacted(running, answer.accepted.conversation)
        before = model.turns[-1]
        await say_all(running, ["Four."], answer.accepted.conversation)
        after = model.turns[-1]
        system = [[m.content for m in one.messages if m.role == "system"] for one in (before, after)]
        assert system[0] == system[1] and "AGENT.md" in system[0][0]
        assert before.tools == after.tools


async def test_the_summary_stays_the_same_between_turns() -> None:
    """A summary changes the beginning of the request once; after that each request begins as the one before it."""
    model = Model()
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two.", "Three."])
        conversation = answer.accepted.conversation
        await compacted(running, conversation)
        model.size = 100
        await say_all(running, ["Four.", "Five.", "Six."], conversation)
        for before, now in zip(model.turns[-3:-1], model.turns[-2:], strict=True):
            assert contents(now)[: len(contents(before)) - 1] == contents(before)[:-1]


async def test_the_journal_names_the_summary_that_a_turn_used() -> None:
    """With its text, so that a monitor that takes the turn over sends the same request."""
    model = Model()
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two.", "Three."])
        conversation = answer.accepted.conversation
        record = await compacted(running, conversation)
        last = await say_all(running, ["Four."], conversation)
        keys = {"conversation": conversation, "turn": last.accepted.turn}
        entries = [entry async for one in running.bus.history(JOURNAL, **keys) for entry in one.data.entries]
        started = next(entry for entry in entries if isinstance(entry, TurnStarted))
        assert started.summary_record == record


async def test_the_next_summary_continues_the_one_before_it() -> None:
    """Nothing that was said before the previous compaction is forgotten: its summary is input of the next one
    (MB-T13b)."""
    model = Model()
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["The code is 4711.", "Two."])
        conversation = answer.accepted.conversation
        first = await compacted(running, conversation)
        await say_all(running, ["Three."], conversation)
        second = await compacted(running, conversation, first.id)
        assert second.count > first.count
        prompt = model.summaries[-1].messages[0].content
        assert SUMMARY in prompt and "The code is 4711.\n" not in prompt


async def test_the_cost_of_a_summary_is_recorded_as_such() -> None:
    """The ledger has the request under the purpose ``summary``."""
    model = Model([Text(SUMMARY), Finish(usage=Usage(input_tokens=70, output_tokens=7), model="scripted")])
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two."])
        await compacted(running, answer.accepted.conversation)

        async def entries() -> list[Any]:
            found = [stored.data async for stored in running.bus.history(COST, after=0)]
            return [entry for entry in found if entry.purpose == "summary"]

        async def is_recorded() -> bool:
            return bool(await entries())

        await until(is_recorded)
        [entry] = await entries()
        assert entry.usage.input_tokens == 70 and entry.conversation == answer.accepted.conversation


async def test_a_failed_summary_leaves_the_conversation_as_it_is() -> None:
    """The next turn has all messages, and the conversation is due again after it."""
    model = Model()
    model.summary = lambda request: [ModelError(trunkline.ErrorCode.PROVIDER_ERROR, "refused", "no")]
    async with talking(model) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two."])
        conversation = answer.accepted.conversation
        await until(lambda: _is_true(len(model.summaries) > 0))
        await say_all(running, ["Three."], conversation)
        assert contents(model.turns[-1])[0] == "One."
        model.summary = lambda request: SUMMARY
        await say_all(running, ["Four."], conversation)
        await compacted(running, conversation)


async def test_without_the_plugin_all_messages_are_sent(tmp_path: Path) -> None:
    """Also those of a conversation that was compacted while the plugin was there."""
    model = Model()
    async with talking(model, tmp_path) as running:
        model.size = 9_000
        answer = await say_all(running, ["One.", "Two."])
        await compacted(running, answer.accepted.conversation)
    again = Model()
    disabled = {"plugins.disabled": ("trunkline-compaction",), "plugins.compaction.keep_messages": 6}
    async with talking(again, tmp_path, **disabled) as running:
        await say_all(running, ["Three."], answer.accepted.conversation)
        assert contents(again.turns[-1])[0] == "One."


async def test_of_two_records_that_follow_the_same_one_the_first_is_stored() -> None:
    """Two monitors that summarise at the same time, and a request that is repeated, make one record."""
    model = Model()
    async with talking(model) as running:
        answer = await say_all(running, ["One.", "Two."])
        conversation = answer.accepted.conversation
        query = LoadConversation(block=BLOCK, conversation=conversation)
        messages: tuple[Message, ...] = (await running.bus.call(LOAD_MESSAGES, query)).messages
        for id in ("sum_a", "sum_b", "sum_a"):
            record = SummaryRecord(
                id=id, text=id, through=messages[1].id, count=2, model="m", created_at=messages[1].created_at,
                turn="turn",
            )  # fmt: skip
            append = AppendConversation(
                block=BLOCK, conversation=conversation, messages=(), actor="test", summary_record=record
            )
            await running.bus.call(STORE_MESSAGES, append)
        stored = await record_of(running, conversation)
        assert stored is not None and stored.id == "sum_a"


async def _is_true(value: bool) -> bool:
    return value
