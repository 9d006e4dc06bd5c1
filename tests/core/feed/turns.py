"""Generated turns for the tests of the feed: the events, and their publication by the owners of each epoch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import strategies as st
from msgspec import UNSET

from trunkline.contracts.conversations.messages import ToolCall
from trunkline.contracts.turns.feed_messages import (
    FeedEvent,
    FeedItem,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)

TURN = "turn_x"


@dataclass
class Screen:
    """A client: it shows received items and drops text on a reset.

    A client that ``returned`` between a reset and the text in its place receives the reset once more.
    """

    texts: dict[int, str] = field(default_factory=dict)
    others: list[FeedEvent] = field(default_factory=list)
    returned: bool = False

    def show(self, event: FeedEvent) -> None:
        match event:
            case TextDelta():
                known = self.texts.get(event.step, "")
                assert event.offset == len(known), "a gap or a repeat"
                self.texts[event.step] = known + event.text
            case TextReset():
                assert self.texts.pop(event.step, "") or self.returned, "a reset of nothing"
            case _:
                assert event not in self.others, "a repeat"
                self.others.append(event)
        self.returned = False


@dataclass
class Story:
    """A whole turn: the items in the order of their publication, and the required view of a client."""

    items: list[FeedItem]
    texts: dict[int, str]
    others: list[FeedEvent]


def items(epoch: int, *events: FeedEvent) -> list[FeedItem]:
    """An epoch's items from the first one on, with the numbers that the journal gives its events."""
    made, number = list[FeedItem](), 0
    for index, event in enumerate(events):
        numbered = isinstance(event, ToolStarted | ToolEnded)
        reported = number if numbered else UNSET
        made.append(FeedItem(turn=TURN, epoch=epoch, index=index, event=event, number=reported))
        number += numbered
    return made


def call(step: int) -> ToolCall:
    return ToolCall(id=f"call_{step}", name="look", arguments={"step": step})


def tool_events(step: int) -> list[FeedEvent]:
    ended = ToolEnded(step=step, call_id=f"call_{step}", name="look", output=f"seen {step}")
    return [ToolStarted(step=step, call=call(step)), ended]


def pieces(step: int, text: str, cuts: Iterable[int], begin: int = 0) -> Iterator[TextDelta]:
    """The text from ``begin`` on, cut at some places."""
    places = sorted({begin, *(cut for cut in cuts if begin < cut < len(text)), len(text)})
    for start, end in pairwise(places):
        yield TextDelta(step=step, offset=start, text=text[start:end])


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Generate a turn of a few steps under a few owners. Each new owner publishes the finished steps, then
    continues."""
    words = st.text("abc", min_size=1, max_size=8)
    cuts = st.lists(st.integers(0, 8), max_size=3)
    texts: dict[int, str] = {}
    done, published, begun, epoch = 0, list[FeedItem](), "", draw(st.integers(1, 3))
    steps = draw(st.integers(1, 3))
    while True:
        events: list[FeedEvent] = []
        for step in range(done):
            events += [*pieces(step, texts[step], draw(cuts)), *tool_events(step)]
        continues = bool(begun) and draw(st.booleans())
        if published and not continues:
            events.append(TextReset(step=done))
            begun = ""
        while done < steps:
            text = begun + draw(words)
            events += pieces(done, begun, draw(cuts)) if begun else ()
            events += pieces(done, text, draw(cuts), len(begun))
            if draw(st.integers(0, 3)) == 0 and epoch < 8:
                break  # the owner dies in mid-answer
            texts[done], begun = text, ""
            events += tool_events(done)
            done += 1
        else:
            events.append(TurnEnded(reason="stop"))
        kept = len(events) if done == steps else draw(st.integers(0, len(events)))
        published += items(epoch, *events[:kept])
        if done == steps:
            break
        begun = reported(published).get(done, "")
        epoch += draw(st.integers(1, 2))
    others = [event for step in range(steps) for event in tool_events(step)]
    return Story(_with_stragglers(draw, published), texts, [*others, TurnEnded(reason="stop")])


def reported(items: list[FeedItem]) -> dict[int, str]:
    """Return the part of an unfinished answer that the newest owner reads: it may continue from there."""
    texts: dict[int, str] = {}
    for item in items:
        match item.event:
            case TextDelta(step=step, offset=offset, text=text):
                texts[step] = texts.get(step, "")[:offset] + text
            case TextReset(step=step):
                texts.pop(step, None)
    return texts


def _with_stragglers(draw: st.DrawFn, items: list[FeedItem]) -> list[FeedItem]:
    """An old owner that does not know yet publishes its last items among the new one's."""
    late = draw(st.integers(0, 4))
    for _ in range(late):
        at = draw(st.integers(0, max(0, len(items) - 2)))
        to = draw(st.integers(at, len(items) - 1))
        if items[at].epoch < items[-1].epoch and not _passes_own(items, at, to):
            items.insert(to, items.pop(at))
    return items


def _passes_own(items: list[FeedItem], at: int, to: int) -> bool:
    return any(item.epoch == items[at].epoch for item in items[at + 1 : to + 1])
