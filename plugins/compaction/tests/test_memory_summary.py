"""The summary in ``memory.md``: nothing that the file had is lost."""

from datetime import UTC, datetime

from trunkline_compaction.memory_summary import summary_of, with_summary

AT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

NEW = """# What garden remembers

(A summary of what this block knows and works on.)

## History

(What it knew before, newest first.)
"""


def test_a_new_file_gets_the_summary() -> None:
    """The title stays; a placeholder is no summary; a missing file begins."""
    text = with_summary(NEW, "The roses are red.", AT, "Memory")
    assert text.startswith("# What garden remembers\n\nLast updated: ")
    assert summary_of(text) == "The roses are red." and summary_of(NEW) == ""
    begun = with_summary("", "The roses are red.", AT, "Memory")
    assert begun.startswith("# Memory\n") and summary_of(begun) == "The roses are red."


def test_the_earlier_summary_moves_into_the_history() -> None:
    """Two rebirths in a row: what the first one knew is still in the file (MB-T13b, MB-D17)."""
    first = with_summary(NEW, "## Facts\n\nThe code is 4711.", AT, "Memory")
    second = with_summary(first, "The roses are red.", AT, "Memory")
    third = with_summary(second, "The tulips are late.", AT, "Memory")
    assert summary_of(third) == "The tulips are late."
    history = third.partition("## History")[2]
    assert "The code is 4711." in history and "The roses are red." in history
    assert history.index("roses") < history.index("4711"), "newest first"
    assert third.count("## History") == 1
    assert len(first) < len(second) < len(third)


def test_a_summary_that_has_all_of_the_earlier_one_repeats_nothing() -> None:
    """The history then has no copy of what the summary tells itself."""
    first = with_summary(NEW, "The code is 4711.", AT, "Memory")
    second = with_summary(first, "The code is 4711. The roses are red.", AT, "Memory")
    assert second.count("4711") == 1


def test_lines_that_a_person_wrote_stay() -> None:
    """Anywhere in the file, also below the history."""
    mine = "# Mine\r\n\r\nI am allergic to nuts.\r\n\r\n## History\r\n\r\nBorn in Graz.\r\n"
    text = with_summary(mine, "The roses are red.", AT, "Memory")
    assert text.startswith("# Mine\n") and "I am allergic to nuts." in text and "Born in Graz." in text


def test_headings_of_a_summary_do_not_end_its_section() -> None:
    """A summary that has a heading of its own named History is read back whole."""
    text = with_summary(NEW, "Known.\n\n## History\n\nLong.", AT, "Memory")
    assert summary_of(text) == "Known.\n\n#### History\n\nLong."
