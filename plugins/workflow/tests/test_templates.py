"""Templates look values up and do nothing else."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_workflow.run import parse_result
from trunkline_workflow.templates import Template, TemplateError, fill, parse_template

CONTEXT: dict[str, Any] = {
    "version": "1.10",
    "count": 3,
    "ready": True,
    "rows": [{"id": 7}],
    "none": None,
    "steps": {"build": {"url": "http://x", "sub-key": 1}},
}


def filled(text: str) -> Any:
    return fill(parse_template(text, 4), CONTEXT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ count }}", 3),
        ("{{ready}}", True),
        ("{{ rows }}", [{"id": 7}]),
        ("{{ rows[0].id }}", 7),
        ("{{ steps.build.sub-key }}", 1),
        ("v{{ version }}-{{ count }}", "v1.10-3"),
        ("{{ ready }} {{ none }}.", "true ."),
        ("{ not } a template", "{ not } a template"),
    ],
)
def test_a_template_alone_keeps_its_type(text: str, value: Any) -> None:
    assert filled(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ version.__class__ }}",
        "{{ version.upper }}",
        "{{ rows.append }}",
        "{{ steps.items }}",
        "{{ version() }}",
        "{{ 1 + 1 }}",
        "{{ rows[-1] }}",
        "{{ rows[1] }}",
        "{{ rows['id'] }}",
        "{{ count.real }}",
        "{{ missing }}",
        "{{ version | upper }}",
        "{{ {{ version }} }}",
        "{{ }}",
        "{{ version",
        "a {{ rows }}",
        "{{ __import__('os') }}",
        "{% for x in y %}{{ x.y }}",
    ],
)
def test_hostile_templates_are_refused_with_the_line(text: str) -> None:
    """No attribute, call, index or expression is evaluated."""
    with pytest.raises(TemplateError) as refused:
        filled(text)
    assert refused.value.line == 4


@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_a_template_a_text_or_an_error(text: str) -> None:
    try:
        found = parse_template(text, 1)
    except TemplateError:
        return
    assert isinstance(found, Template) or found == text


def test_a_text_cannot_grow_without_bound() -> None:
    big = {"x": "y" * 100_000}
    with pytest.raises(TemplateError):
        fill(parse_template("{{ x }}" * 3, 1), big)


def test_results_keep_versions_as_text() -> None:
    """JSON collections, truth values and null are read; numbers and everything else stay text."""
    assert parse_result('{"a": [1]}') == {"a": [1]}
    assert parse_result(" false\n") is False and parse_result("null") is None
    assert parse_result("1.10") == "1.10" and parse_result("{not json") == "{not json"
    assert parse_result("[" * 100_000) == "[" * 100_000
