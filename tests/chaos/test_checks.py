"""The checks themselves: what is broken is found, so that a run without a finding says something."""

import anyio
import pytest

from trunkline.messages.conversation import ToolCall
from trunkline.messages.turn import FeedEvent, TextDelta, TextReset, ToolStarted, TurnEnded

from .faults import Struck
from .gaps import gaps, shown
from .transcript import FeedTranscript, HttpTranscript
from .wire import Wire

END = TurnEnded(reason="stop")


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(step=0, offset=offset, text=text)


def seen(*events: FeedEvent) -> FeedTranscript:
    transcript = FeedTranscript("feed")
    for number, event in enumerate(events):
        transcript.take(event, float(number))
    return transcript


def test_a_stream_that_joins_has_no_problem() -> None:
    """Text in order, a reset and the same again, one end."""
    whole = seen(delta(0, "ab"), delta(2, "c"), TextReset(step=0), delta(0, "abc"), END)
    assert whole.problems == []
    assert (whole.text, whole.ended) == ("abc", True)


@pytest.mark.parametrize(
    "events",
    [
        (delta(0, "ab"), delta(3, "d")),
        (delta(0, "ab"), delta(1, "b")),
        (delta(0, "ab"), END, delta(2, "c")),
        (END, END),
        (ToolStarted(step=0, call=ToolCall(id="c", name="t")),) * 2,
    ],
    ids=["gap", "repeat", "after the end", "two ends", "two calls"],
)
def test_a_stream_that_does_not_join_has_one(events: tuple[FeedEvent, ...]) -> None:
    """Gaps, repeats and what comes after the end."""
    assert seen(*events).problems


def test_an_http_stream_is_read_like_a_browser_reads_it() -> None:
    """Deltas are added, a reset says the whole text, a result twice is a problem."""
    http = HttpTranscript("http")
    http.take("text-delta", "1.0", {"content": "wrong"})
    http.take("text-reset", "1.1", {"content": "ri"})
    http.take("text-delta", "1.2", {"content": "ght"})
    assert (http.text, http.position, http.problems) == ("right", "1.2", [])
    http.take("tool-result", "1.3", {"id": "c"})
    http.take("tool-result", "1.3", {"id": "c"})
    assert http.problems


def test_a_silence_is_counted_for_the_fault_in_its_middle() -> None:
    """And it is that fault's own only when there was no other."""
    stream = shown(FeedTranscript("feed", moments=[(0, 10.0), (0, 10.1), (0, 13.1), (0, 13.2), (1, 20.0)]))
    kill = Struck(10.2, "monitor-a", "kill", alone=True)
    [gap] = gaps([kill], [stream])
    assert (round(gap.seconds, 1), gap.alone) == (3.0, True)
    cut = Struck(11.0, "gateway", "cut", alone=False)
    assert [gap.alone for gap in gaps([kill, cut], [stream])] == [False, False]
    assert gaps([Struck(14.0, "nats", "kill", alone=True)], [stream]) == []


@pytest.mark.anyio
async def test_a_wire_carries_and_can_be_cut() -> None:
    """What was connected ends; a new connection goes through."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def echo(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            async for data in stream:
                await stream.send(data)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, echo)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with Wire(f"nats://127.0.0.1:{port}").laid() as wire:
            near = int(wire.url.rpartition(":")[2])
            for _ in range(2):
                async with await anyio.connect_tcp("127.0.0.1", near) as stream:
                    await stream.send(b"hello")
                    assert await stream.receive() == b"hello"
                    wire.cut()
                    with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                        await stream.receive()
        tasks.cancel_scope.cancel()
