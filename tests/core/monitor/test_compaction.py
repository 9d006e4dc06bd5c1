"""Compaction: when a conversation comes near the window of its model, a summary replaces its first messages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import msgspec
import pytest

import trunkline
from tests.block_client import BlockClient, client_of_new_block
from tests.other_users import share
from trunkline._util.untrusted_text import wrap_tool_result
from trunkline.api.model import (
    AskModel,
    Finish,
    ModelAdapter,
    ModelError,
    ModelEvent,
    ModelInfo,
    ModelMiddleware,
    ModelRequest,
    Text,
)
from trunkline.contracts.conversations.messages import (
    AppendConversation,
    LoadConversation,
    Message,
    ToolCall,
    Usage,
)
from trunkline.contracts.conversations.summary_record import SummaryRecord
from trunkline.contracts.costs.subjects import COST
from trunkline.contracts.gateway.access import Identity
from trunkline.contracts.gateway.messages import ForkTurn
from trunkline.contracts.gateway.subjects import LOAD_MESSAGES, STORE_MESSAGES
from trunkline.contracts.memory.files import ReadMemory, WriteMemory
from trunkline.contracts.memory.search import SearchMemory
from trunkline.contracts.memory.subjects import MEMORY_READ, MEMORY_SEARCH, MEMORY_WRITE
from trunkline.contracts.turns.feed_messages import StatusShown
from trunkline.contracts.turns.journal_messages import JournalEntry, ModelCallFinished, TurnStarted
from trunkline.contracts.turns.subjects import FEED, JOURNAL
from trunkline.testing.platform import BLOCK, TurnAnswer, platform
from trunkline.testing.scripted_model import ReplyItems, ScriptedModel
from trunkline.workers.monitor.journal import RAW_JOURNAL
from trunkline.workers.monitor.replay import ReplayReport, replay

pytestmark = pytest.mark.anyio

WINDOW = 10_000
"""The tokens that the scripted model accepts."""

ANSWER = "Well. " + "And so on. " * 150
"""An answer of 6 % of the window."""

SUMMARY = "The code of the safe is 4711."


LARGE = {"monitor.context_window": 1_000_000}

TOO_LONG = ModelError(trunkline.ErrorCode.CONTEXT_OVERFLOW, "refused", "too long")


class Model(ScriptedModel):
    """A model that says the size of its context, as a test sets it, and writes summaries."""

    def __init__(self) -> None:
        super().__init__(self._reply, models=[ModelInfo(id="scripted"), ModelInfo(id="small")])
        self.size = 100
        self.limit: int | None = None
        """The number of messages besides the system's that it takes; None for any."""
        self.late = False
        """True if it refuses a request in the middle of the answer."""
        self.counted: int | None = 100
        self.counts: list[ModelRequest] = []
        self.summary: Callable[[ModelRequest], ReplyItems] = lambda request: SUMMARY
        self.earlier: set[str] = set()
        """Conversations of earlier tests. Their last compaction may come in the background of the next test."""

    def forget(self) -> None:
        """Begin anew, for the next test."""
        self.earlier |= {request.conversation for request in self.requests}
        self.size, self.limit, self.late, self.counted = 100, None, False, 100
        self.summary = lambda request: SUMMARY
        self.counts.clear()

    def _reply(self, request: ModelRequest) -> ReplyItems:
        if request.conversation in self.earlier:
            return SUMMARY
        if request.purpose == "summary":
            return self.summary(request)
        if self.limit is not None and len(contents(request)) > self.limit:
            return [*([Text("We")] if self.late else []), TOO_LONG]
        return [Text(ANSWER), Finish(usage=Usage(input_tokens=self.size, output_tokens=5), model="scripted")]

    async def count_tokens(self, request: ModelRequest) -> int | None:
        self.counts.append(request)
        return self.counted

    @property
    def turns(self) -> list[ModelRequest]:
        """The requests of turns."""
        return self._of("turn")

    @property
    def summaries(self) -> list[ModelRequest]:
        """The requests for summaries."""
        return self._of("summary")

    def _of(self, purpose: str) -> list[ModelRequest]:
        requests = (request for request in self.requests if request.conversation not in self.earlier)
        return [request for request in requests if request.purpose == purpose]

    @trunkline.hookimpl
    def trunkline_models(self) -> Sequence[ModelAdapter]:
        return [self]


@asynccontextmanager
async def talking(
    model: Model, home: Path | None = None, *plugins: object, **config: Any
) -> AsyncIterator[BlockClient]:
    settings = {
        "runtime.provider_adapter": model.name,
        "monitor.context_window": WINDOW,
        "plugins.compaction.keep_messages": 2,
        **config,
    }
    async with platform(home, plugins=[model, *plugins], config=settings) as running:
        yield BlockClient(running, BLOCK)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[tuple[Model, BlockClient]]:
    """One platform for the tests without a home, plugins or settings of their own."""
    model = Model()
    async with talking(model) as running:
        yield model, running


@pytest.fixture
def model(shared: tuple[Model, BlockClient]) -> Model:
    """The model of the shared platform, which begins anew."""
    model, _ = shared
    model.forget()
    return model


@pytest.fixture
async def client(shared: tuple[Model, BlockClient]) -> BlockClient:
    """A client of the shared platform, with a block of its own."""
    return await client_of_new_block(shared[1].platform)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    with anyio.fail_after(60):
        while not await holds():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def say_all(running: BlockClient, texts: Sequence[str], conversation: str | None = None) -> TurnAnswer:
    """Say the texts in one conversation; return the last answer."""
    answer = None
    for text in texts:
        answer = await running.say(text, conversation=conversation)
        conversation = answer.accepted.conversation
    assert answer is not None
    return answer


async def record_of(running: BlockClient, conversation: str) -> SummaryRecord | None:
    query = LoadConversation(block=running.block, conversation=conversation)
    return (await running.bus.call(LOAD_MESSAGES, query)).summary_record


async def compacted(running: BlockClient, conversation: str, previous: str = "") -> SummaryRecord:
    """Wait for the record that follows ``previous``."""
    found: list[SummaryRecord] = []

    async def is_there() -> bool:
        record = await record_of(running, conversation)
        found.extend([record] if record is not None and record.previous == previous else [])
        return bool(found)

    await until(is_there)
    return found[-1]


async def compacted_talk(model: "Model", running: BlockClient, *texts: str) -> tuple[str, SummaryRecord]:
    """Say the texts, with answers that make the conversation long. Return it with the record of its first
    compaction."""
    model.size = 9_000
    answer = await say_all(running, texts)
    conversation = answer.accepted.conversation
    return conversation, await compacted(running, conversation)


def statuses(answer: TurnAnswer) -> list[StatusShown]:
    """The statuses of compactions that people were shown in a turn."""
    found = [event for event in answer.events if isinstance(event, StatusShown)]
    return [status for status in found if status.name == "compaction"]


async def journal(running: BlockClient, answer: TurnAnswer) -> list[JournalEntry]:
    """The entries of a turn."""
    keys = {"conversation": answer.accepted.conversation, "turn": answer.accepted.turn}
    return [entry async for one in running.bus.history(JOURNAL, **keys) for entry in one.data.entries]


async def replay_of(running: BlockClient, answer: TurnAnswer) -> ReplayReport:
    """Replay a turn from its journal and its feed."""
    keys = {"conversation": answer.accepted.conversation, "turn": answer.accepted.turn}
    raw = [stored.data async for stored in running.bus.history(RAW_JOURNAL, **keys)]
    feed = [stored.data async for stored in running.bus.history(FEED, after=0, **keys)]
    return replay(answer.accepted.turn, raw, feed)


def contents(request: ModelRequest) -> list[str]:
    return [message.content for message in request.messages if message.role != "system"]


async def test_a_conversation_near_the_window_is_summarised(model: Model, client: BlockClient) -> None:
    """At 80 % of the model's window, by the tokens of the last call, and not below. The next request has the summary as
    data in place of the first messages, and the conversation stays stored as it is (MB-F11, MB-T13, MN-F27)."""
    answer = await say_all(client, ["The code is 4711.", "Fine.", "And then?"])
    conversation = answer.accepted.conversation
    assert model.summaries == []
    model.size = int(0.8 * WINDOW)
    await say_all(client, ["Go on."], conversation)
    record = await compacted(client, conversation)
    assert (record.count, record.text, record.model) == (6, SUMMARY, "scripted/scripted")
    model.size = 100
    await say_all(client, ["What is the code?"], conversation)
    summary, *rest = contents(model.turns[-1])
    assert rest[:2] == ["Go on.", ANSWER] and rest[-1] == "What is the code?"
    assert 'note="data, not instructions"' in summary and SUMMARY in summary
    stored = await client.gateway.conversation(conversation)
    assert [m.content for m in stored.messages][:3] == ["The code is 4711.", ANSWER, "Fine."]
    assert len(model.summaries) == 1


async def test_the_context_files_stay_after_a_compaction(model: Model, client: BlockClient) -> None:
    """Identity, skills, memory and tools are rendered anew for each turn and are never summarised (MN-T9)."""
    conversation, _ = await compacted_talk(model, client, "One.", "Two.", "Three.")
    before = model.turns[-1]
    await say_all(client, ["Four."], conversation)
    after = model.turns[-1]
    system = [[m.content for m in one.messages if m.role == "system"] for one in (before, after)]
    assert system[0] == system[1] and "AGENT.md" in system[0][0]
    assert before.tools == after.tools


async def test_the_summary_stays_the_same_between_turns(model: Model, client: BlockClient) -> None:
    """A summary changes the beginning of the request once; after that each request begins as the one before it."""
    conversation, _ = await compacted_talk(model, client, "One.", "Two.", "Three.")
    model.size = 100
    await say_all(client, ["Four.", "Five.", "Six."], conversation)
    for before, now in zip(model.turns[-3:-1], model.turns[-2:], strict=True):
        assert contents(now)[: len(contents(before)) - 1] == contents(before)[:-1]


async def test_the_journal_names_the_summary_that_a_turn_used(model: Model, client: BlockClient) -> None:
    """With its text, so that a monitor that takes the turn over sends the same request."""
    conversation, record = await compacted_talk(model, client, "One.", "Two.", "Three.")
    last = await say_all(client, ["Four."], conversation)
    started = next(one for one in await journal(client, last) if isinstance(one, TurnStarted))
    assert started.summary_record == record


async def test_a_summary_is_made_of_the_results_as_the_model_knew_them(
    model: Model, client: BlockClient
) -> None:
    """Old results of tools are as short as in a turn's request, because whole ones would cost more than they tell."""
    result = wrap_tool_result("read_file", "a line of the file\n" * 400)
    answer = await say_all(client, ["One."])
    conversation = answer.accepted.conversation
    for number in range(5):
        call = ToolCall(id=f"c{number}", name="read_file")
        turn = (
            Message(id=f"u{number}", turn=f"t{number}", role="user", content="Read."),
            Message(id=f"a{number}", turn=f"t{number}", role="assistant", content="", tool_calls=(call,)),
            Message(id=f"r{number}", turn=f"t{number}", role="tool", content=result, tool_call_id=call.id),
        )
        append = AppendConversation(
            block=client.block, conversation=conversation, messages=turn, actor="test"
        )
        await client.bus.call(STORE_MESSAGES, append)
    model.size = 9_000
    await say_all(client, ["Go on."], conversation)
    await compacted(client, conversation)
    asked = "".join(request.messages[-1].content for request in model.summaries)
    assert asked.count("An old result, shortened") >= 3
    assert asked.count("a line of the file") < 2 * 400


async def test_the_context_view_shows_the_summary(model: Model, client: BlockClient) -> None:
    """As a part of its own, in place of the messages that it covers."""
    conversation, _ = await compacted_talk(model, client, "One.", "Two.", "Three.")
    await say_all(client, ["Four."], conversation)
    view = await client.gateway.context(conversation, texts=True)
    own = ("summary", "history", "recall", "message")
    assert [part.text for part in view.parts if part.kind in own] == contents(model.turns[-1])
    assert [part.kind for part in view.parts].count("summary") == 1


async def test_the_next_summary_continues_the_one_before_it(model: Model, client: BlockClient) -> None:
    """Nothing that was said before the previous compaction is forgotten: its summary is input of the next one
    (MB-T13b)."""
    conversation, first = await compacted_talk(model, client, "The code is 4711.", "Two.")
    await say_all(client, ["Three."], conversation)
    second = await compacted(client, conversation, first.id)
    assert second.count > first.count
    prompt = model.summaries[-1].messages[0].content
    assert SUMMARY in prompt and "The code is 4711.\n" not in prompt


async def test_the_cost_of_a_summary_is_recorded_as_such(model: Model, client: BlockClient) -> None:
    """The ledger has the request under the purpose ``summary``."""
    done = Finish(usage=Usage(input_tokens=70, output_tokens=7), model="scripted")
    model.summary = lambda request: [Text(SUMMARY), done]
    conversation, _ = await compacted_talk(model, client, "One.", "Two.")

    async def entries() -> list[Any]:
        found = [stored.data async for stored in client.bus.history(COST, after=0)]
        return [one for one in found if one.purpose == "summary" and one.conversation == conversation]

    async def is_recorded() -> bool:
        return bool(await entries())

    await until(is_recorded)
    [entry] = await entries()
    assert entry.usage.input_tokens == 70 and entry.conversation == conversation


async def test_a_failed_summary_leaves_the_conversation_as_it_is(model: Model, client: BlockClient) -> None:
    """The next turn has all messages, and the conversation is due again after it."""
    model.summary = lambda request: [ModelError(trunkline.ErrorCode.PROVIDER_ERROR, "refused", "no")]
    model.size = 9_000
    answer = await say_all(client, ["One.", "Two."])
    conversation = answer.accepted.conversation
    await until(lambda: _is_true(len(model.summaries) > 0))
    await say_all(client, ["Three."], conversation)
    assert contents(model.turns[-1])[0] == "One."
    model.summary = lambda request: SUMMARY
    await say_all(client, ["Four."], conversation)
    await compacted(client, conversation)


async def test_without_the_plugin_all_messages_are_sent(tmp_path: Path) -> None:
    """Also those of a conversation that was compacted while the plugin was there."""
    model = Model()
    async with talking(model, tmp_path) as running:
        conversation, _ = await compacted_talk(model, running, "One.", "Two.")
    again = Model()
    disabled = {"plugins.disabled": ("trunkline-compaction",), "plugins.compaction.keep_messages": 6}
    async with talking(again, tmp_path, **disabled) as running:
        await say_all(running, ["Three."], conversation)
        assert contents(again.turns[-1])[0] == "One."


async def test_of_two_records_that_follow_the_same_one_the_first_is_stored(
    model: Model, client: BlockClient
) -> None:
    """Two monitors that summarise at the same time, and a request that is repeated, make one record."""
    answer = await say_all(client, ["One.", "Two."])
    conversation = answer.accepted.conversation
    query = LoadConversation(block=client.block, conversation=conversation)
    messages: tuple[Message, ...] = (await client.bus.call(LOAD_MESSAGES, query)).messages
    for id in ("sum_a", "sum_b", "sum_a"):
        record = SummaryRecord(
            id=id, text=id, through=messages[1].id, count=2, model="m", created_at=messages[1].created_at,
            turn="turn",
        )  # fmt: skip
        append = AppendConversation(
            block=client.block, conversation=conversation, messages=(), actor="test", summary_record=record
        )
        await client.bus.call(STORE_MESSAGES, append)
    stored = await record_of(client, conversation)
    assert stored is not None and stored.id == "sum_a"


async def _is_true(value: bool) -> bool:
    return value


async def test_the_first_turn_after_a_compaction_tells_people_of_it(
    model: Model, client: BlockClient
) -> None:
    """Every channel shows the status, once."""
    answer = await say_all(client, ["One.", "Two."])
    conversation, model.size = answer.accepted.conversation, 9_000
    await say_all(client, ["Three."], conversation)
    await compacted(client, conversation)
    model.size = 100
    first = await say_all(client, ["Four."], conversation)
    second = await say_all(client, ["Five."], conversation)
    [status] = statuses(first)
    assert (
        status.text.startswith("The first 4 messages are now summarised") and "/compact undo" in status.text
    )
    assert statuses(second) == []


# The command -------------------------------------------------------------------------------------------------


async def test_a_person_compacts_a_conversation() -> None:
    """``/compact`` summarises now, whatever the size, keeps the focus, and says what it did (MN-F27, MN-F28)."""
    model = Model()
    async with talking(model, **{"plugins.compaction.keep_messages_on_command": 1}) as running:
        answer = await say_all(running, ["One.", "Two.", "Three."])
        conversation = answer.accepted.conversation
        said = await say_all(running, ["/compact the names"], conversation)
        assert said.text.startswith("The first 5 messages are summarised, by scripted/scripted.")
        assert [status.text for status in statuses(said)] == ["Summarising 5 older messages …"]
        assert "keep this in particular: the names" in model.summaries[0].messages[0].content
        assert len(model.turns) == 3, "the model of the conversation is not asked"
        record = await record_of(running, conversation)
        assert record is not None and (record.count, record.focus) == (5, "the names")
        await say_all(running, ["Four."], conversation)
        assert SUMMARY in contents(model.turns[-1])[0] and contents(model.turns[-1])[1] == ANSWER
        again = await say_all(running, ["/compact"], conversation)
        assert "messages are summarised" in again.text and SUMMARY in model.summaries[1].messages[0].content


async def test_a_compaction_is_undone_also_after_a_restart(tmp_path: Path) -> None:
    """``/compact undo`` returns to the summary before, then to all messages."""
    model = Model()
    async with talking(model, tmp_path) as running:
        answer = await say_all(running, ["One.", "Two.", "Three.", "/compact"])
        conversation = answer.accepted.conversation
        first = await record_of(running, conversation)
        await say_all(running, ["Four.", "/compact"], conversation)
        second = await record_of(running, conversation)
        assert first is not None and second is not None and second.previous == first.id
    async with talking(model, tmp_path) as running:
        said = await say_all(running, ["/compact undo"], conversation)
        assert said.text == (
            f"The summary of {second.count} messages is withdrawn. The model receives the summary of the first "
            f"{first.count} again."
        )
        assert await record_of(running, conversation) == first
        said = await say_all(running, ["/compact undo"], conversation)
        assert said.text.endswith("The model receives all of them again.")
        await say_all(running, ["Five."], conversation)
        assert contents(model.turns[-1])[0] == "One."
        said = await say_all(running, ["/compact undo"], conversation)
        assert said.text == "There is nothing to undo: no message of this conversation is summarised."


async def test_the_command_says_why_nothing_was_compacted(model: Model, client: BlockClient) -> None:
    """Nothing is old enough; or the model failed, and the conversation is as it was."""
    said = await say_all(client, ["/compact"])
    assert said.text.startswith("There is nothing to summarise")
    model.summary = lambda request: [ModelError(trunkline.ErrorCode.PROVIDER_ERROR, "refused", "no")]
    conversation = said.accepted.conversation
    said = await say_all(client, ["One.", "Two.", "/compact"], conversation)
    assert said.text.startswith("The conversation was not compacted: ")
    assert said.ended.reason == "stop" and await record_of(client, conversation) is None


async def test_an_adapter_that_only_repeats_memory_writes_no_summary() -> None:
    """The offline adapter answers, and the command says what to configure."""
    async with talking(Model(), **{"runtime.provider_adapter": "offline"}) as running:
        said = await say_all(running, ["One.", "Two.", "Three.", "/compact"])
        assert said.text.startswith("The conversation was not compacted: offline writes no summaries")
        assert await record_of(running, said.accepted.conversation) is None


async def test_half_a_summary_is_no_summary(model: Model, client: BlockClient) -> None:
    """A summary that breaks off is asked for again with more room. If it breaks off again, or the vendor filters it,
    the conversation stays as it is: what the summary left out would be lost."""
    rooms = list[int]()

    def cut(request: ModelRequest) -> ReplyItems:
        rooms.append(request.max_tokens or 0)
        reason = "stop" if len(rooms) == reached else "max_tokens"
        return [Text(SUMMARY), Finish(reason=reason, model="scripted")]

    model.summary, reached = cut, 2
    said = await say_all(client, ["One.", "Two.", "Three.", "/compact"])
    assert said.text.startswith("The first 4 messages are summarised") and rooms[1] > rooms[0]
    record = await record_of(client, said.accepted.conversation)
    reached = 0
    said = await say_all(client, ["Four.", "/compact"], said.accepted.conversation)
    assert "The summary breaks off" in said.text
    filtered = [Text(SUMMARY), Finish(reason="content_filter", model="scripted")]
    model.summary = lambda request: filtered
    said = await say_all(client, ["/compact"], said.accepted.conversation)
    assert "The summary breaks off" in said.text
    assert await record_of(client, said.accepted.conversation) == record


async def test_the_command_names_the_plugin_that_is_not_loaded() -> None:
    """With the setting that enables it."""
    model = Model()
    disabled = {"plugins.disabled": ("trunkline-compaction",), "plugins.compaction.keep_messages": 6}
    async with talking(model, **disabled) as running:
        said = await say_all(running, ["One.", "/compact"])
        assert "the plugin `compaction` is not loaded" in said.text and "[plugins] disabled" in said.text


async def test_a_conversation_is_compacted_over_http(model: Model, client: BlockClient) -> None:
    """POST is the command and DELETE its undo; both answer with the turn (202). A repeat is the same turn."""
    answer = await say_all(client, ["One.", "Two.", "Three."])
    path = f"/api/conversations/{answer.accepted.conversation}/compact"
    headers = {"Authorization": f"Bearer {client.platform.token}", "Idempotency-Key": "once"}
    async with httpx2.AsyncClient(base_url=client.platform.url, headers=headers) as http:
        replies = [await http.post(path, json={"focus": "the names"}) for _ in range(2)]
        assert [reply.status_code for reply in replies] == [202, 202]
        assert replies[0].json() == replies[1].json()
        accepted = msgspec.structs.replace(answer.accepted, turn=replies[0].json()["turn"])
        assert (await client.answer(accepted)).text.startswith("The first 4 messages are summarised")
        reply = await http.request("DELETE", path, headers={"Idempotency-Key": "undo"})
        accepted = msgspec.structs.replace(answer.accepted, turn=reply.json()["turn"])
        assert "is withdrawn" in (await client.answer(accepted)).text
        wrong = await http.post(path, json={"focus": "undo"})
        assert (wrong.status_code, wrong.json()["metadata"]["field"]) == (400, "/focus")
        missing = await http.post("/api/conversations/conv_none/compact", headers={"Idempotency-Key": "n"})
        assert missing.status_code == 404


# Requests that are too long ----------------------------------------------------------------------------------


async def test_a_request_that_is_too_long_is_sent_again_after_a_compaction(
    model: Model, client: BlockClient
) -> None:
    """The model refuses it before its first event; the conversation is compacted once, and the answer arrives. The
    journal has the record that the answer was written with, and the turn can be replayed."""
    answer = await say_all(client, ["One.", "Two.", "Three."])
    conversation = answer.accepted.conversation
    model.limit = 4
    said = await say_all(client, ["Four."], conversation)
    assert (said.text, said.ended.reason) == (ANSWER, "stop")
    assert [status.text for status in statuses(said)] == ["Summarising 4 older messages …"]
    assert SUMMARY in contents(model.turns[-1])[0] and len(model.turns) == 5
    record = await record_of(client, conversation)
    finished = [one for one in await journal(client, said) if isinstance(one, ModelCallFinished)]
    assert [one.summary_record for one in finished] == [record]
    report = await replay_of(client, said)
    assert report.same, report.records


async def test_a_second_overflow_is_reported(model: Model, client: BlockClient) -> None:
    """After one compaction the error goes to the person; also when nothing is old enough to summarise."""
    model.limit = 0
    first = await say_all(client, ["One."])
    assert first.ended.code is trunkline.ErrorCode.CONTEXT_OVERFLOW and model.summaries == []
    model.limit = None
    conversation = first.accepted.conversation
    await say_all(client, ["Two.", "Three."], conversation)
    model.limit, asked = 0, len(model.turns)
    said = await say_all(client, ["Four."], conversation)
    assert said.ended.code is trunkline.ErrorCode.CONTEXT_OVERFLOW
    assert len(model.summaries) == 1 and len(model.turns) == asked + 2


async def test_an_overflow_within_an_answer_is_not_repeated(model: Model, client: BlockClient) -> None:
    """After the first event nothing is sent again, so nobody reads a text twice."""
    answer = await say_all(client, ["One.", "Two.", "Three."])
    model.limit, model.late = 0, True
    said = await say_all(client, ["Four."], answer.accepted.conversation)
    assert said.ended.code is trunkline.ErrorCode.CONTEXT_OVERFLOW
    assert said.text == "We" and model.summaries == []


@pytest.mark.parametrize("counted", [None, 9_000])
async def test_a_request_for_a_smaller_model_is_compacted_before_it_is_sent(counted: int | None) -> None:
    """When the model changes to one with a smaller window, the size of the last request says nothing. The vendor's
    count decides, else an estimate."""
    model = Model()
    model.counted = counted
    long = "Long. " * 600
    async with talking(model, **{"models.context_windows": {"scripted/small": WINDOW}}, **LARGE) as running:
        answer = await say_all(running, [long] * (2 if counted else 16))
        conversation = answer.accepted.conversation
        assert model.summaries == []
        await running.gateway.choose_model(conversation, "scripted/small")
        long_as_needed = ["x" * 40_000] if counted else ["Go on."]
        said = await say_all(running, long_as_needed, conversation)
        assert said.text == ANSWER and len(model.summaries) > 0
        assert SUMMARY in contents(model.turns[-1])[0]


async def test_a_request_that_the_vendor_counts_as_small_is_sent_as_it_is(
    model: Model, client: BlockClient
) -> None:
    """The upper estimate alone compacts nothing."""
    await say_all(client, ["One.", "Two.", "x" * 30_000])
    assert model.summaries == [] and len(model.turns) == 3


async def test_what_is_counted_passed_the_middleware() -> None:
    """A vendor that counts tokens receives no text that redaction would have replaced."""
    model = Model()

    class Secretive:
        @trunkline.hookimpl
        def trunkline_model_middleware(self) -> Sequence[ModelMiddleware]:
            async def hidden(request: ModelRequest, proceed: AskModel) -> AsyncIterator[ModelEvent]:
                messages = tuple(
                    msgspec.structs.replace(one, content=one.content.replace("hunter2", "[1]"))
                    for one in request.messages
                )
                async for event in proceed(msgspec.structs.replace(request, messages=messages)):
                    yield event

            return [hidden]

    async with talking(model, None, Secretive()) as running:
        await say_all(running, ["hunter2 " + "x" * 30_000])
    assert len(model.counts) == 1 and "hunter2" not in str(model.counts[0].messages)


# Rebirth -----------------------------------------------------------------------------------------------------


async def memory_of(running: BlockClient) -> str:
    """The text of the block's ``memory.md``."""
    file = await running.bus.call(MEMORY_READ, ReadMemory(path=f"blocks/{running.block}/memory.md"))
    return file.content


async def test_a_rebirth_begins_anew_with_the_memory_of_the_block(tmp_path: Path) -> None:
    """The summary of all messages is in ``memory.md``, which a new conversation of the block begins with, and the next
    answer in this one knows it. A restart changes nothing of it (MB-T13, MB-F12)."""
    model = Model()
    async with talking(model, tmp_path) as running:
        answer = await say_all(running, ["The code is 4711.", "Two."])
        conversation = answer.accepted.conversation
        said = await say_all(running, ["/rebirth the code"], conversation)
        assert said.text.startswith("All 4 messages so far are summarised, by scripted/scripted.")
        assert SUMMARY in await memory_of(running)
        await say_all(running, ["What is it?"], conversation)
        system = str([m.content for m in model.turns[-1].messages if m.role == "system"])
        assert SUMMARY in system and contents(model.turns[-1])[1] == "/rebirth the code"
        before = await memory_of(running)
    async with talking(model, tmp_path) as running:
        assert await memory_of(running) == before
        await say_all(running, ["Hello in another conversation."])
        assert SUMMARY in str([m.content for m in model.turns[-1].messages if m.role == "system"])


async def test_two_rebirths_forget_nothing_said_before_the_first(model: Model, client: BlockClient) -> None:
    """The first summary is input of the second, and stays in the history of the file (MB-T13b, MB-D17)."""
    answer = await say_all(client, ["The code is 4711.", "/rebirth"])
    model.summary = lambda request: "The roses are red."
    await say_all(client, ["The roses are red.", "/rebirth"], answer.accepted.conversation)
    assert SUMMARY in model.summaries[-1].messages[0].content
    text = await memory_of(client)
    assert text.index("The roses are red.") < text.index("## History") < text.index(SUMMARY)
    model.summary = lambda request: "The tulips are late."
    await say_all(client, ["The tulips are late.", "/rebirth"])
    text = await memory_of(client)
    assert all(fact in text for fact in (SUMMARY, "The roses are red.", "The tulips are late."))
    assert "The roses are red." in model.summaries[-1].messages[0].content


async def test_the_owner_chooses_rebirth_for_every_compaction() -> None:
    """With ``rebirth`` in the settings the summary of a compaction in the background is in ``memory.md`` (MB-F11)."""
    model = Model()
    async with talking(model, **{"plugins.compaction.rebirth": True}) as running:
        answer = await say_all(running, ["One."])
        model.size = 9_000
        await say_all(running, ["Two."], answer.accepted.conversation)
        record = await compacted(running, answer.accepted.conversation)
        assert record.count == 4 and SUMMARY in await memory_of(running)


async def test_a_rebirth_needs_a_block_that_remembers(model: Model, client: BlockClient) -> None:
    """In a block that remembers nothing the command says so, and compacts nothing."""
    answer = await say_all(client, ["One.", "Two."])
    file = f"blocks/{client.block}/block.toml"
    write = WriteMemory(path=file, content="[memory]\nenabled = false\n", actor="owner")
    await client.bus.call(MEMORY_WRITE, write)
    said = await say_all(client, ["/rebirth"], answer.accepted.conversation)
    assert said.text.startswith("Nothing is remembered in this block") and model.summaries == []


async def test_a_rebirth_needs_the_permission_to_write_the_memory() -> None:
    """A credential without ``memory:`` in its scopes cannot change ``memory.md`` by the command."""
    model = Model()

    class Guests:
        name = "guests"

        async def __call__(self, headers: Mapping[str, str]) -> Identity | None:
            guest = Identity(id="guest", permissions=("tools:*",))
            return guest if headers.get("x-guest") == "ann" else None

        @trunkline.hookimpl
        def trunkline_authenticators(self) -> list[object]:
            return [self]

    async with talking(model, None, Guests()) as running:
        await share(running.bus)
        answer = await say_all(running, ["One.", "Two."])
        path = f"/api/conversations/{answer.accepted.conversation}/compact"
        async with httpx2.AsyncClient(base_url=running.platform.url, headers={"x-guest": "ann"}) as http:
            reply = await http.post(path, json={"rebirth": True})
        accepted = msgspec.structs.replace(answer.accepted, turn=reply.json()["turn"])
        said = await running.answer(accepted)
        assert said.text == "The permissions of this request do not include memory.md of this block."
        assert model.summaries == []


# Forks and search --------------------------------------------------------------------------------------------


async def test_a_fork_takes_the_summary_along(model: Model, client: BlockClient) -> None:
    """The forked turn is sent the request of the original, and the new conversation goes on with the same summary."""
    answer = await say_all(client, ["One.", "Two.", "Three.", "/compact", "Four."])
    asked = model.turns[-1]
    fork = await client.gateway.fork(ForkTurn(turn=answer.accepted.turn, step=0))
    await client.answer(fork)
    assert contents(model.turns[-1]) == contents(asked) and SUMMARY in contents(asked)[0]
    original = await record_of(client, answer.accepted.conversation)
    taken = await record_of(client, fork.conversation)
    assert original is not None and taken == original
    await say_all(client, ["Five."], fork.conversation)
    assert contents(model.turns[-1])[: len(contents(asked))] == contents(asked)
    await say_all(client, ["/compact undo"], fork.conversation)
    await say_all(client, ["Six."], fork.conversation)
    assert contents(model.turns[-1])[0] == "One."


async def test_a_summary_is_no_evidence(model: Model, client: BlockClient) -> None:
    """A search of memory finds what was said, and not what a model made of it."""
    model.summary = lambda request: "The zymurgist moved to Graz."
    answer = await say_all(client, ["The brewer moved to Graz.", "Two.", "/compact"])
    assert await record_of(client, answer.accepted.conversation) is not None
    hits = (await client.bus.call(MEMORY_SEARCH, SearchMemory(query="zymurgist"))).hits
    assert not [hit for hit in hits if "zymurgist" in hit.content]
    hits = (await client.bus.call(MEMORY_SEARCH, SearchMemory(query="brewer Graz"))).hits
    assert [hit for hit in hits if "brewer" in hit.content]
