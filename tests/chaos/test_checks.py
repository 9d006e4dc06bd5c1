"""The checks themselves: violations are found, so that a run without a finding is meaningful."""

import anyio
import pytest

from trunkline.contracts.blocks.messages import BlockStatus
from trunkline.contracts.conversations.messages import Message, ToolCall
from trunkline.contracts.tools.messages import ToolOutcome
from trunkline.contracts.turns.feed_messages import (
    FeedEvent,
    FeedItem,
    TextDelta,
    TextReset,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from trunkline.contracts.turns.journal_messages import ApprovalAsked, ApprovalRecorded

from .auditor import Past, decided, reported_effect, stale
from .faults import InjectedFault
from .feed_listener import Ear
from .load import Sent
from .model_requests import given_of, judge
from .programs import PlannedMessage
from .stream_gaps import gaps, longest, shown
from .tcp_relay import Wire
from .transcript import FeedTranscript, HttpTranscript

END = TurnEnded(reason="stop")


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(step=0, offset=offset, text=text)


def seen(*events: FeedEvent) -> FeedTranscript:
    transcript = FeedTranscript("feed")
    for number, event in enumerate(events):
        transcript.take(event, float(number))
    return transcript


def test_a_contiguous_stream_has_no_problem() -> None:
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
def test_a_stream_with_a_gap_has_a_problem(events: tuple[FeedEvent, ...]) -> None:
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


def test_a_stream_delay_is_attributed_to_the_fault_within_it() -> None:
    """It counts as that fault's own only without another fault."""
    stream = shown(FeedTranscript("feed", moments=[(0, 10.0), (0, 10.1), (0, 13.1), (0, 13.2), (1, 20.0)]))
    kill = InjectedFault(10.2, "monitor-a", "kill", alone=True)
    [gap] = gaps([kill], [stream])
    assert (round(gap.seconds, 1), gap.alone) == (3.0, True)
    cut = InjectedFault(11.0, "gateway", "cut", alone=False)
    assert [gap.alone for gap in gaps([kill, cut], [stream])] == [False, False]
    assert gaps([InjectedFault(14.0, "nats", "kill", alone=True)], [stream]) == []


def test_each_fault_counts_by_its_longest_stream_delay() -> None:
    """Streams that a fault did not touch make it look no better."""
    kill = InjectedFault(10.2, "monitor-a", "kill", alone=True)
    calm = [(10.0 + n / 10, 10.1 + n / 10) for n in range(40)]
    found = gaps([kill], [calm, calm, [(10.0, 13.0), (13.0, 13.1)]])
    assert sorted(round(gap.seconds, 1) for gap in found) == [0.1, 0.1, 3.0]
    assert [round(gap.seconds, 1) for gap in longest(found)] == [3.0]


def test_a_tool_call_counts_as_silence_beyond_its_own_duration() -> None:
    """The time that a person waits for a tool's worker counts; the tool's own duration does not."""
    ear = Ear()
    call = ToolCall(id="c", name="transfer", arguments={"before": 0.5, "after": 1.0})
    ended = ToolEnded(step=0, call_id="c", name="transfer")
    ear.take(FeedItem(turn="t", epoch=1, index=0, event=ToolStarted(step=0, call=call)), 10.0)
    ear.take(FeedItem(turn="t", epoch=2, index=0, event=ToolStarted(step=0, call=call)), 12.0)
    ear.take(FeedItem(turn="t", epoch=2, index=1, event=ended), 14.0)
    assert ear.silences["t"] == [(11.5, 14.0)]


def test_a_status_naming_a_finished_turn_is_stale() -> None:
    """Busy with it, or failed because another monitor has it."""
    assert stale(BlockStatus(status="BUSY", current_task="turn"))
    assert stale(BlockStatus(status="ERROR", error="interrupted"))
    assert not stale(BlockStatus(status="ACTIVE"))
    assert not stale(BlockStatus(status="ERROR", error="provider_error"))


@pytest.mark.parametrize(
    ("status", "count", "cancelled", "may_refuse", "sort"),
    [
        ("ok", 1, False, False, None),
        ("ok", 0, False, False, "lost"),
        ("unknown", 1, False, False, None),
        ("unknown", 0, False, False, None),
        ("error", 0, False, False, "broken"),
        ("error", 0, True, False, None),
        ("error", 0, False, True, None),
        ("error", 1, False, True, "broken"),
    ],
)
def test_the_auditor_compares_reported_effects_with_actual_ones(
    status: str, count: int, cancelled: bool, may_refuse: bool, sort: str | None
) -> None:
    """Done and not there, said not to be run and there, failed for no reason."""
    outcome = ToolOutcome(call="c", status=status, output="It was not run.")  # type: ignore[arg-type]
    reported = list(reported_effect("m", count, outcome, cancelled, may_refuse))
    assert [one for one, _ in reported] == ([sort] if sort else [])


@pytest.mark.anyio
async def test_a_relay_forwards_and_can_be_cut() -> None:
    """Open connections end; a new connection is forwarded."""
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


def reported(turn: str, said: str, answer: str) -> list[Message]:
    """A turn as it is stored."""
    return [
        Message(id=f"{turn}-0", role="user", content=said, turn=turn),
        Message(id=f"{turn}-1", role="assistant", content=answer, turn=turn),
    ]


STORED = [*reported("a", "say:a", "A"), *reported("b", "call b", "B"), *reported("c", "say:c", "C")]


def test_a_model_request_with_every_earlier_turn_passes() -> None:
    """Calls of every turn, one of them asked after its tool's result, and one about another conversation."""
    a, b, c = ("user", "say:a"), ("user", "call b"), ("user", "say:c")
    given = [
        (a,),
        (a, ("assistant", "A"), b),
        (a, ("assistant", "A"), b, ("assistant", "B")),
        (("user", "x"),),
    ]
    judged = judge([*given, (a, ("assistant", "A"), b, ("assistant", "B"), c)], STORED)
    assert (dict(judged.calls), judged.problems) == ({"a": 1, "b": 2, "c": 1}, [])


def test_a_model_request_without_an_earlier_turn_is_a_violation() -> None:
    """The later message overtook the earlier one, in any order of storage; or one answer is incomplete."""
    a, c = (("user", "say:a"), ("assistant", "A")), ("user", "say:c")
    assert judge([(*a, c)], STORED).problems
    assert judge([(*a, ("user", "call b"), ("assistant", "half"), c)], STORED).problems
    assert given_of({"messages": [{"role": "tool", "content": "t"}, {"role": "user", "content": "x"}]}) == (
        ("user", "x"),
    )


@pytest.mark.parametrize(
    ("granted", "recorded", "asked", "count", "sorts"),
    [
        ([True, True], [True], 1, 1, []),
        ([False], [False], 1, 0, []),
        ([True], [True], 2, 1, ["doubled", "lost"]),
        ([True], [False], 1, 0, ["broken"]),
        ([False], [False], 1, 1, ["broken"]),
        ([], [], 0, 0, ["lost"]),
    ],
    ids=["yes twice", "no", "asked again", "another verdict", "denied and done", "never asked"],
)
def test_the_auditor_compares_decisions_with_effects(
    granted: list[bool], recorded: list[bool], asked: int, count: int, sorts: list[str]
) -> None:
    """Each approval is requested once, the accepted decision is the one in the journal, and a denied call has no
    effect."""
    request = PlannedMessage(kind="asked", mark="m", program="", ending=None, verdicts=(True,))
    past = Past(
        [
            *(ApprovalAsked(call_id="c", call_hash="h", question="Pay?") for _ in range(asked)),
            *(ApprovalRecorded(call_id="c", allow=allow, by="owner") for allow in recorded),
        ]
    )
    assert [sort for sort, _ in decided(Sent(request, "c", "t", granted=granted), past, count)] == sorts
