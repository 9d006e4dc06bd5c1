"""A tool's result as people read it."""

import json

import pytest

from trunkline._util.result_format import MAX_CHARACTERS, format_result

HITS = {
    "hits": [{"path": "a.md", "line": 2, "why": ["words", "recency"], "content": "Buy beans.\nAnd tea."}],
    "vectors": None,
    "found_at": "2026-11-23T11:39:23.586740Z",
    "more": False,
    "left": [],
}


def test_one_line_of_json_becomes_lines_of_names_and_values() -> None:
    """Names without underscores, texts with their lines, lists as items; what is empty is left out or called none."""
    assert format_result(json.dumps(HITS)) == "\n".join(
        (
            "hits:",
            "  - path: a.md",
            "    line: 2",
            "    why: words, recency",
            "    content:",
            "      Buy beans.",
            "      And tea.",
            "found at: 2026-11-23 11:39:23 UTC",
            "more: no",
            "left: none",
        )
    )
    files = '[{"path":"a.md","size":3},{"path":"b.md","size":0}]'
    assert format_result(files) == "- path: a.md, size: 3\n- path: b.md, size: 0"
    assert format_result("[]") == format_result("{}") == "(nothing)"


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
    """Sentences, files of JSON with lines of their own, what is no JSON, and what is too deep or too large."""
    assert format_result(text) == text
