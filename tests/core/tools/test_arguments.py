"""The handling of the arguments that a model sent (conflict C40, MN-T11)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline import ToolError
from trunkline.api.tool import ToolSpec
from trunkline.workers.tools.arguments import prepare_arguments

SPEC = ToolSpec(
    name="search",
    description="Searches.",
    effect="read",
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "ratio": {"type": "number"},
            "exact": {"type": "boolean"},
            "mode": {"enum": ["name", "content"]},
            "file_path": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "near": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "range": {"$ref": "#/$defs/Range"},
        },
        "required": ["query"],
        "additionalProperties": False,
        "$defs": {
            "Range": {
                "type": "object",
                "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
                "required": ["low"],
            }
        },
    },
)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"query": "x"}, {"query": "x"}),
        ({"query": "x", "limit": 5}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": "5"}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": 5.0}, {"query": "x", "limit": 5}),
        ({"query": "x", "ratio": "0.5"}, {"query": "x", "ratio": 0.5}),
        ({"query": "x", "ratio": 2}, {"query": "x", "ratio": 2}),
        ({"query": "x", "exact": "true"}, {"query": "x", "exact": True}),
        ({"query": "x", "exact": "No"}, {"query": "x", "exact": False}),
        ({"query": 2024}, {"query": "2024"}),
        ({"query": "x", "mode": "Content"}, {"query": "x", "mode": "content"}),
        ({"query": "x", "tags": '["a", "b"]'}, {"query": "x", "tags": ["a", "b"]}),
        ({"query": "x", "near": "7"}, {"query": "x", "near": 7}),
        ({"query": "x", "near": "null"}, {"query": "x", "near": None}),
        ({"query": "x", "near": None}, {"query": "x", "near": None}),
        ({"query": "x", "limit": None}, {"query": "x"}),
        ({"query": "x", "range": '{"low": "1"}'}, {"query": "x", "range": {"low": 1}}),
        ({"query": "x", "filePath": "a"}, {"query": "x", "file_path": "a"}),
        ({"Query": "x"}, {"query": "x"}),
        ({"query": 'a="b"'}, {"query": 'a="b"'}),
    ],
)
def test_unambiguous_arguments_are_converted(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    """Text becomes the type of the schema, and a parameter in another spelling is found."""
    found = prepare_arguments(SPEC, sent)
    assert found == meant
    assert [type(value) for value in found.values()] == [type(value) for value in meant.values()]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({'query="x"': ""}, {"query": "x"}),
        ({"query='two words'": None}, {"query": "two words"}),
        ({"query=two words": ""}, {"query": "two words"}),
        ({'query="x", limit=3': ""}, {"query": "x", "limit": 3}),
        ({'query="with \\"quotes\\""': ""}, {"query": 'with "quotes"'}),
    ],
)
def test_arguments_merged_into_a_key_are_repaired(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    """``{'query="x"': ''}`` means ``{query: x}`` (MN-F11)."""
    assert prepare_arguments(SPEC, sent) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"query": "x"}', {"query": "x"}),
        ('"{\\"query\\": \\"x\\"}"', {"query": "x"}),
        ("query=x limit=3", {"query": "x", "limit": 3}),
        ('query="two words"', {"query": "two words"}),
        ("query=two words", {"query": "two words"}),
    ],
)
def test_arguments_sent_as_text_are_parsed(text: str, meant: dict[str, Any]) -> None:
    """The key ``""`` holds arguments sent as text: JSON, JSON in quotes, or pairs."""
    assert prepare_arguments(SPEC, {"": text}) == meant


def test_no_arguments_at_all_are_an_empty_object() -> None:
    """An empty text means no arguments."""
    spec = ToolSpec(
        name="now", description="The time.", effect="read", parameters={"type": "object", "properties": {}}
    )
    assert prepare_arguments(spec, {"": ""}) == {}
    assert prepare_arguments(spec, {"": "  "}) == {}


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({}, ['"query"', "missing", "text: What to look for."]),
        ({"query": "x", "limit": "many"}, ['"limit"', "a whole number", '"many" (text)']),
        ({"query": "x", "limit": 500}, ['"limit"', "at most 100", "500"]),
        ({"query": "x", "limit": True}, ['"limit"', "true (true or false)"]),
        ({"query": ["x"]}, ['"query"', "text", "a list"]),
        ({"query": "x", "mode": "fuzzy"}, ['"mode"', '"name", "content"', "fuzzy"]),
        ({"query": "x", "tags": ["a", {}]}, ['"tags[1]"', "text", "an object"]),
        ({"query": "x", "range": {"high": 2}}, ['"range.low"', "a whole number", "nothing"]),
        ({"query": "x", "limt": 3}, ['"limt"', 'Did you mean "limit"?']),
        ({"": '{"query": "x'}, ["not valid JSON", '{"query": "x']),
        ({"": "just words"}, ["not valid JSON", "just words", '"query"']),
        ({"": "[1, 2]"}, ["must be a JSON object"]),
        ({'query="x"': "", "limit": 3}, ["missing"]),
    ],
)
def test_invalid_arguments_are_refused_with_expected_and_actual_value(
    sent: dict[str, Any], words: list[str]
) -> None:
    """The error names the tool, the parameter, the expected and the actual value, and states that nothing was run."""
    with pytest.raises(ToolError) as caught:
        prepare_arguments(SPEC, sent)
    text = str(caught.value)
    assert text.startswith("search: ")
    assert "The tool was not run." in text
    for word in words:
        assert word in text


def test_a_schema_without_properties_takes_anything() -> None:
    """A tool that describes no parameters receives the arguments unchanged."""
    spec = ToolSpec(name="free", description="Free.", effect="read", parameters={"type": "object"})
    assert prepare_arguments(spec, {"a": 1, "b": [2]}) == {"a": 1, "b": [2]}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"query": ' + "[" * 100_000, "\ud800", "=", "query=", "=x", "a=b=c"]
)
def test_hostile_text_is_refused_like_any_other(text: str) -> None:
    """The result of any text is a ToolError."""
    with pytest.raises(ToolError):
        prepare_arguments(SPEC, {"": text})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*SPEC.parameters["properties"], "", "query=x", "Limit"]) | st.text()


@given(st.dictionaries(NAMES, JSON | st.text(alphabet='a=\\"{}[], 1')))
def test_any_arguments_are_valid_or_refused(sent: dict[str, Any]) -> None:
    """No argument of any shape is anything but fitting or a ToolError; what fits, fits again and stays the same."""
    try:
        found = prepare_arguments(SPEC, sent)
    except ToolError:
        return
    assert repr(prepare_arguments(SPEC, found)) == repr(found)
    assert isinstance(found["query"], str)
