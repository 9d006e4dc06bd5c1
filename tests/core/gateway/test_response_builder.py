"""The events of a response are a function of the turn, however its text arrives."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.turns.feed_events import JournalTranslator, provider_tool_events
from trunkline.contracts.turns.feed_messages import (
    FeedEvent,
    ReasoningDelta,
    TextDelta,
    TextReset,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.journal_messages import ModelCallFinished, ProviderToolResult
from trunkline.workers.gateway.http.openai.responses.response_builder import ResponseBuilder
from trunkline.workers.gateway.http.openai.responses.response_events import OutputTextDelta
from trunkline.workers.gateway.http.openai.responses.response_schemas import ResponseResource
from trunkline.workers.gateway.http.openai.responses.text_pieces import complete_pieces
from trunkline_bus import Refusal

STEP = st.tuples(st.text(max_size=80), st.text(max_size=80), st.sampled_from(("ours", "theirs", "none")))


def built(events: Iterable[FeedEvent]) -> list[bytes]:
    """Return the encoded events of a turn."""
    resource = ResponseResource(
        id="resp_a", created_at=1, status="in_progress", model="main", reasoning={"summary": "auto"}
    )
    builder = ResponseBuilder(resource, "turn_a")
    made = list(builder.begin())
    for event in events:
        made.extend(builder.add(event))
    return [msgspec.json.encode(one) for one in made]


def pieces(text: str, cuts: st.DataObject) -> list[tuple[int, str]]:
    """Cut a text anywhere."""
    found, at = [], 0
    while at < len(text):
        size = cuts.draw(st.integers(1, len(text) - at))
        found.append((at, text[at : at + size]))
        at += size
    return found


@given(st.lists(STEP, max_size=3), st.data())
def test_events_do_not_depend_on_how_text_arrives(
    steps: list[tuple[str, str, str]], cuts: st.DataObject
) -> None:
    """Text in any pieces, sent again after a reset in the middle, or whole, as from the journal: the same events."""
    live: list[FeedEvent] = []
    whole: list[FeedEvent] = []
    for number, (reasoning, text, tool) in enumerate(steps):
        thought = [ReasoningDelta(step=number, offset=at, text=p) for at, p in pieces(reasoning, cuts)]
        said = [TextDelta(step=number, offset=at, text=p) for at, p in pieces(text, cuts)]
        if cuts.draw(st.booleans()):
            half = [*thought, *said][: cuts.draw(st.integers(0, len(thought) + len(said)))]
            live += [*half, TextReset(step=number)]
        live += [*thought, *said]
        whole += [ReasoningDelta(step=number, offset=0, text=reasoning)] if reasoning else []
        whole += [TextDelta(step=number, offset=0, text=text)] if text else []
        call = ToolCall(id=f"c{number}", name="look")
        if tool != "none":
            started = ToolStarted(step=number, call=call, client=tool == "theirs")
            live.append(started)
            whole.append(started)
    end = TurnEnded(reason="stop")
    assert built([*live, end]) == built([*whole, end])


PART = st.tuples(st.sampled_from(("think", "say", "ran")), st.text(min_size=1, max_size=40))


@given(st.lists(PART, max_size=8))
def test_the_journal_has_the_events_that_were_live(parts: list[tuple[str, str]]) -> None:
    """Also if the model thought on after its text began, and the vendor ran tools in between: a reader that resumes
    after a crash, from the journal, numbers each event as the reader before it."""
    live: list[FeedEvent] = []
    said = {"think": "", "say": ""}
    late, ran = 0, []
    for number, (kind, text) in enumerate(parts):
        if kind == "ran":
            call = ToolCall(id=f"c{number}", name="search")
            ran.append(ProviderToolResult(call=call, output=text, at=len(said["say"])))
            live += provider_tool_events(0, ran[-1])
            continue
        shape = ReasoningDelta if kind == "think" else TextDelta
        live.append(shape(step=0, offset=len(said[kind]), text=text))
        late += len(text) if kind == "think" and said["say"] else 0
        said[kind] += text
    entry = ModelCallFinished(
        step=0, text=said["say"], reasoning=said["think"], late_reasoning=late, ran=tuple(ran)
    )
    whole = [one.event for one in JournalTranslator().translate(entry)]
    end = TurnEnded(reason="stop")
    assert built([*live, end]) == built([*whole, end])


@given(st.text(), st.text())
def test_later_text_changes_no_complete_piece(text: str, more: str) -> None:
    """Complete pieces are the beginning of the text, and of the pieces of any longer text."""
    first, second = complete_pieces(text), complete_pieces(text + more)
    assert text.startswith("".join(first)) and second[: len(first)] == first
    assert all(0 < len(piece) <= 48 for piece in second)


def test_a_word_arrives_when_it_is_complete() -> None:
    """The text is not held back until the end: a word is sent as soon as white space follows it."""
    resource = ResponseResource(id="resp_a", created_at=1, status="in_progress", model="main")
    builder = ResponseBuilder(resource, "turn_a")
    made = [*builder.add(TextDelta(step=0, offset=0, text="Hello wo"))]
    assert [event.delta for event in made if isinstance(event, OutputTextDelta)] == ["Hello"]
    made = [*builder.add(ToolStarted(step=0, call=ToolCall(id="c", name="ours")))]
    assert [event.delta for event in made if isinstance(event, OutputTextDelta)] == [" wo"]


@pytest.mark.parametrize("text", ["Other", "Hel"])
def test_text_that_was_sent_stays(text: str) -> None:
    """A repeated answer that is another one, or ends too early, is refused: the client has the old one."""
    resource = ResponseResource(id="resp_a", created_at=1, status="in_progress", model="main")
    builder = ResponseBuilder(resource, "turn_a")
    for _ in builder.add(TextDelta(step=0, offset=0, text="Hello world ")):
        pass
    with pytest.raises(Refusal):
        for event in (TextReset(step=0), TextDelta(step=0, offset=0, text=text), TurnEnded(reason="stop")):
            list(builder.add(event))
