"""The verdict on a turn (MN-T13), and its episode (MN-F22)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from trunkline._util.nlp.similarity import expand_query, similarity
from trunkline.contracts.conversations.messages import Message
from trunkline.errors import TOOL_ERROR_KINDS
from trunkline_learning import episodes, files
from trunkline_learning.episodes import Episode
from trunkline_learning.failures import classify_failure
from trunkline_learning.preferences import parse_preferences
from trunkline_learning.turns import FinishedTurn, Provenance, ToolUse
from trunkline_learning.verdicts import judge_next_message, judge_turn

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


def turn(
    task: str = "Fix the login test", answer: str = "Done.", *tools: ToolUse, name: str = "t1"
) -> FinishedTurn:
    said = (Message(id=f"m-{name}", role="user", content=task, created_at=AT),)
    source = Provenance(block="main", conversation=f"c-{name}", turn=name)
    return FinishedTurn(source=source, model="a/m", messages=said, answer=answer, tools=tools, at=AT)


def ok(name: str) -> ToolUse:
    return ToolUse(name=name, failed=False, output="fine")


def bad(name: str, output: str = "boom") -> ToolUse:
    return ToolUse(name=name, failed=True, output=output)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("thanks that worked", "success"),
        ("Perfect!", "success"),
        ("that's wrong, fix it", "failure"),
        ("no", "failure"),
        ("thanks, but that is wrong", "failure"),
        ("it did not work", "failure"),
        ("That’s not good", "failure"),
        ("no problem, thank you", "success"),
        ("Now write the notes about goodness and errors", "unknown"),
        ("Fixing the nose is another matter", "unknown"),
        ("", "unknown"),
    ],
)
def test_mn_t13_the_next_message_decides_the_verdict(said: str, verdict: str) -> None:
    """MN-T13: markers are whole words; a correction counts before thanks, and "no problem" corrects nothing."""
    assert judge_next_message(said) == verdict


def test_mn_t13_errors_in_the_answer_or_of_tools_are_a_failure() -> None:
    """MN-T13: "Error: file not found" is a failure; a tool's error that a later call made good is none."""
    assert judge_turn(turn("x", "Error: file not found")) == "failure"
    assert judge_turn(turn("x", "Done.", bad("read_file"))) == "failure"
    assert judge_turn(turn("x", "Done.", bad("read_file"), ok("read_file"))) == "unknown"
    assert judge_turn(turn("x", "Done.", ok("read_file"))) == "unknown"


def test_mn_t13_markers_that_are_booleans_or_numbers_are_words() -> None:
    """MN-T13: a bare yes or no in a file may be parsed as a boolean, and nothing crashes."""
    markers = parse_preferences(
        '[learning]\non = true\n[learning.markers]\nsuccess = [true, "prima"]\ncorrection = [false, 7]\n'
    ).markers
    assert (
        judge_next_message("yes", markers) == "success" and judge_next_message("prima!", markers) == "success"
    )
    assert judge_next_message("no", markers) == judge_next_message("7", markers) == "failure"


def test_unreadable_preferences_enable_nothing() -> None:
    """A gap is reported and nothing is learned; a wrong type does not count as yes."""
    for text in (None, "", "[learning]\n", "learning = true", "[learning]\non = 'yes'", "[[["):
        assert not parse_preferences(text).on
    assert parse_preferences('[learning]\non = true\nmodel = "none"').uses_model is False


def test_mn_t13_small_talk_makes_no_episode() -> None:
    """Skipped without tools when the answer has fewer than 300 letters."""
    assert not episodes.is_worth_remembering(turn("hi", "Hello!"))
    assert not episodes.is_worth_remembering(turn("hi", "x" * 299)) and episodes.is_worth_remembering(
        turn("hi", "x" * 300)
    )
    assert episodes.is_worth_remembering(turn("hi", "", ok("read_file")))


def test_mn_t13_a_near_duplicate_is_recognised() -> None:
    """MN-T13: from .95 on it is the same episode; other tools or another outcome make another one."""
    first = episodes.episode_of(turn("Fix the failing login test", "ok", ok("edit")), "unknown")
    again = episodes.episode_of(
        turn("Please fix the failing login tests", "ok", ok("edit"), name="t2"), "unknown"
    )
    assert similarity(first.task, again.task) >= 0.95 and episodes.find_duplicate(again, [first]) == first
    other = episodes.episode_of(turn("Fix the failing login test", "ok", ok("shell"), name="t3"), "unknown")
    assert episodes.find_duplicate(other, [first]) is None
    assert episodes.find_duplicate(first, [first]) is None, "an episode is no duplicate of itself"


def some(tasks: Sequence[str], *, model: str = "a/m") -> list[Episode]:
    turns = [turn(task, "ok", ok("edit"), name=f"t{n}") for n, task in enumerate(tasks)]
    from msgspec.structs import replace

    return [episodes.episode_of(replace(one, model=model), "success") for one in turns]


def test_mn_t13_at_most_five_similar_episodes_are_shown() -> None:
    """MN-T13: the five nearest from .7 on are shown, none twice, and none of the conversation itself."""
    kept = some(
        [
            f"Fix the failing login test in {place}"
            for place in ("alpha", "beta", "gamma", "delta", "eta", "zeta")
        ]
        + ["Write a poem about the sea"]
    )
    reported = episodes.select_episodes(
        "fix the failing login test", kept, model="a/m", conversation="c-else"
    )
    assert len(reported) == 5 and all(score >= 0.7 for score, _ in reported)
    assert [score for score, _ in reported] == sorted((score for score, _ in reported), reverse=True)
    own = episodes.select_episodes(
        "Fix the failing login test in alpha", kept, model="a/m", conversation="c-t0"
    )
    assert "t0" not in {one.source.turn for _, one in own}
    assert not episodes.select_episodes("bake bread", kept, model="a/m", conversation="x")


def test_another_models_episodes_count_less() -> None:
    """C25: they are read, with a lower weight."""
    mine, theirs = some(["Fix the failing login test"]), some(["Fix the failing login test"], model="b/n")
    [(near, _)] = episodes.select_episodes("fix the failing login test", mine, model="a/m", conversation="x")
    [(far, _)] = episodes.select_episodes("fix the failing login test", theirs, model="a/m", conversation="x")
    assert near == 1.0 and far == pytest.approx(0.8)


def test_an_episode_has_400_tokens_at_most() -> None:
    """This holds for any length of task and answer."""
    text = episodes.episode_of(
        turn("x " * 9000, "y " * 9000, *(ok(f"tool{n}") for n in range(99))), "unknown"
    ).text
    assert len(text) <= 1600 and text.startswith("Task: ")


def test_old_and_surplus_episodes_are_removed() -> None:
    """90 days, and 1000 a model."""
    new = [(f"p{n:04}", AT - timedelta(days=n % 80)) for n in range(1005)]
    gone = episodes.outdated_files([*new, ("old", AT - timedelta(days=91))], AT)
    assert "old" in gone and len(gone) == 6


def test_memory_paths_determine_the_kind_of_file() -> None:
    """Strategies and episodes are distinguished by their paths; a hand-made folder is no day."""
    assert files.is_episode("/models/m/episodes/2026-05-01/ep-1.json")
    assert not files.is_strategy("models/m/episodes/2026-05-01/ep-1.json")
    assert files.is_strategy("models/m/playbook/pit-1.json") and not files.is_strategy(
        "models/m/metrics.json"
    )
    assert files.day_of("models/m/episodes/mine/ep.json") < AT


def test_a_short_follow_up_belongs_to_the_task_before_it() -> None:
    """Below eight words and from .4 on it is a follow-up; up to three synonyms widen the search."""
    before = "Fix the failing login test of the server"
    assert episodes.lookup_query("and the login test again?", before).startswith(before)
    assert episodes.lookup_query("bake bread", before) == "bake bread"
    long = "fix the failing login test of the server in the other garden too"
    assert episodes.lookup_query(long, before) == long
    assert (
        expand_query("fix the error").split()[:3] == ["fix", "the", "error"]
        and len(expand_query("fix the error").split()) == 6
    )


def test_recent_text_of_the_conversation_is_not_repeated() -> None:
    """Redundant from .5 on."""
    kept = some(["Fix the failing login test"])
    near = {"model": "a/m", "conversation": "x"}
    assert episodes.select_episodes("fix the failing login test", kept, **near)  # type: ignore[arg-type]
    assert not episodes.select_episodes("fix the failing login test", kept, lately=["ok"], **near)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        (bad("read_file", "There is no 'a' in the workspace."), None),
        (
            ToolUse(name="read_file", failed=True, kind="not_found", output="There is no 'a'."),
            "file_not_found",
        ),
        (ToolUse(name="edit", failed=True, kind="no_match", output="…"), "string_not_found"),
        (ToolUse(name="call", failed=True, kind="invalid_arguments", output="not valid JSON"), "json_error"),
        (
            ToolUse(name="call", failed=True, kind="invalid_arguments", output='"x" is missing'),
            "invalid_arguments",
        ),
        (ToolUse(name="mcp", failed=True, kind="upstream_error", output="…"), "api_error"),
        (ToolUse(name="run", failed=True, kind="cancelled", output="stopped"), None),
        (ToolUse(name="run", failed=True, kind="haunted", output="a later version's"), None),
        (ToolUse(name="shop", failed=True, kind="failed", output="No such file or folder"), "file_not_found"),
        (
            ToolUse(
                name="execute_command", failed=False, output="exit code 2, 0.1 s\n--- stderr\nSyntaxError: x"
            ),
            "syntax_error",
        ),
        (
            ToolUse(name="execute_command", failed=False, output="exit code 9, 0.1 s\n--- stderr\nno"),
            "command_failed",
        ),
        (ToolUse(name="execute_command", failed=False, output="exit code 1, 0.1 s"), None),
        (ToolUse(name="read_file", failed=False, output="exit code 2\n--- stderr\nquoted"), None),
    ],
)
def test_mn_f23_a_failure_is_classified_by_kind_before_its_text(tool: ToolUse, name: str | None) -> None:
    """MN-F23, MN-F18: the platform's kinds count; words only where a tool or a program says no more."""
    assert classify_failure(tool) == name


def test_every_kind_of_error_that_can_be_learned_from_has_its_advice() -> None:
    """Only cancelled calls, and errors without information, add no strategy by themselves."""
    taught = {
        kind for kind in TOOL_ERROR_KINDS if classify_failure(ToolUse(name="x", failed=True, kind=kind))
    }
    assert set(TOOL_ERROR_KINDS) - taught == {"cancelled", "failed"}
