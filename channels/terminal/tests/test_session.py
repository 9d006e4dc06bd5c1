"""The handling of the lines that a person enters."""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from trunkline.contracts.channels.foreground_channel import TerminalSession
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.gateway.answerer import Answerer
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.models.listing import AdapterListing, ListedModel
from trunkline.contracts.sentences.sentences import Sentences
from trunkline.contracts.turns.feed_messages import (
    MessageSteered,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.errors import TrunklineError
from trunkline.testing.channel_suite import wait_until
from trunkline.testing.scripted_gateway import ScriptedGateway, Step, echo
from trunkline_bus import RemoteFault
from trunkline_terminal import saved_conversation, text_format
from trunkline_terminal.ansi_style import AnsiStyle
from trunkline_terminal.chat_session import ChatSession
from trunkline_terminal.recording_screen import RecordingScreen
from trunkline_terminal.slash_completer import SlashCompleter
from trunkline_terminal.theme import DARK, chosen_theme

pytestmark = pytest.mark.anyio


class Talk:
    """A session on a scripted gateway, with its screen."""

    def __init__(self, gateway: ScriptedGateway, session: TerminalSession) -> None:
        self.gateway, self.screen = gateway, RecordingScreen()
        self.session = ChatSession(gateway, self.screen, session)

    async def say(self, *lines: str) -> None:
        """Enter lines and wait until their turns have ended."""
        for line in lines:
            await self.session.handle(line)
        await self.session.turns.wait_idle()


@asynccontextmanager
async def talking(
    answer: Callable[[SendMessage], Iterable[Step]] = echo, *, begin: TerminalSession | None = None
) -> AsyncIterator[Talk]:
    async with (
        ScriptedGateway(answer, blocks=("main", "work")) as gateway,
        anyio.create_task_group() as tasks,
    ):
        talk = Talk(gateway, begin or TerminalSession())
        await talk.session.begin()
        tasks.start_soon(talk.session.turns.run)
        tasks.start_soon(talk.session.state.update)
        tasks.start_soon(talk.session.show_approvals)
        with anyio.fail_after(60):
            yield talk
        tasks.cancel_scope.cancel()


async def test_consecutive_messages_join_one_conversation() -> None:
    """The first message starts a conversation, the next ones continue it."""
    async with talking() as talk:
        await talk.say("one", "two")
        first, second = talk.gateway.sent
        assert first.conversation is None and second.conversation == talk.session.place.conversation


async def test_new_begins_another_conversation() -> None:
    """After /new the next message starts another conversation, in the same block."""
    async with talking(begin=TerminalSession(block="work")) as talk:
        await talk.say("one", "/new", "two")
        assert [(message.block, message.conversation) for message in talk.gateway.sent] == [
            ("work", None)
        ] * 2


async def test_switch_changes_the_block_and_sends_the_rest() -> None:
    """/switch BLOCK TEXT begins a conversation there; /switch-BLOCK is the same."""
    async with talking() as talk:
        await talk.say("/switch work good morning", "/switch-main and here")
        assert [(message.block, message.content) for message in talk.gateway.sent] == [
            ("work", "good morning"), ("main", "and here"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["/switch wrok", "/switch", "/steer x", "/trace", "/context", "/save", "/load nope.json", "/nope"]
)
async def test_a_command_that_fails_is_reported_in_one_sentence(line: str) -> None:
    """A command that cannot be carried out says why, changes nothing and counts as failed."""
    async with talking() as talk:
        await talk.say(line)
        assert len(talk.screen.all("error")) == 1 and talk.gateway.sent == []
        assert talk.session.failed


async def test_an_unknown_block_names_the_nearest() -> None:
    """A block that is not there is refused at the start, with the one that was meant."""
    async with ScriptedGateway(blocks=("main", "work")) as gateway:
        with pytest.raises(TrunklineError) as caught:
            await Talk(gateway, TerminalSession(block="wrok")).session.begin()
    assert "work" in caught.value.hint


async def test_a_refused_message_is_reported() -> None:
    """The gateway's sentence is shown, and the next message may go through."""
    async with talking() as talk:
        talk.gateway.refuses = RemoteFault("too_large", "The message is too large.")
        await talk.say("x")
        talk.gateway.refuses = None
        await talk.say("y")
        assert talk.screen.all("error") == ["The message is too large."]
        assert talk.screen.text == "You said: y"


async def test_a_message_waits_for_an_unreachable_gateway() -> None:
    """The message is sent once when the gateway is back; the person is told of the outage and of its end."""
    async with talking() as talk:
        talk.gateway.away = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.say, "hello")
            await wait_until(lambda: talk.screen.all("warning"))
            assert talk.screen.statuses[-1].connected is False
            talk.gateway.away = False
        assert [message.content for message in talk.gateway.sent] == ["hello"]
        assert "The platform is back." in talk.screen.all("note")


async def test_interrupt_ends_the_running_turn() -> None:
    """Ctrl-C cancels the running turn; the queued ones continue."""

    def answer(message: SendMessage) -> Iterable[Step]:
        yield from [TextDelta(step=0, offset=0, text="I begin"), anyio.Event()]

    async with talking(lambda m: answer(m) if m.content == "long" else echo(m)) as talk:
        await talk.session.handle("long")
        await talk.session.handle("next")
        await wait_until(lambda: talk.screen.text == "I begin")
        assert await talk.session.interrupt() == "turn"
        await talk.session.turns.wait_idle()
        assert "Cancelled." in talk.screen.all("warning")
        assert talk.screen.text == "I beginYou said: next"
        assert await talk.session.interrupt() == "nothing"


async def test_steering_is_not_a_turn_of_its_own() -> None:
    """A message that the running turn took in is not shown a second time; one that came too late is."""
    taken = anyio.Event()
    steered: list[MessageSteered] = []

    def answer(message: SendMessage) -> Iterable[Step]:
        yield TextDelta(step=0, offset=0, text="I begin. ")
        yield taken
        yield from steered
        yield TurnEnded(reason="stop")

    async with talking(lambda m: answer(m) if m.content == "long" else echo(m)) as talk:
        await talk.session.handle("long")
        await wait_until(lambda: talk.session.turns.running)
        await talk.session.handle("/steer be brief")
        await talk.session.handle("/steer too late")
        assert [message.steer for message in talk.gateway.sent[1:]] == [talk.gateway.sent[1].steer] * 2
        first = talk.session.turns.waiting[0].message
        steered.append(MessageSteered(message=Message(id=first, role="user", content="be brief")))
        taken.set()
        await talk.session.turns.wait_idle()
        assert talk.screen.text == "I begin. You said: too late"


async def test_a_conversation_is_resumed() -> None:
    """Its last messages are shown, and the next message goes into it."""
    async with ScriptedGateway() as gateway, anyio.create_task_group() as tasks:
        said = [
            Message(id=f"m{n}", role="user" if n % 2 == 0 else "assistant", content=f"text {n}")
            for n in range(20)
        ]
        conversation = gateway.add_conversation("main", said, title="Old talk")
        talk = Talk(gateway, TerminalSession(conversation=conversation))
        await talk.session.begin()
        tasks.start_soon(talk.session.turns.run)
        assert talk.screen.all("message")[-1] == "text 18" and talk.screen.all("answer")[-1] == "text 19"
        assert "text 2" not in talk.screen.all("message")
        assert talk.screen.statuses[-1].title == "Old talk"
        await talk.say("more")
        assert gateway.sent[0].conversation == conversation
        tasks.cancel_scope.cancel()


async def test_an_unknown_conversation_is_refused() -> None:
    """There is a sentence instead of a sitting."""
    async with ScriptedGateway() as gateway:
        with pytest.raises(RemoteFault):
            await Talk(gateway, TerminalSession(conversation="conv_nope")).session.begin()


async def test_save_and_load(tmp_path: Path) -> None:
    """A saved conversation is loaded as a new one: the next message carries it, the one after that need not."""
    path = tmp_path / "talk.json"
    async with talking() as talk:
        await talk.say("one", f"/save {path}", f"/load {path}", "two", "three")
        one, two, three = talk.gateway.sent
        assert one.history is None
        assert two.conversation is None and two.history is not None
        assert [message.content for message in two.history] == ["one", "You said: one"]
        assert three.history is None and three.conversation is not None
        await talk.say(f"/save {tmp_path}/")
        assert f"to {tmp_path}/conversation_" in talk.screen.all("note")[-1]


async def test_status_blocks_and_trace_show_the_current_location() -> None:
    """They name the block, the conversation, the tokens and the turn."""
    async with talking() as talk:
        await talk.say("one", "/status", "/blocks", "/trace")
        reported = "\n".join(talk.screen.all("note"))
        assert talk.session.place.conversation in reported  # type: ignore[operator]
        assert "* main" in reported and "work" in reported
        assert "trunkline trace turn_" in reported


async def test_status_shows_the_cost_of_the_session() -> None:
    """The tokens of all turns, and their cost where models have a price; otherwise the cost is unknown."""

    def answer(message: SendMessage) -> Iterable[Step]:
        cost = 12_300 if message.content == "dear" else None
        yield TurnEnded(reason="stop", usage=Usage(input_tokens=100, output_tokens=20), cost=cost)

    async with talking(answer) as talk:
        await talk.say("/status")
        assert "tokens        none in this session" in talk.screen.all("note")[-1]
        await talk.say("one", "/status")
        assert "tokens        100 in / 20 out in this session" in talk.screen.all("note")[-1]
        assert "cost          not known" in talk.screen.all("note")[-1]
        await talk.say("dear", "/status")
        assert "200 in / 40 out" in talk.screen.all("note")[-1]
        assert "cost          $0.0123" in talk.screen.all("note")[-1]


async def test_the_status_line_names_the_model_that_answered() -> None:
    """A fallback may have been it. As soon as another model is chosen, or a new conversation begins, the line names the
    model of the next message."""

    def answer(message: SendMessage) -> Iterable[Step]:
        yield TurnEnded(reason="stop", answered_by="up/small")

    async with talking(answer) as talk:
        _models(talk.gateway)
        await talk.say("one")
        await anyio.wait_all_tasks_blocked()
        assert talk.screen.statuses[-1].model == "up/small"
        await talk.say("/model a/big")
        assert talk.screen.statuses[-1].model == "a/big"
        await talk.say("two", "/new")
        assert talk.screen.statuses[-1].model == "scripted/model"


async def test_context_shows_what_the_model_saw() -> None:
    """The parts of the last turn, or of the one that is named."""
    async with talking() as talk:
        await talk.say("one", "/context", "/context turn_7")
        last, named = talk.screen.all("note")[-2:]
        assert "100 of 8000 tokens (1.2% of the window)" in last
        assert last.splitlines()[-1].endswith("message") and "turn turn_7" in named


async def test_trace_draws_where_the_program_can() -> None:
    """The command line passes in the function that draws the trace."""

    async def draw(turn: str) -> str:
        return f"tree of {turn}"

    async with talking(begin=TerminalSession(trace=draw)) as talk:
        await talk.say("/trace turn_1")
        assert "tree of turn_1" in talk.screen.all("note")


async def test_MB_T11_another_channels_approval_is_listed_and_decided_by_id() -> None:
    """The approval is shown with its id; /approvals lists it; /approve decides it, here with "always". Decisions
    made elsewhere are reported, and a second decision gets one sentence."""
    async with talking() as talk:
        first, second = (
            talk.gateway.request_approval("Send the mail?"),
            talk.gateway.request_approval("Send another?"),
        )
        await wait_until(lambda: len(talk.screen.all("warning")) == 2)
        assert first.id in talk.screen.all("warning")[0] and "Send the mail?" in talk.screen.all("warning")[0]
        await talk.say("/approvals")
        assert f"To answer: /approve {second.id}" in talk.screen.all("note")[-1]
        await talk.say(f"/approve {first.id[:6]} always")
        assert (talk.gateway.decided, talk.gateway.scopes) == ([(first.turn, first.call, True)], ["always"])
        talk.gateway.settle(second, allow=False, by="channel:telegram")
        await wait_until(
            lambda: any("Denied by the owner in telegram" in text for text in talk.screen.all("note"))
        )
        await talk.say(f"/deny {second.id}", "/approve", "/approve nothing-like-an-id")
        assert len(talk.screen.all("error")) == 3 and len(talk.gateway.decided) == 1


async def test_MB_T11_a_question_of_another_conversation_is_answered_by_id() -> None:
    """It is shown with its proposals; /answer answers it in words or by a number, and without an answer says how."""
    async with talking() as talk:
        asked = talk.gateway.ask_question("Which one?", options=("the red", "the blue"))
        await wait_until(lambda: talk.screen.all("warning"))
        assert f"/answer {asked.id}" in talk.screen.all("warning")[0]
        await talk.say(f"/answer {asked.id}", f"/answer {asked.id[:6]} 2")
        assert talk.gateway.answers == ["the blue"] and "/answer ID TEXT" in talk.screen.all("error")[0]


@pytest.mark.parametrize("answer", ["", " ", "yess", "ok", "c", "a", "1", "true", "\n"])
def test_MN_T16_only_an_explicit_yes_allows_a_call(answer: str) -> None:
    """Enter, other words, and a wider yes where none is offered are no answer at all."""
    assert text_format.approval_prompt(Sentences(), wide=False).read(answer) is None


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("wide", [True, False])
async def test_a_prompt_names_the_keys_that_it_reads(language: str, wide: bool) -> None:
    """In one language, in the line, in the short form and in the reminder; each key is read as what the line says."""
    prompt = text_format.approval_prompt(Sentences(language=language), wide=wide)
    keys = prompt.keys.partition("? ")[2].split("/")
    answers = ["once", "conversation", "always", "no"] if wide else ["once", "no"]
    assert [prompt.read(key) for key in keys] == answers
    assert all(re.search(rf"\b{key}\b", prompt.hint) and re.search(rf"\b{key}\b", prompt.how) for key in keys)
    assert ("Allow?" in prompt.how) == (language == "en") and ("Erlauben?" in prompt.how) == (
        language == "de"
    )


async def test_the_english_prompts_are_as_they_were() -> None:
    """Whoever has learned the keys finds them again."""
    narrow, wide = (text_format.approval_prompt(Sentences(), wide=one) for one in (False, True))
    assert (narrow.how, narrow.keys, narrow.hint) == ("Allow? y/n", "Allow? y/n", "Answer y or n")
    assert wide.how == "Allow? y: this call, c: in this conversation, a: always, n: no"
    assert (wide.keys, wide.hint) == ("Allow? y/c/a/n", "Answer y, c, a or n")
    assert [wide.read(line) for line in ("y", "YES", "c", "a", "always", "n", "no", "j", "ja")] == [
        "once", "once", "conversation", "always", "always", "no", "no", None, None,
    ]  # fmt: skip


async def test_exit_ends_the_session() -> None:
    """/exit and /quit end the sitting, other lines do not."""
    async with talking() as talk:
        assert [await talk.session.handle(line) for line in ("/exit", "/quit", "", "/help")] == [
            False, False, True, True,
        ]  # fmt: skip


async def test_a_tool_result_can_be_shown_again_in_full() -> None:
    """/show is the last result, whole; /show 2 the one before it."""
    long = "\n".join(f"line {number}" for number in range(20))

    def answer(message: SendMessage) -> Iterable[Step]:
        for number, output in enumerate(("first", long)):
            call = ToolCall(id=f"c{number}", name="read_file", arguments={"path": f"{number}.md"})
            yield ToolStarted(step=0, call=call)
            yield ToolEnded(step=0, call_id=call.id, name=call.name, output=output)
        yield TurnEnded(reason="stop")

    async with talking(answer) as talk:
        await talk.session.handle("/show")
        assert "No tool has returned a result" in talk.screen.all("error")[-1]
        await talk.say("go")
        await talk.say("/show")
        assert talk.screen.all("note")[-1] == f"read_file path=1.md\n{long}"
        await talk.say("/show 2")
        assert talk.screen.all("note")[-1] == "read_file path=0.md\nfirst"
        await talk.say("/show 3")
        assert "fewer tool results" in talk.screen.all("error")[-1]


async def test_the_results_of_an_opened_conversation_can_be_shown() -> None:
    """/show has the tool results of earlier sessions, with their calls; those of the previous conversation are not
    in it."""
    call = ToolCall(id="c1", name="read_file", arguments={"path": "a.md"})
    said = [
        Message(id="m1", role="user", content="go"),
        Message(id="m2", role="assistant", content="", tool_calls=(call,)),
        Message(id="m3", role="tool", content="old text", tool_call_id="c1", name="read_file"),
        Message(id="m4", role="assistant", content="There it is."),
    ]
    async with talking() as talk:
        opened = talk.gateway.add_conversation("main", said)
        talk.session.turns.results.append(("other", "of another conversation"))
        await talk.session.handle(f"/open {opened}")
        await talk.session.handle("/show")
        assert talk.screen.all("note")[-1] == "read_file path=a.md\nold text"
        await talk.session.handle("/show 2")
        assert "fewer tool results" in talk.screen.all("error")[-1]
        assert talk.screen.all("answer") == ["There it is."]


async def test_conversations_are_listed_and_opened() -> None:
    """A conversation is opened by its number, id or id prefix; the next message joins it."""
    async with talking() as talk:
        await talk.say("one")
        first = talk.session.place.conversation
        await talk.say("/new", "two")
        await talk.say("/conversations")
        listed = talk.screen.all("note")[-1].splitlines()
        assert len(listed) == 3 and listed[-1].startswith("/open NUMBER")
        assert re.match(r" 1  \d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d  ", listed[0])
        assert first is not None and first in talk.session.listed
        await talk.say(f"/open {talk.session.listed.index(first) + 1}")
        assert talk.session.place.conversation == first
        await talk.say("three")
        assert talk.gateway.sent[-1].conversation == first
        await talk.say("/open 9")
        assert "no number 9" in talk.screen.all("error")[-1]
        await talk.say("/new", f"/open {first[:-1]}")
        assert talk.session.place.conversation == first or "fits 2" in talk.screen.all("error")[-1]
        await talk.say("/open nothing")
        assert "begins with 'nothing'" in talk.screen.all("error")[-1]


async def test_steering_does_not_break_the_answer_that_streams() -> None:
    """A message added to a running turn is shown without ending the text, which may be inside a block of code."""
    steered = MessageSteered(message=Message(id="m1", role="user", content="shorter"))

    def answer(message: SendMessage) -> Iterable[Step]:
        yield TextDelta(step=0, offset=0, text="```python\na = 1\n")
        yield steered
        yield TextDelta(step=0, offset=16, text="b = 2\n```\n")
        yield TurnEnded(reason="stop")

    async with talking(answer) as talk:
        await talk.say("go")
    kinds = [kind for kind, _ in talk.screen.shown]
    first, last = kinds.index("answer"), len(kinds) - 1 - kinds[::-1].index("answer")
    assert "settle" not in kinds[first:last]
    assert any("added to the turn: shorter" in note for note in talk.screen.all("note"))


def test_a_deadline_is_shown_in_local_time() -> None:
    """The time here and how long that is; the date too when it is another day's."""
    now = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    here = (now + timedelta(minutes=5)).astimezone()
    assert text_format.format_deadline(now + timedelta(minutes=5), now) == f"{here:%H:%M} (5 minutes)"
    assert text_format.format_deadline(now + timedelta(seconds=61), now).endswith("(1 minute)")
    assert text_format.format_deadline(now + timedelta(seconds=20), now).endswith("(20 seconds)")
    assert (
        text_format.format_deadline(now + timedelta(days=1), now)
        == f"{(now + timedelta(days=1)).astimezone():%Y-%m-%d %H:%M} (1 day)"
    )


def test_a_missing_file_is_named_as_given(tmp_path: Path) -> None:
    """.json is added to a name without it, and never twice."""
    assert saved_conversation.load_path(str(tmp_path / "x.json")) == tmp_path / "x.json"
    assert saved_conversation.load_path(str(tmp_path / "x")) == tmp_path / "x.json"


def test_a_result_is_folded_to_its_first_lines() -> None:
    """Three lines at the most, none wider than the terminal, and how to see the rest."""
    assert text_format.fold_output("", 40) == []
    assert text_format.fold_output("one\n\ntwo", 40) == ["one", "two"]
    assert text_format.fold_output("\n".join("abcde"), 40) == ["a", "b", "c", "… 2 more lines: /show"]
    assert text_format.fold_output("x" * 50, 10) == ["x" * 9 + "…", "… /show shows it whole"]


def test_a_diff_in_a_question_is_coloured_and_nothing_with_no_color() -> None:
    """Added lines are green, removed ones red; NO_COLOR removes the colours."""
    question = "Allow it?\n│ --- (no file)\n│ +++ a.md\n│ @@ -0,0 +1 @@\n│ +new\n│ -old\n│ same"
    lines = AnsiStyle(DARK).question(question, 80).splitlines()
    assert [line[:5] for line in lines] == [
        "\x1b[33m", "\x1b[2m│", "\x1b[2m│", "\x1b[2m│", "\x1b[32m", "\x1b[31m", "│ sam"
    ]  # fmt: skip
    assert "[3" not in AnsiStyle(chosen_theme("dark", None, {"NO_COLOR": "1"})).question(question, 80)


def _models(gateway: ScriptedGateway) -> None:
    names = ("a/big", "a/small")
    models = tuple(ListedModel(name=one, context_window=0, max_output=0, abilities=None) for one in names)
    gateway.listings = (AdapterListing(adapter="a", at=datetime.now(UTC), models=models),)


async def test_MN_F28_model_shows_and_chooses_the_model_of_the_conversation() -> None:
    """The status line shows it at once. A wrong name is refused with what there is, and changes nothing."""
    async with talking() as talk:
        _models(talk.gateway)
        await talk.say("tea", "/model")
        assert "a/big\n  a/small" in talk.screen.all("note")[-1] and talk.session.models == (
            "a/big",
            "a/small",
        )
        await talk.say("/model a/small")
        conversation = talk.session.place.conversation
        assert talk.gateway.chosen_models == {conversation: "a/small"}
        assert talk.screen.statuses[-1].model == "a/small"
        await talk.say("/model a/smal")
        assert "no model a/smal" in talk.screen.all("error")[-1] and talk.session.failed
        await talk.say("/model default")
        assert talk.gateway.chosen_models == {conversation: None}
        assert talk.screen.statuses[-1].model == "scripted/model"


async def test_a_model_chosen_before_the_first_message_is_kept() -> None:
    """The first message names it; the conversation has it from then on. /new begins without a choice."""
    async with talking() as talk:
        _models(talk.gateway)
        await talk.say("/model a/big")
        assert talk.screen.statuses[-1].model == "a/big"
        await talk.say("tea", "more tea", "/new", "coffee")
        assert [message.model for message in talk.gateway.sent] == ["a/big", None, None]
        first = talk.gateway.sent[1].conversation
        assert talk.gateway.chosen_models[first or ""] == "a/big"


def test_models_are_completed_by_any_part_of_their_name() -> None:
    """``/model sma`` offers ``a/small``; ``default`` is one of the names."""
    completer = SlashCompleter(lambda: (), lambda: ("a/big", "a/small"))

    def offered(text: str) -> list[str]:
        found = completer.get_completions(Document(text), CompleteEvent())
        return [completion.text for completion in found]

    assert offered("/model ") == ["default", "a/big", "a/small"]
    assert offered("/model SMA") == ["a/small"] and offered("/mod") == ["model"]


def test_a_session_without_a_model_begins_with_what_to_do() -> None:
    """The name of the offline adapter alone would not say that no model answers."""
    assert "trunkline init" in text_format.answerer_line(Answerer(label="offline"))
    assert text_format.answerer_line(Answerer(label="openai/gpt")) == "openai/gpt answers."
    assert text_format.answerer_line(Answerer()) == ""


@asynccontextmanager
async def attached(gateway: ScriptedGateway, conversation: str) -> AsyncIterator[Talk]:
    """A session that is attached to a conversation."""
    gateway.channel = "terminal"
    talk = Talk(gateway, TerminalSession(conversation=conversation, attached=True))
    await talk.session.begin()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.session.turns.run)
        tasks.start_soon(talk.session.follow_others)
        yield talk
        tasks.cancel_scope.cancel()


async def test_an_attached_session_shows_what_others_say() -> None:
    """A turn of another channel is shown with its question and channel; what is typed here is not shown twice."""
    async with ScriptedGateway() as gateway:
        conversation = gateway.add_conversation("main", [])
        async with attached(gateway, conversation) as talk:
            await gateway.say_elsewhere(conversation, "from the phone", channel="telegram")
            await wait_until(lambda: "You said: from the phone" in talk.screen.text)
            await talk.say("from here")
            await gateway.say_elsewhere(conversation, "again", channel="telegram")
            await wait_until(lambda: "You said: again" in talk.screen.text)
    messages = talk.screen.all("message")
    assert messages == ["You, in telegram: from the phone", "You, in telegram: again"]
    assert talk.screen.text.count("You said: from here") == 1


async def test_a_session_that_leaves_the_conversation_follows_the_next_one() -> None:
    """After /new nothing of the old conversation is shown, and the new one is followed once it has begun."""
    async with ScriptedGateway() as gateway:
        conversation = gateway.add_conversation("main", [])
        async with attached(gateway, conversation) as talk:
            await talk.say("/new")
            await gateway.say_elsewhere(conversation, "unseen")
            await talk.say("begins")
            begun = talk.session.place.conversation
            assert begun is not None and begun != conversation
            await gateway.say_elsewhere(begun, "seen", channel="telegram")
            await wait_until(lambda: "You said: seen" in talk.screen.text)
    assert "unseen" not in talk.screen.text
