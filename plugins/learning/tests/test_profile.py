"""The profile (MN-F24) and the numbers (MN-F23): one turn at a time, each counted once."""

from datetime import UTC, date, datetime

from msgspec.structs import replace

from trunkline.contracts.conversations.messages import Message
from trunkline_learning import metrics, profile
from trunkline_learning.metrics import ModelMetrics
from trunkline_learning.profile import Profile
from trunkline_learning.turns import FinishedTurn, Provenance, ToolUse

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
NEW = Profile(created_at=AT, last_updated=AT)


def turn(number: int, said: str, *tools: ToolUse) -> FinishedTurn:
    return FinishedTurn(
        source=Provenance(block="main", conversation="c", turn=f"t{number}"),
        model="a/m", messages=(Message(id="m", role="user", content=said, created_at=AT),),
        answer="", tools=tools, at=AT,
    )  # fmt: skip


def test_scales_move_by_fifteen_hundredths() -> None:
    """An exponential moving average from the middle: a short message makes it less verbose."""
    one = profile.update_profile(NEW, turn(1, "hi there"))
    assert one.verbosity == 0.425 and one.interaction_count == 1 and one.last_turn == "t1"


def test_a_turn_is_counted_once_and_only_people_count() -> None:
    """MN-D6 is not repeated: the state holds the last turn that was counted."""
    one = profile.update_profile(NEW, turn(1, "Fix the python tests"))
    assert profile.update_profile(one, turn(1, "Fix the python tests")) is one
    assert profile.update_profile(one, replace(turn(2, "tick"), by_person=False)) is one


def test_fields_gain_and_lose_weight() -> None:
    """Decay .95, boost .1 a word up to .3, five at most, gone at .05."""
    known = profile.update_profile(NEW, turn(1, "pytest with asyncio in python and pip"))
    assert known.top_domains[0].name == "python" and known.top_domains[0].score == 0.3
    for number in range(2, 40):
        known = profile.update_profile(known, turn(number, "tell me a story"))
    assert known.top_domains == ()


def test_the_model_receives_distinctive_traits_after_five_messages() -> None:
    """None before; then traits below .4 or above .6, and expertise from .7 on."""
    known = NEW
    for number in range(1, 5):
        known = profile.update_profile(known, turn(number, "Fix async python"))
        assert profile.describe_profile(known) == ""
    for number in range(5, 14):
        known = profile.update_profile(known, turn(number, "Fix the async python cache endpoint"))
    text = profile.describe_profile(known)
    assert text.startswith("<profile>") and "short answers" in text and "expert" in text and "python" in text


def test_tools_are_counted_by_intent() -> None:
    """Success and total of a tool for one of eight intents."""
    good, bad = ToolUse(name="grep", failed=False), ToolUse(name="grep", failed=True)
    known = profile.update_profile(NEW, turn(1, "find the needle", good, bad))
    assert known.tool_patterns["search"]["grep"] == profile.ToolCount(success=1, total=2)


def test_the_statistics_of_a_model_are_consistent() -> None:
    """total, successful, failed, kinds of failure and days; the rate is of those that were judged."""
    day = date(2026, 5, 1)
    numbers = metrics.count_turn(ModelMetrics(), day, strategies=2, failures=("timeout",))
    numbers = metrics.count_turn(numbers, day, strategies=0, failures=())
    numbers = metrics.count_verdict(metrics.count_verdict(numbers, day, "failure"), day, "unknown")
    assert (numbers.total, numbers.failed, numbers.strategies_extracted) == (2, 1, 2)
    assert numbers.success_rate == 0.0 and numbers.daily_stats["2026-05-01"].total == 2
    assert metrics.count_verdict(numbers, day, "success").success_rate == 0.5
