"""Elicitation forms of servers, answered in words: a valid answer is accepted, an invalid one is asked again, and no
form breaks the host."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_mcp.elicitation_form import PROCEED, FormTooLongError, fill_form
from trunkline_mcp.form_fields import DECLINE, LEAVE_OUT
from trunkline_mcp.form_pages import MOST_PAGES, PAGE_FIELDS

from .mcp_servers import Says


def filled(person: Says, required: Sequence[str] = (), **properties: Any) -> dict[str, Any] | None:
    schema = {"type": "object", "properties": properties, "required": [*required]}

    async def fill() -> dict[str, Any] | None:
        return await fill_form(person, "brave", "Your details", schema)

    return anyio.run(fill)


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [
        ({"type": "string"}, "Ada", "Ada"),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "7", 7),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]}, "blue", "b"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "RED", "r"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "a, C", ["a", "c"]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "Apple"}]}}, "apple", ["a"]),
    ],
)
def test_answers_in_words_become_the_schemas_values(schema: dict[str, Any], said: str, value: Any) -> None:
    """Each kind of field is answered in a person's words."""
    assert filled(Says(said), ["it"], it=schema) == {"it": value}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "boolean"}, "perhaps"),
        ({"type": "integer"}, "many"),
        ({"type": "integer", "maximum": 9}, "10"),
        ({"type": "number"}, "nan"),
        ({"type": "string", "enum": ["r", "b"]}, "green"),
        ({"type": "array", "items": {"enum": ["a"]}}, "a, z"),
    ],
)
def test_an_invalid_answer_is_asked_again_and_then_declined(schema: dict[str, Any], said: str) -> None:
    """With what would fit; never is something handed on that the person did not say."""
    person = Says(said, said, said, said)
    assert filled(person, ["it"], it=schema) is None
    assert len(person.asked) == 3 and "is not valid" in person.asked[1][0]


def test_optional_fields_can_be_left_out() -> None:
    """A form with an optional field, one with a default, and one without fields, which is a question for consent."""
    person = Says(LEAVE_OUT, LEAVE_OUT, "x")
    parts = {"a": {"type": "string"}, "b": {"type": "string", "default": "z"}, "c": {"type": "string"}}
    assert filled(person, ["b", "c"], **parts) == {"c": "x"}
    assert "(otherwise: z)" in person.asked[1][0] and LEAVE_OUT not in person.asked[2][1]
    assert filled(Says(PROCEED)) == {} and filled(Says(DECLINE)) is None and filled(Says()) is None


MANY: dict[str, Any] = {
    **{f"f{n}": {"type": "string"} for n in range(11)},
    "age": {"type": "integer", "maximum": 150},
    "colour": {"type": "string", "enum": ["red", "blue"]},
}


def test_a_long_form_is_asked_page_by_page() -> None:
    """Several fields are in one question, answered by name. Omitted fields are not set; a value may have colons."""
    person = Says("f0: x\nf1: a: b; c\n- F2 : y; f10:z; age: 41", "colour: Blue")
    reported = filled(person, ["age", "colour"], **MANY)
    assert reported == {"f0": "x", "f1": "a: b; c", "f2": "y", "f10": "z", "age": 41, "colour": "blue"}
    first, second = (question for question, _ in person.asked)
    assert "Page 1 of 2" in first and "The MCP server brave" in first and "(may be left out)" in first
    assert "Page 2 of 2" in second and "colour [red, blue]" in second


def test_on_a_page_only_invalid_fields_are_asked_again() -> None:
    """Valid answers are kept; after three tries the form is declined, and a person can decline at any page."""
    person = Says("age: old\nf0: x", "age: 41", "colour: red")
    assert filled(person, ["age", "colour"], **MANY) == {"f0": "x", "age": 41, "colour": "red"}
    assert "- f0" not in person.asked[1][0] and "(age: 'old' is not valid" in person.asked[1][0]
    missing = Says("f0: x", "f0: x", "f0: x")
    assert filled(missing, ["age"], **MANY) is None and "(age: missing.)" in missing.asked[1][0]
    assert filled(Says("age: 41", DECLINE), ["age"], **MANY) is None and filled(Says(), **MANY) is None


def test_the_longest_form_stays_within_the_question_limit() -> None:
    """A call asks 20 questions at most, each of which is shown completely; with one field more the form is declined
    without a question."""
    most = {
        f"f{n}": {"type": "integer", "description": "w" * 5_000, "title": "t" * 500}
        for n in range(PAGE_FIELDS * MOST_PAGES)
    }
    person = Says(*["nothing fits"] * 30)
    assert filled(person, [*most], **most) is None and len(person.asked) <= 20
    asked = Says("; ".join(f"f{n}: 1" for n in range(len(most))))
    assert filled(asked, [*most], **most) == dict.fromkeys(most, 1) and len(asked.asked) == 1
    assert all(len(question) < 6_000 for question, _ in (*person.asked, *asked.asked))
    with pytest.raises(FormTooLongError, match="73 fields"):
        filled(Says(), **most, one_more={"type": "string"})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
words = ("type", "enum", "enumNames", "oneOf", "items", "default", "minimum", "title", "description")


@given(
    st.dictionaries(
        st.text(max_size=8), st.dictionaries(st.sampled_from(words), json, max_size=5), max_size=3
    )
)
def test_no_form_breaks_it(properties: dict[str, Any]) -> None:
    """For any form that a server sends, a person gets a readable question or the form is declined."""
    person = Says("1", "1", "1")
    result = filled(person, **properties)
    assert result is None or isinstance(result, dict)
    assert all(len(question) < 6_000 and len(options) <= 20 for question, options in person.asked)
