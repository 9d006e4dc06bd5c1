"""The order of a feed, for any order of arrival: ``trunkline.contracts.turns.feed_merge`` without a bus."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline.contracts.turns.feed_merge import FeedMerge, parse_position
from trunkline.contracts.turns.feed_messages import FeedEvent, FeedItem, TextDelta, TextReset, TurnEnded

from .turns import TURN, Screen, Story, stories


class WithoutText(Screen):
    """Shows everything else."""

    def show(self, event: FeedEvent) -> None:
        if not isinstance(event, TextDelta | TextReset):
            super().show(event)


class Reader:
    """Passes the output of a merge to a screen, and can break off and resume. No two events have one position."""

    def __init__(self) -> None:
        self.merge = FeedMerge()
        self.screen: Screen = Screen()
        self.position = ""
        self.passed: set[str] = set()

    def take(self, limit: int | None = None) -> None:
        for count, (position, event) in enumerate(self.merge.take()):
            assert position not in self.passed
            self.passed.add(position)
            self.position = position
            self.screen.show(event)
            if limit is not None and count + 1 >= limit:
                break

    def come_back(self, stored: Iterable[FeedItem]) -> None:
        stored = list(stored)
        self.passed.clear()
        self.merge = FeedMerge()
        self.merge.resume(self.position, stored)
        self.merge.offer_stored(stored)
        self.screen.returned = True


def play(story: Story, draw: Callable[[st.SearchStrategy[int]], int]) -> Reader:
    """Publish the story item by item to a reader that misses some live items and reads the stream from time to time."""
    reader = Reader()
    joined = draw(st.integers(0, len(story.items)))
    reader.merge.offer_stored(story.items[:joined])
    for count, item in enumerate(story.items[joined:], joined + 1):
        what = draw(st.integers(0, 9))
        if what < 6:
            reader.merge.offer(item)
        if what == 6:
            reader.merge.offer(story.items[draw(st.integers(0, count - 1))])
        if what == 7:
            reader.merge.offer_stored(story.items[:count])
        if what == 8:
            reader.take(limit=1)
            reader.come_back(story.items[:count])
        if what != 9:
            reader.take()
    reader.merge.offer_stored(story.items)
    reader.take()
    return reader


@examples(1000, deadline=None)
@given(story=stories(), data=st.data())
def test_no_gap_and_no_repeat(story: Story, data: st.DataObject) -> None:
    """For any loss, duplication, reordering and resumption of items, the client's final view equals the story."""
    reader = play(story, data.draw)
    assert reader.merge.ended
    assert reader.screen.texts == story.texts
    assert sorted(map(repr, reader.screen.others)) == sorted(map(repr, story.others))
    assert reader.merge.text == "".join(story.texts[step] for step in sorted(story.texts))


@examples(500, deadline=None)
@given(story=stories(), data=st.data())
def test_a_reader_can_resume_at_every_position(story: Story, data: st.DataObject) -> None:
    """After each single event a new reader can continue from the position, any number of times."""
    reader = Reader()
    for count, item in enumerate(story.items, 1):
        reader.merge.offer(item)
        reader.take(limit=1)
        reader.come_back(story.items[:count])
        if data.draw(st.booleans()):
            reader.take()
    reader.take()
    assert reader.screen.texts == story.texts
    assert sorted(map(repr, reader.screen.others)) == sorted(map(repr, story.others))


@examples(1000, deadline=None)
@given(story=stories(), data=st.data())
def test_items_lost_by_the_feed_are_shown_once(story: Story, data: st.DataObject) -> None:
    """A client that returns to a feed with lost items may receive text again, and no other item a second time."""
    reader = Reader()
    reader.screen = WithoutText()
    for count, item in enumerate(story.items, 1):
        reader.merge.offer(item)
        breaks_off = data.draw(st.booleans())
        reader.take(limit=1 if breaks_off else None)
        if reader.merge.ended:
            break
        if breaks_off:
            lost = data.draw(st.sets(st.integers(0, count - 1)))
            reader.come_back(one for at, one in enumerate(story.items[:count]) if at not in lost)
    reader.merge.offer_stored(story.items)
    reader.take()
    assert sorted(map(repr, reader.screen.others)) == sorted(map(repr, story.others))


def item(epoch: int, index: int, event: object) -> FeedItem:
    return FeedItem(turn=TURN, epoch=epoch, index=index, event=event)  # type: ignore[arg-type]


def test_a_late_reader_sees_only_the_newest_epoch() -> None:
    """A reader that starts after a takeover receives neither the dropped answer nor its reset."""
    merge = FeedMerge()
    merge.offer_stored(
        [
            item(1, 0, TextDelta(step=0, offset=0, text="dropped")),
            item(2, 0, TextReset(step=0)),
            item(2, 1, TextDelta(step=0, offset=0, text="kept")),
            item(2, 2, TurnEnded(reason="stop")),
        ]
    )
    events = [event for _, event in merge.take()]
    assert events == [TextDelta(step=0, offset=0, text="kept"), TurnEnded(reason="stop")]


def test_a_different_text_at_a_position_sends_a_reset() -> None:
    """When a new epoch has other text for a finished step, the client is told to drop the old text first."""
    merge = FeedMerge()
    merge.offer(item(1, 0, TextDelta(step=0, offset=0, text="abcd")))
    assert [event for _, event in merge.take()] == [TextDelta(step=0, offset=0, text="abcd")]
    merge.offer(item(3, 0, TextDelta(step=0, offset=0, text="abX")))
    assert [event for _, event in merge.take()] == [
        TextReset(step=0),
        TextDelta(step=0, offset=0, text="abX"),
    ]


def test_resuming_after_feed_loss_sends_the_answer_again() -> None:
    """A takeover during a server election: the first owner's items were shown and never stored, and the second
    starts at 0."""
    merge = FeedMerge()
    merge.resume("1.2", [item(1, 0, TextDelta(step=0, offset=0, text="one "))])
    merge.offer(item(2, 0, TextReset(step=1)))
    merge.offer(item(2, 1, TextDelta(step=0, offset=0, text="one two three")))
    merge.offer(item(2, 2, TextDelta(step=0, offset=13, text=" four")))
    assert [event for _, event in merge.take()] == [
        TextReset(step=1),
        TextReset(step=0),
        TextDelta(step=0, offset=0, text="one two three"),
        TextDelta(step=0, offset=13, text=" four"),
    ]


def test_a_long_answer_is_repeated_in_other_pieces() -> None:
    """A new owner repeats many small pieces as a few large ones, and goes on: the client gets only the new text."""
    merge = FeedMerge()
    text = "".join(f"{number:05} " for number in range(20_000))
    for index, begin in enumerate(range(0, len(text), 6)):
        merge.offer(item(1, index, TextDelta(step=0, offset=begin, text=text[begin : begin + 6])))
    assert "".join(event.text for _, event in merge.take() if isinstance(event, TextDelta)) == text
    assert merge.text == text
    whole = text + "and more"
    for index, begin in enumerate(range(0, len(whole), 50_000)):
        merge.offer(item(2, index, TextDelta(step=0, offset=begin, text=whole[begin : begin + 50_000])))
    assert [event for _, event in merge.take()] == [TextDelta(step=0, offset=len(text), text="and more")]
    assert merge.text == whole


def test_a_shortened_answer_is_sent_again() -> None:
    """When a finished step is shorter than what was shown of it, the client receives a reset first."""
    merge = FeedMerge()
    merge.offer(item(1, 0, TextDelta(step=0, offset=0, text="abcd")))
    assert len(list(merge.take())) == 1
    merge.offer(item(3, 0, TextDelta(step=0, offset=0, text="ab")))
    merge.offer(item(3, 1, TurnEnded(reason="stop")))
    assert [event for _, event in merge.take()] == [
        TextReset(step=0),
        TextDelta(step=0, offset=0, text="ab"),
        TurnEnded(reason="stop"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "1",
        "1.",
        ".1",
        "1.2.3",
        "1.-2",
        "1.2_1.3",
        "2.1_1.9",
        "1.2_",
        "٣.١",
        "1000000001.0",
        "~1",
        "1.2~",
        "1.2~x",
        "1.2-",
        "1.2-x",
        "1.2-1~3",
    ],
)
def test_an_invalid_position_is_refused(text: str) -> None:
    """A position that no reader ever gave out is refused."""
    with pytest.raises(ValueError, match="not a position"):
        parse_position(text)
