"""The messages that stay after a compaction."""

from trunkline import Message, ToolCall
from trunkline_compaction.selection import count_covered

PLENTY = 100_000


def said(count: int, text: str = "Hello.") -> list[Message]:
    return [
        Message(id=f"m{n}", role="assistant" if n % 2 else "user", content=f"{text} {n}")
        for n in range(count)
    ]


def calling(id: str, *calls: str) -> Message:
    return Message(
        id=id,
        role="assistant",
        content="",
        tool_calls=tuple(ToolCall(id=call, name="look") for call in calls),
    )


def returned(call: str) -> Message:
    return Message(id=f"r{call}", role="tool", content="Found.", tool_call_id=call, name="look")


def test_the_newest_messages_stay() -> None:
    """Of ten messages the last three stay (MN-T9, MN-F27)."""
    assert count_covered(said(10), 0, keep=3, budget=PLENTY) == 7
    assert count_covered(said(10), 0, keep=0, budget=PLENTY) == 10


def test_nothing_older_than_the_kept_messages_covers_nothing() -> None:
    """Also when an earlier summary covers everything older (MN-T9)."""
    assert count_covered(said(3), 0, keep=3, budget=PLENTY) == 0
    assert count_covered(said(10), 7, keep=3, budget=PLENTY) == 7
    assert count_covered(said(10), 10, keep=3, budget=PLENTY) == 10
    assert count_covered([], 0, keep=3, budget=PLENTY) == 0


def test_a_small_budget_keeps_fewer_messages() -> None:
    """Six messages would stay, but fewer fit into the share of the window; counted from the newest (MN-T9)."""
    messages = said(6, "Long. " * 50)
    covered = count_covered(messages, 0, keep=6, budget=300)
    assert 0 < covered < 6


def test_a_message_larger_than_the_budget_is_covered() -> None:
    """The last message of 50 000 characters is summarised with those before it (MN-T9)."""
    messages = [*said(4), Message(id="big", role="user", content="x" * 50_000)]
    assert count_covered(messages, 0, keep=6, budget=8_000) == 5


def test_what_stays_never_begins_with_the_result_of_a_covered_call() -> None:
    """Calls and their results are covered together, also several results of one message (MN-T9)."""
    messages = [*said(4), calling("c", "1", "2"), returned("1"), returned("2"), *said(2, "Then.")]
    for keep in range(len(messages)):
        begin = count_covered(messages, 0, keep=keep, budget=PLENTY)
        calls = {call.id for message in messages[:begin] for call in message.tool_calls}
        assert not any(message.tool_call_id in calls for message in messages[begin:])
    assert count_covered(messages, 0, keep=3, budget=PLENTY) == 7


def test_a_call_that_waits_for_the_client_stays() -> None:
    """The client returns its result with the next message, and the result needs its call."""
    messages = [*said(4), calling("c", "1")]
    assert count_covered(messages, 0, keep=0, budget=PLENTY) == 4
    assert count_covered([*messages, returned("1")], 0, keep=0, budget=PLENTY) == 6
