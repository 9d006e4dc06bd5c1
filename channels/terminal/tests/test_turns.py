"""The display of a turn's feed to a person."""

from collections.abc import Callable, Iterable

import anyio
import pytest

from trunkline.contracts.approvals.messages import ApprovalDetail
from trunkline.contracts.conversations.messages import Message, ToolCall, Usage
from trunkline.contracts.gateway.messages import SendMessage
from trunkline.contracts.tools.messages import StoredResult
from trunkline.contracts.turns.feed_messages import (
    ApprovalRequested,
    ApprovalSettled,
    FeedEvent,
    MessageSteered,
    ReasoningDelta,
    StatusShown,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEnded,
)
from trunkline.errors import ErrorCode
from trunkline.testing.channel_suite import wait_until
from trunkline.testing.scripted_gateway import ScriptedGateway, Step
from trunkline_terminal.outage_notice import OutageNotice
from trunkline_terminal.recording_screen import RecordingScreen
from trunkline_terminal.turn_display import Render, TurnDisplay, TurnRef, TurnResult

pytestmark = pytest.mark.anyio
END = TurnEnded(reason="stop")
CALL = ToolCall(id="c1", name="read_file", arguments={"path": "notes/a b.md", "count": 3})


def text(part: str, offset: int = 0, step: int = 0) -> TextDelta:
    return TextDelta(step=step, offset=offset, text=part)


async def shown(
    steps: Iterable[Step], *, allow: bool | None = None, render: Render = None
) -> tuple[RecordingScreen, TurnResult, ScriptedGateway]:
    """Return the events that the screen showed of a turn."""
    screen = RecordingScreen(allow)
    async with ScriptedGateway(lambda message: steps) as gateway:
        accepted = await gateway.send(SendMessage(content="x"))
        followed = TurnRef(accepted.conversation, accepted.turn)
        with anyio.fail_after(60):
            outcome = await TurnDisplay(
                gateway, screen, OutageNotice(screen, lambda: None), followed, render
            ).show()
    return screen, outcome, gateway


async def test_overlapping_text_is_shown_once() -> None:
    """A repeat with a lower offset adds only the new text."""
    screen, outcome, _ = await shown([text("Hello "), text("Hello wor"), text("lo world", 3), END])
    assert screen.text == "Hello world"
    assert outcome == TurnResult(failed=False)


async def test_a_reset_voids_the_step() -> None:
    """After a reset the text of the step is sent again."""
    screen, _, _ = await shown([text("False"), TextReset(step=0), text("True"), END])
    assert screen.text == "True"


async def test_a_status_is_shown_unchanged() -> None:
    """A HUD's box stands on lines of its own before the answer; a status without words is for programs only."""
    box = StatusShown(name="hud", data={"humor": 80}, text="╭─ LIVEHUD\n╰─")
    screen, _, _ = await shown([box, StatusShown(name="cost", data={"usd": 1}), text("Tea."), END])
    assert [item for item in screen.shown if item[0] in ("note", "answer")][:2] == [
        ("note", "╭─ LIVEHUD\n╰─"), ("answer", "Tea."),
    ]  # fmt: skip


async def test_steps_and_tools_come_in_order() -> None:
    """Text is settled before a tool is shown, and the label names the arguments."""
    screen, _, _ = await shown(
        [text("I look."), ToolStarted(step=0, call=CALL), ToolEnded(step=0, call_id="c1", name="read_file"),
         text("Done.", step=1), END]
    )  # fmt: skip
    label = 'read_file path="notes/a b.md" count=3'
    assert [item for item in screen.shown if item[0] != "note"] == [
        ("answer", "I look."), ("settle", ""), ("started", label), ("settle", ""), ("done", label), ("settle", ""),
        ("answer", "Done."), ("settle", ""),
    ]  # fmt: skip


async def test_a_running_tool_shows_its_last_line() -> None:
    """The last line of output that is not blank, or what the tool says about its progress; nothing after its end."""
    screen, _, _ = await shown(
        [ToolStarted(step=0, call=CALL),
         ToolProgressed(step=0, call_id="c1", output="one\ntwo\n\n"),
         ToolProgressed(step=0, call_id="c1", note="half way"),
         ToolEnded(step=0, call_id="c1", name="read_file"),
         ToolProgressed(step=0, call_id="c1", output="late"), END]
    )  # fmt: skip
    assert screen.all("progress") == ["two", "half way"]


async def test_a_stored_result_is_shown_with_the_command_that_reads_it() -> None:
    """The model received a part of the result; the person sees the command that prints all of it."""
    stored = StoredResult(id="k3v7q", characters=200_000, kept=200_000)
    ended = ToolEnded(step=0, call_id="c1", name="read_file", stored=stored)
    screen, _, _ = await shown([ToolStarted(step=0, call=CALL), ended, END])
    (note,) = [text for text in screen.all("note") if "200000" in text]
    assert note.endswith("trunkline results show k3v7q")


async def test_the_end_shows_tokens_and_time() -> None:
    """The shown tokens are the provider's count."""
    screen, outcome, _ = await shown(
        [TurnEnded(reason="stop", usage=Usage(input_tokens=123, output_tokens=45))]
    )
    assert screen.all("note")[-1].startswith("123 in / 45 out · ")
    assert outcome.usage.output_tokens == 45


async def test_a_failure_is_reported() -> None:
    """The fixed sentence and the code are shown, and the turn counts as failed."""
    screen, outcome, _ = await shown([TurnEnded(reason="error", code=ErrorCode.INTERNAL, sentence="Sorry.")])
    assert screen.all("error") == ["Sorry. (internal)"]
    assert outcome.failed


async def test_a_provider_failure_is_shown_with_a_hint() -> None:
    """The sentence for clients names no cause, so a person is told where to find it."""
    ended = TurnEnded(reason="error", code=ErrorCode.PROVIDER_ERROR, sentence="It failed.")
    screen, _, _ = await shown([ended])
    assert screen.all("error") == ["It failed. (provider_error)"]
    assert "doctor --online" in screen.all("note")[0]


async def test_a_tool_does_not_run_on_when_its_turn_was_cancelled() -> None:
    """A turn that is cancelled while a question waits ends without the end of its call; the call's clock stops."""
    screen, _, _ = await shown([ToolStarted(step=0, call=CALL), TurnEnded(reason="cancelled")])
    assert len(screen.all("started")) == 1 and screen.all("failed") == screen.all("started")


@pytest.mark.parametrize(("allow", "word"), [(True, "Allowed"), (False, "Denied")])
async def test_a_decision_is_sent_to_the_gateway(allow: bool, word: str) -> None:
    """A person's yes or no goes to the gateway with the call."""
    settled = anyio.Event()
    steps: list[Step] = [
        ApprovalRequested(call=CALL, call_hash="h", question="May I?"),
        settled,
        ApprovalSettled(call_id="c1", allow=allow, by="terminal"),
        END,
    ]
    screen = RecordingScreen(allow)
    async with ScriptedGateway(lambda message: steps) as gateway, anyio.create_task_group() as tasks:
        accepted = await gateway.send(SendMessage(content="x"))
        view = TurnDisplay(
            gateway, screen, OutageNotice(screen, lambda: None), TurnRef(accepted.conversation, accepted.turn)
        )
        tasks.start_soon(view.show)
        await wait_until(lambda: gateway.decided)
        settled.set()
    assert gateway.decided == [(accepted.turn, "c1", allow)]
    assert screen.all("note")[0] == f"{word} by terminal."


@pytest.mark.parametrize(("typed", "said"), [("2", "the blue"), ("The Red", "the red"), ("green", "green")])
async def test_an_answer_is_sent_to_the_gateway(typed: str, said: str) -> None:
    """An agent's question is answered on the input line: in words, or by the number of a proposal."""
    settled = anyio.Event()
    detail = ApprovalDetail(kind="question", text="Which one?", options=("the red", "the blue"))
    steps: list[Step] = [
        ApprovalRequested(call=CALL, call_hash="h", question="The agent asks you:", detail=detail),
        settled,
        ApprovalSettled(call_id="c1", allow=True, by="terminal", answer=said),
        END,
    ]
    screen = RecordingScreen(reply=typed)
    async with ScriptedGateway(lambda message: steps) as gateway, anyio.create_task_group() as tasks:
        accepted = await gateway.send(SendMessage(content="x"))
        view = TurnDisplay(
            gateway, screen, OutageNotice(screen, lambda: None), TurnRef(accepted.conversation, accepted.turn)
        )
        tasks.start_soon(view.show)
        await wait_until(lambda: gateway.decided)
        settled.set()
    assert gateway.answers == [said] and gateway.decided == [(accepted.turn, "c1", True)]
    assert "1. the red" in screen.all("question")[0] and screen.all("note")[0] == "Answered by terminal."


REFUSING = (
    "nein", "ablehnen", "verbieten", "verweigern", "abbrechen", "nicht", "nie", "niemals", "untersagen", "sperren",
    "stopp", "halt", "keinesfalls", "zurückweisen", "aufhören", "weigern", "blockieren", "beenden", "unterlassen",
)  # fmt: skip
"""German words with which a person might refuse."""


async def answered(reply: str | None, *, wide: bool = True) -> tuple[RecordingScreen, ScriptedGateway]:
    """Return what a German terminal showed about a call, and what it decided when a person typed a line."""
    detail = ApprovalDetail(text="a.md", shape="s" if wide else "", covers="read_file")
    question = "The agent of block main wants to read something: read_file. Allow it?"
    steps = [
        ApprovalRequested(call=CALL, call_hash="h", question=question, detail=detail),
        *(() if reply is None else [anyio.Event()]),
        ApprovalSettled(call_id="c1", allow=False, by="channel:terminal"),
        ApprovalSettled(call_id="c1", allow=True, by="channel:terminal", scope="conversation"),
        ApprovalSettled(call_id="c1", allow=False, by="deadline"),
        END,
    ]
    screen = RecordingScreen(reply=reply)
    async with ScriptedGateway(lambda message: steps) as gateway:
        gateway.sentences.language = "de"
        accepted = await gateway.send(SendMessage(content="x"))
        followed = TurnRef(accepted.conversation, accepted.turn)
        view = TurnDisplay(gateway, screen, OutageNotice(screen, lambda: None), followed)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(view.show)
            if reply is not None:
                await wait_until(lambda: gateway.decided or screen.all("warning"))
                tasks.cancel_scope.cancel()
    return screen, gateway


@pytest.mark.parametrize(
    "line", ["a", "A", "", " ", "al", "c", "jein", "ja nein", "jaa", "k", "v", "u", "s", "ok"]
)
async def test_an_unclear_line_decides_nothing_in_german(line: str) -> None:
    """The English key for "always" begins "Ablehnen". What is no listed word is neither a yes nor a no."""
    _, gateway = await answered(line)
    assert gateway.decided == []


@pytest.mark.parametrize("word", REFUSING)
async def test_no_german_refusal_allows(word: str) -> None:
    """Neither the word nor its first letter."""
    for line in (word, word[0], word.upper()):
        _, gateway = await answered(line)
        assert not any(allow for _, _, allow in gateway.decided)


@pytest.mark.parametrize(
    ("line", "allow", "scope"),
    [
        ("j", True, "once"), ("Ja", True, "once"), ("g", True, "conversation"), ("Gespräch", True, "conversation"),
        ("i", True, "always"), ("immer", True, "always"), ("n", False, "once"), ("nein", False, "once"),
        ("Ablehnen", False, "once"), ("yes", True, "once"), ("no", False, "once"), ("always", True, "always"),
    ],
)  # fmt: skip
async def test_german_words_and_whole_english_ones_decide(line: str, allow: bool, scope: str) -> None:
    """Each means the same wherever it is understood."""
    _, gateway = await answered(line)
    assert [said for _, _, said in gateway.decided] == [allow] and gateway.scopes == [scope]


async def test_a_wider_yes_counts_only_where_it_is_offered_in_german() -> None:
    """As in English."""
    for line in ("i", "immer", "g", "always"):
        _, gateway = await answered(line, wide=False)
        assert gateway.decided == []


async def test_outcomes_are_in_german() -> None:
    """Who decided, how far it reaches, and that nobody did."""
    screen, _ = await answered(None)
    assert screen.all("note")[:3] == [
        "Abgelehnt von dem Eigentümer im Terminal.",
        "Erlaubt von dem Eigentümer im Terminal (in diesem Gespräch).",
        "Niemand hat rechtzeitig entschieden, deshalb wurde der Aufruf abgelehnt.",
    ]


async def test_without_a_terminal_the_approval_stays_pending() -> None:
    """Without a terminal to ask at, nothing is decided, and the display ends."""
    screen, outcome, gateway = await shown(
        [ApprovalRequested(call=CALL, call_hash="h", question="May I?"), anyio.Event()]
    )
    assert gateway.decided == []
    assert outcome.undecided and outcome.failed
    assert screen.all("question") and "trunkline approvals approve" in screen.all("warning")[0]
    detail = ApprovalDetail(kind="question", text="Which?")
    asked = ApprovalRequested(call=CALL, call_hash="h", question="Which?", detail=detail)
    screen, outcome, gateway = await shown([asked, anyio.Event()])
    assert outcome.undecided and screen.all("warning")[0].endswith(" TEXT")


async def test_a_settled_question_is_not_asked() -> None:
    """Reading a turn again after the decision asks no question."""
    screen, _, gateway = await shown(
        [ApprovalRequested(call=CALL, call_hash="h", question="May I?"),
         ApprovalSettled(call_id="c1", allow=True, by="web"), END],
        allow=True,
    )  # fmt: skip
    assert screen.all("question") == [] and gateway.decided == []


async def test_an_outage_is_reported_once_and_repeats_nothing() -> None:
    """The person is told that the gateway is gone, and the text continues at the same position."""
    gate = anyio.Event()
    steps: list[Step] = [text("Before. "), gate, text("After.", 8), END]
    screen = RecordingScreen()
    async with ScriptedGateway(lambda message: steps) as gateway, anyio.create_task_group() as tasks:
        accepted = await gateway.send(SendMessage(content="x"))
        view = TurnDisplay(
            gateway, screen, OutageNotice(screen, lambda: None), TurnRef(accepted.conversation, accepted.turn)
        )
        tasks.start_soon(view.show)
        await wait_until(lambda: screen.text == "Before. ")
        gateway.away = True
        gate.set()
        await wait_until(lambda: screen.all("warning"))
        await anyio.sleep(0.6)
        gateway.away = False
    assert screen.text == "Before. After."
    assert len(screen.all("warning")) == 1
    assert screen.all("note")[0] == "The platform is back."


async def test_an_unknown_turn_is_reported() -> None:
    """An unknown turn is an error, not an endless wait."""
    screen = RecordingScreen()
    async with ScriptedGateway() as gateway:
        outcome = await TurnDisplay(
            gateway, screen, OutageNotice(screen, lambda: None), TurnRef("c", "t")
        ).show()
    assert outcome.failed and "nothing by that name" in screen.all("error")[0]


async def test_a_steered_message_is_reported() -> None:
    """A message that was taken in is known by its id."""
    message = Message(id="msg_1", role="user", content="And be brief.")
    screen, _, _ = await shown([MessageSteered(message=message), END])
    assert "And be brief." in screen.all("note")[0]


async def test_plugins_may_rephrase_events() -> None:
    """A plugin's text replaces the event; the same text in a row is shown once, and "" shows nothing."""
    thinking = [ReasoningDelta(step=0, offset=at, text="x") for at in range(3)]
    tool = ToolStarted(step=0, call=CALL)

    def render(event: FeedEvent) -> str | None:
        words: dict[type, str] = {ReasoningDelta: "(thinking)", ToolStarted: "", TextDelta: "ANSWER"}
        return words.get(type(event))

    worded: Callable[[FeedEvent], str | None] = render
    screen, outcome, _ = await shown([*thinking, tool, text("answer"), END], render=worded)
    assert screen.all("note")[0] == "(thinking)" and screen.text == "ANSWER"
    assert screen.all("reasoning") == screen.all("started") == []
    assert not outcome.failed
