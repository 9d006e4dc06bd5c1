"""The steps of a split task: read from answers, written as text, and read from the text again."""

import json

import pytest

from trunkline_router.category import MAX_STEPS
from trunkline_router.subtask import (
    Subtask,
    category_of_task,
    parse_subtasks,
    steps_in,
    steps_text,
    task_text,
)

TASK = "compare the tides\nof two harbours"
ENTRIES = [
    {"description": "Look up A", "category": "research", "after": []},
    {"description": "Look up\nB", "category": "research", "after": []},
    {"description": "Compare (at once)", "category": "code", "after": [1, 2]},
]
STEPS = (
    Subtask(number=1, description="Look up A", category="research"),
    Subtask(number=2, description="Look up B", category="research"),
    Subtask(number=3, description="Compare (at once)", category="code", after=(1, 2)),
)
WHOLE = (Subtask(number=1, description="compare the tides of two harbours", category="full"),)


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(ENTRIES),
        f"```json\n{json.dumps(ENTRIES, indent=1)}\n```",
        f"<think>One [or] two?</think>\nHere they are:\n{json.dumps(ENTRIES)}\nDone.",
        json.dumps([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": json.dumps(ENTRIES)}]),
    ],
)
def test_MN_T3_steps_are_read_tolerantly(answer: str) -> None:
    """Clean JSON, in a fence, after reasoning, in content blocks."""
    assert parse_subtasks(answer, TASK) == STEPS


@pytest.mark.parametrize("answer", ["", "garbage", "[1, 2", "[]", "[1]", '{"description": "x"}', "[" * 9_000])
def test_MN_T3_an_answer_without_steps_is_one_step(answer: str) -> None:
    """The whole task, with the category ``full``."""
    assert parse_subtasks(answer, TASK) == WHOLE


def test_MN_T3_wrong_entries_are_mended_or_left_out() -> None:
    """A wrong or missing category is ``full``; an entry without a description is no step, and nothing waits for it."""
    entries = [
        {"description": "A", "category": "nonsense", "after": []},
        {"category": "code"},
        "B",
        {"description": "C", "after": [1, 2, 4, 9, "x"]},
        {"description": "D", "category": "code", "after": [4]},
    ]
    assert parse_subtasks(json.dumps(entries), TASK) == (
        Subtask(number=1, description="A", category="full"),
        Subtask(number=2, description="C", category="full", after=(1,)),
        Subtask(number=3, description="D", category="code", after=(2,)),
    )


def test_MN_F9_steps_that_say_nothing_follow_each_other_and_are_few() -> None:
    """Without ``after`` a step needs all earlier ones; there are five at most."""
    steps = parse_subtasks(json.dumps([{"description": str(number)} for number in range(9)]), TASK)
    assert len(steps) == MAX_STEPS
    assert steps[3].after == (1, 2, 3)


def test_the_text_of_steps_is_read_again() -> None:
    """Whatever stands around it; of several lists the last one counts."""
    text = f"Well.\n{steps_text(WHOLE)}\n\n{steps_text(STEPS)}\n\n[Step 1/3: Look up A]\n"
    assert steps_in(text) == STEPS
    assert steps_in("Steps:\nnone") == steps_in("1. [code] A (at once)") == ()


def test_the_task_of_a_step_names_its_category_and_its_results() -> None:
    """So the turn of the agent is routed without a question."""
    task = task_text(STEPS[2], 3, {1: "high", 2: "low"}, ["in metres"])
    assert category_of_task(task) == "code"
    assert (
        task.startswith("Step 3 of 3 (code)\nCompare")
        and "high" in task
        and "The person added: in metres" in task
    )
    assert category_of_task("Step 3 of 3 (nonsense)\nx") is category_of_task("hello") is None
