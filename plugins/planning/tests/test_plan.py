"""The plan and the list as text: any output of a model stays in its place, and a person's edits are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.errors import ToolError
from trunkline_planning.plan import PlanDocument, one_line
from trunkline_planning.todo_tools import Todo, format_tasks, parse_tasks

words = st.text(min_size=1, max_size=80).filter(lambda text: text.split())


@given(
    st.lists(st.tuples(st.integers(1, 30), words), max_size=8), st.lists(words, max_size=5), words, st.text()
)
def test_entries_are_read_back_as_added(
    steps: list[tuple[int, str]], risks: list[str], task: str, context: str
) -> None:
    """Steps by their numbers, the last of a number counting; no text makes a heading, a state or a further entry."""
    plan = PlanDocument.new(task, context)
    for number, text in steps:
        plan = plan.with_step(number, f"**{one_line(text)}**")
    for text in risks:
        plan = plan.with_entry("Risks", one_line(text))
    last = {number: f"{number}. **{one_line(text)}**" for number, text in steps}
    assert plan.entries("Steps") == [last[number] for number in sorted(last)]
    assert plan.entries("Risks") == list(dict.fromkeys(f"- {one_line(text)}" for text in risks))
    assert plan.entries("Files") == [] and plan.state == "planning" and plan.title == one_line(task)
    assert plan.with_state("approved").state == "approved"


def test_a_persons_edits_of_the_plan_are_kept() -> None:
    """Sections of their own, lines below an entry, a section that was deleted."""
    plan = PlanDocument.new("Move the beans", "They are tall.")
    edited = PlanDocument(
        plan.text.replace("## Files\n", "## Doubts\n\nIs it not too late?\n") + "\nAnd mind the cat.\n"
    )
    grown = (
        edited.with_step(2, "**Dig**")
        .with_step(1, "**Look**\n   twice")
        .with_entry("Files", "`a.md` (modify)")
    )
    assert "Is it not too late?" in grown.text and "And mind the cat." in grown.text
    assert grown.entries("Steps") == ["1. **Look**\n   twice", "2. **Dig**"]
    assert grown.entries("Files") == ["- `a.md` (modify)"]


@given(
    st.lists(st.builds(Todo, content=words.map(one_line), status=st.sampled_from(["pending", "completed"])))
)
def test_a_list_is_read_back_from_its_file(tasks: list[Todo]) -> None:
    """The list is read as written, among lines that are no tasks."""
    assert parse_tasks("Mine:\n" + format_tasks(tasks) + "\nthe end\n") == tasks


def test_no_text_is_refused() -> None:
    """Too long a text is refused as well."""
    for text in ("", " \n", "x" * 3_000):
        with pytest.raises(ToolError, match="Nothing was written"):
            one_line(text)
