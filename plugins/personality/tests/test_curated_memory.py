"""``MEMORY.md``, ``memory.md`` and placeholders, as text."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline import ToolError
from trunkline_personality.block_memory import HISTORY_CHARACTERS, BlockMemoryFile
from trunkline_personality.curated_memory import BUDGET, CuratedMemory
from trunkline_personality.placeholders import without_placeholders

AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


def test_MN_T8_blank_duplicate_and_overflow() -> None:
    """Blank is refused, a duplicate changes nothing, what does not fit is refused with all entries and sizes."""
    entries = CuratedMemory().added("Likes tea.").added("Lives in\nLisbon.")
    for blank in ("", "  \n\t"):
        with pytest.raises(ToolError, match="must not be empty"):
            entries.added(blank)
    assert entries.added("likes   TEA.") is entries
    with pytest.raises(ToolError) as full:
        entries.added("x" * BUDGET)
    assert "Consolidate" in str(full.value) and "1. (10 characters) Likes tea." in str(full.value)
    assert "2. (16 characters) Lives in\nLisbon." in str(full.value)


def test_MN_T8_replace_and_remove_need_one_match() -> None:
    """A piece that no entry or several hold is refused, with the entries to choose from."""
    entries = CuratedMemory().added("Likes green tea.").added("Likes black coffee.").added("Dog: Rex")
    for edit in (lambda old: entries.replaced(old, "new"), entries.removed):
        for old in ("Likes", "cat", "", " "):
            with pytest.raises(ToolError):
                edit(old)
    assert entries.replaced("Rex", "Dog: Max").texts[2] == "Dog: Max"
    assert entries.removed("coffee").texts == ("Likes green tea.", "Dog: Rex")
    with pytest.raises(ToolError, match="Another entry has the same text"):
        entries.replaced("Rex", "likes green tea.")


def test_MN_T8_an_old_file_migrates() -> None:
    """Entries between lines of § come over whole, and the first change writes the file in its new form."""
    old = "Likes tea.\n§\nTwo\nlines, with § inside.\n§\nDog: Rex\n"
    entries = CuratedMemory.parse(old)
    assert entries.texts == ("Likes tea.", "Two\nlines, with § inside.", "Dog: Rex")
    assert (
        entries.added("New.").text
        == "Likes tea.\n---\nTwo\nlines, with § inside.\n---\nDog: Rex\n---\nNew.\n"
    )


def test_the_times_in_a_blocks_memory_are_local_with_their_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the form of all times for people."""
    monkeypatch.setenv("TZ", "UTC-05:30")
    time.tzset()
    try:
        text = BlockMemoryFile.parse("# Plans\n\nPaint.\n").with_note("Bought paint.", AT).text(AT)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "Last updated: 2026-05-04 15:00+05:30" in text and "### 2026-05-04 15:00+05:30" in text


def test_an_entry_cannot_hold_the_separator() -> None:
    """A line of dashes would make two of it."""
    with pytest.raises(ToolError, match="separates"):
        CuratedMemory().added("one\n---\ntwo")


def test_a_file_that_is_too_long_already_can_be_made_shorter() -> None:
    """An owner may write more by hand: removing and shortening still work, adding does not."""
    entries = CuratedMemory(("a" * 2000, "b" * 1000))
    assert len(entries.replaced("bbb", "b" * 900).text) > BUDGET
    assert entries.removed("aaa").texts == ("b" * 1000,)
    with pytest.raises(ToolError):
        entries.added("c")


_TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=60)


@examples(150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "replace", "remove"]), _TEXT, _TEXT), max_size=12))
def test_the_file_reads_back_as_written(steps: list[tuple[str, str, str]]) -> None:
    """After any sequence of edits the text holds exactly the entries, within the budget."""
    entries = CuratedMemory()
    for action, text, old in steps:
        try:
            if action == "add":
                entries = entries.added(text)
            elif action == "replace":
                entries = entries.replaced(old, text)
            else:
                entries = entries.removed(old)
        except ToolError:
            continue
        again = CuratedMemory.parse(entries.text)
        assert again == entries and len(entries.text) <= BUDGET


def test_MB_D11_a_new_summary_keeps_the_one_before() -> None:
    """It moves into the history, with its date; nothing is lost over many summaries (MB-T13b)."""
    book = BlockMemoryFile.parse("# What it remembers\n\n(Nothing yet.)\n\n## History\n\n(Nothing.)\n")
    assert (book.summary, book.history) == ("", ())
    for number in range(30):
        book = BlockMemoryFile.parse(book.with_summary(f"Fact {number} is known.", AT).text(AT))
    assert book.summary == "Fact 29 is known." and book.title == "What it remembers"
    assert [f"Fact {n} is known." in book.text(AT) for n in range(30)] == [True] * 30


def test_a_summary_that_contains_the_old_one_replaces_it() -> None:
    """Text that the new summary repeats word for word is not kept twice."""
    book = BlockMemoryFile.parse("# M\n\nTea at four.\n").with_summary("Tea at four. Milk first.", AT)
    assert book.history == () and "Milk first." in book.text(AT)


def test_a_note_is_put_on_top_of_the_history() -> None:
    """Newest first; headings within it do not end its section."""
    book = (
        BlockMemoryFile.parse("# M\n\nSummary.\n")
        .with_note("First.", AT)
        .with_note("# Big\n## History\nSecond.", AT)
    )
    again = BlockMemoryFile.parse(book.text(AT))
    assert len(again.history) == 2 and "Second." in again.history[0] and "First." in again.history[1]
    assert again.summary == "Summary." and again.text(AT) == book.text(AT)


def test_a_long_history_is_truncated_with_a_note() -> None:
    """Entries that are too old are removed from the file, and a note says where they are; the summary is never cut."""
    book = BlockMemoryFile.parse("# M\n\n" + "S" * 20_000)
    for number in range(12):
        book = BlockMemoryFile.parse(book.with_note(f"{number}: " + "x" * 2000, AT).text(AT))
    text = book.text(AT)
    assert "memory_history" in text and "S" * 20_000 in text and "11: " in text
    assert len(text) < 20_000 + HISTORY_CHARACTERS + 3000


def test_a_file_written_by_hand_is_understood() -> None:
    """No title, other headings, Windows line ends: all of it is summary."""
    book = BlockMemoryFile.parse("Free text\r\n\r\n## Plans\r\n\r\nTea.\r\n", "Memory")
    assert book.summary == "Free text\n\n## Plans\n\nTea." and book.title == "Memory"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        ("# About\n\n(Write here.)\n", ""),
        ("# About\n(Write here,\non two lines.)\n\n## Empty\n", ""),
        ("- Name: (not set)\n- Emoji:\n- Block: main\n", ""),
        ("<!-- a\nb -->\n# T\n", ""),
        ("# M\n\n## Identity\n\n- Name: Ada\n- Emoji: (not set)\n- Block: main\n\n## Roles\n\n(None.)\n",
         "# M\n\n## Identity\n\n- Name: Ada\n- Block: main"),
        ("# M\n\nI am (mostly) here.\n\n(no hint) but text\n", "# M\n\nI am (mostly) here.\n\n(no hint) but text"),
        ("# A\n\n## B\n\n### C\n\ntext\n\n## D\n", "# A\n\n## B\n\n### C\n\ntext"),
    ],
)  # fmt: skip
def test_placeholders_count_as_empty(text: str, left: str) -> None:
    """Hints, unset fields and headings without content are omitted; all other text is included unchanged."""
    assert without_placeholders(text) == left
