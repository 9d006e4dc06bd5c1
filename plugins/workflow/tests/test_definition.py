"""CC-F12, CC-T9: definitions are checked when they are read, and each mistake is reported with its line."""

import time

import pytest
from jsonschema import Draft202012Validator, ValidationError

from trunkline_workflow.definition import DefinitionError, parse_definition
from trunkline_workflow.graph import mermaid
from trunkline_workflow.json_schema import json_schema
from trunkline_workflow.run import CallResult, replay
from trunkline_workflow.yaml_reader import MAX_BYTES

from .workflow_tools import DEPLOY_APP, workflow

ACTION = "id: a, type: action, action: t"


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as refused:
        parse_definition(text)
    return [str(problem) for problem in refused.value.problems]


def test_CC_F12_the_grammar_is_read() -> None:
    """Every field arrives, with the types that JSON would give to values."""
    text = workflow(
        "all",
        'id: a, name: First, type: action, action: t, args: {n: 1, f: 1.5, b: yes, t: true, d: 2026-01-01, v: "1"}, '
        "next: b, on_error: c, retry: {times: 2, backoff: 3}, timeout: 9, max_visits: 4",
        'id: b, type: approval, message: "ok?", on_approve: c',
        "id: c, type: conditional, action: 'steps.a.rows[0].id', on_reject: a",
        inputs="{version: null, level: 3}",
    )
    definition = parse_definition(text)
    first, second, third = definition.steps
    assert first.args == {"n": 1, "f": 1.5, "b": "yes", "t": True, "d": "2026-01-01", "v": "1"}
    assert (first.name, first.next, first.on_error, first.max_visits) == ("First", "b", "c", 4)
    assert (first.retry.times, first.retry.backoff, first.timeout) == (2, 3.0, 9.0)
    assert (second.message, second.on_approve, second.on_reject) == ("ok?", "c", None)
    assert third.condition == ("steps", "a", "rows", 0, "id")
    assert definition.inputs == {"version": None, "level": 3}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("- a", 1, "must be a mapping"),
        ("name: x\ndescription: y\nsteps: []", 3, "at least one step"),
        ("name: x\ndescription: y", 1, "at least one step"),
        (workflow("Bad Name", ACTION), 1, "lower-case"),
        (workflow("x", "id: a, type: llm"), 5, "action, approval or conditional"),
        (workflow("x", "id: a"), 5, "action, approval or conditional"),
        (workflow("x", f"{ACTION}, next: b", ACTION.replace("id: a", "id: a")), 6, "that of the step in line 5"),
        (workflow("x", f"{ACTION}, next: nowhere"), 5, "no such step"),
        (workflow("x", f"{ACTION}, colour: red"), 5, "no field 'colour'"),
        (workflow("x", f"{ACTION}, on_approve: a"), 5, "no field 'on_approve'"),
        (workflow("x", ACTION, "id: b, type: action, action: t"), 6, "No path leads"),
        (workflow("x", f"{ACTION}, next: b", "id: b, type: action, action: t, next: a"), 5, "no bound"),
        (workflow("x", "id: a, type: action"), 5, "action is missing"),
        (workflow("x", "id: a, type: action, action: wait"), 5, "seconds"),
        (workflow("x", f"{ACTION}, args: [1]"), 5, "args must be a mapping"),
        (workflow("x", f"{ACTION}, retry: {{times: 99}}"), 5, "from 1 to 20"),
        (workflow("x", f"{ACTION}, timeout: soon"), 5, "must be a number"),
        (workflow("x", f"{ACTION}, args: {{a: '{{{{ steps.b.c }}}}'}}"), 5, "no step 'b'"),
        (workflow("x", f"{ACTION}, args: {{a: '{{{{ a'}}"), 5, "does not end"),
        (workflow("x", f"{ACTION}, args: {{a: '{{{{ f(x) }}}}'}}"), 5, "is no name"),
        (workflow("x", f"{ACTION}, args: {{a: 1, a: 2}}"), 5, "a second time"),
        (workflow("x", ACTION, inputs="{steps: 1}"), 3, "cannot be the name of an input"),
        ("name: x\ndescription: [", 3, "not YAML"),
        ("name: x\n---\nname: y", 2, "one workflow"),
        ("name: \x00", 1, "not YAML"),
    ],
)  # fmt: skip
def test_CC_T9_a_mistake_is_reported_with_its_line(text: str, line: int, said: str) -> None:
    assert any(f"line {line}: " in one and said in one for one in problems(text)), problems(text)


def test_every_mistake_is_reported_at_once() -> None:
    text = workflow(
        "x", f"{ACTION}, next: b, speed: 1", "id: b, type: action, action: t, next: c, timeout: 0"
    )
    assert len(problems(text)) == 3


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: [*a, *a, *a]",
        "name: !!python/object/apply:os.system ['true']",
        "name: !!binary aGVsbG8=",
        "name: x\n<<: {description: y}\nsteps: []",
        "[" * 100_000,
        "{a: " * 8_000,
        "- " * 10_000,
        "x" * (MAX_BYTES + 1),
        "? [a]\n: b",
        "[" + "a," * 12_000 + "]",
    ],
    ids=["bomb", "object", "binary", "merge", "brackets", "mappings", "dashes", "huge", "key", "many"],
)
def test_hostile_yaml_is_refused_soon(text: str) -> None:
    """No value grows, no object is made, no stack is exhausted, and no file takes the processor for long."""
    began = time.process_time()
    assert problems(text)
    assert time.process_time() - began < 20


def test_the_json_schema_accepts_what_the_reader_accepts() -> None:
    """The published schema is valid, fits deploy-app, and refuses an unknown field and a wrong type."""
    import yaml

    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(yaml.safe_load(DEPLOY_APP))
    for wrong in (DEPLOY_APP.replace("message:", "text:"), DEPLOY_APP.replace("type: approval", "type: llm")):
        with pytest.raises(ValidationError):
            Draft202012Validator(schema).validate(yaml.safe_load(wrong))


def test_the_drawing_has_every_step_and_end() -> None:
    """Mermaid: names are escaped, ends are drawn, and the steps of a run have colours."""
    text = DEPLOY_APP.replace("name: Build", "name: 'Build \"it\" [now]'")
    drawn = mermaid(parse_definition(text), {"build": "done", "review": "waiting_approval"})
    assert 's0["build: Build #34;it#34; #91;now#93;"]' in drawn
    assert "s1 -->|approve| s2" in drawn and "s1 -->|reject| s3" in drawn
    assert "s2 --> completed([completed])" in drawn
    assert "class s1 waiting_approval" in drawn


def test_a_result_changes_no_input() -> None:
    """A page that an action fetched must not choose where the next action deploys."""
    definition = parse_definition(
        workflow(
            "x",
            f"{ACTION}, next: b",
            "id: b, type: action, action: t, args: {host: '{{ host }}', version: '{{ version }}'}",
            inputs="{host: prod}",
        )
    )
    results = {"a": CallResult({"host": "evil", "version": "2"}, "", "")}
    state = replay(definition, {}, lambda call: results.get(call.step), "run", definition.sha256)
    assert state.next is not None and state.next.arguments == {"host": "prod", "version": "2"}
