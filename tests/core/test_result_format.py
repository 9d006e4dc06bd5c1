"""A tool's result as people read it."""

import json
import time
from datetime import UTC, datetime

import pytest

from trunkline._util.local_time import format_local_time
from trunkline._util.result_format import MAX_CHARACTERS, format_result

FOUND_AT = datetime(2026, 11, 23, 11, 39, 23, tzinfo=UTC)

HITS = {
    "hits": [{"path": "a.md", "line": 2, "why": ["words", "recency"], "content": "Buy beans.\nAnd tea."}],
    "vectors": None,
    "found_at": "2026-11-23T11:39:23.586740Z",
    "more": False,
    "left": [],
}


def test_one_line_of_json_is_formatted_as_names_and_values() -> None:
    """Names have no underscores, texts keep their lines, lists become items; an empty value is omitted or shown as
    none."""
    assert format_result(json.dumps(HITS)) == "\n".join(
        (
            "hits:",
            "  - path: a.md",
            "    line: 2",
            "    why: words, recency",
            "    content:",
            "      Buy beans.",
            "      And tea.",
            f"found at: {format_local_time(FOUND_AT, seconds=True)}",
            "more: no",
            "left: none",
        )
    )
    files = '[{"path":"a.md","size":3},{"path":"b.md","size":0}]'
    assert format_result(files) == "- path: a.md, size: 3\n- path: b.md, size: 0"
    assert format_result("[]") == format_result("{}") == "(nothing)"


@pytest.mark.parametrize("text", ["2026-13-45T99:39:23Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("zone", ["UTC", "UTC-05:30", "UTC+12"])
def test_a_time_at_the_ends_of_the_calendar_is_formatted(
    text: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert format_result(json.dumps({"at": text})).startswith("at: ")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        "",
        "[Cut here]",
        '{"cut": ',
        '{\n  "a": 1\n}',
        "[" * 100_000,
        f'["{"x" * MAX_CHARACTERS}"]',
        "12",
        '"a"',
    ],
)
def test_other_results_are_unchanged(text: str) -> None:
    """The cases are sentences, JSON files of several lines, text that is not JSON, and JSON that is too deep or too
    large."""
    assert format_result(text) == text
