"""A trace drawn as a tree."""

from trunkline.contracts.workers.messages import SpanRecord
from trunkline.telemetry.trace_tree import span_title, tree_lines


def span(name: str, id: str, parent: str | None, start: int, end: int, **more: object) -> SpanRecord:
    return SpanRecord(
        trace_id="t", span_id=id, parent_id=parent, name=name, kind="internal", service="trunkline.workers.monitor",
        start=start, end=end, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_child_spans_are_listed_below_their_parent_by_time() -> None:
    """The oldest is first, for any order of the records."""
    drawn = tree_lines([span("b", "3", "1", 5, 6), span("root", "1", None, 0, 10), span("a", "2", "1", 1, 4)])
    assert [(line.branch, line.span.name) for line in drawn] == [("", "root"), ("├─ ", "a"), ("└─ ", "b")]


def test_a_span_of_a_killed_parent_is_a_root() -> None:
    """The open spans of a killed worker are lost; its finished ones are still shown."""
    drawn = tree_lines([span("orphan", "2", "gone", 1, 4), span("root", "1", None, 0, 10)])
    assert [(line.depth, line.span.name) for line in drawn] == [(0, "root"), (0, "orphan")]


def test_span_names_show_the_subject_in_place_of_its_template() -> None:
    """Span names have few values; a person sees which channel it was. A span of before has its name alone."""
    attributes = {
        "messaging.destination.template": "trunkline.cmd.gateway.{channel}.send",
        "messaging.destination.name": "trunkline.cmd.gateway.terminal.send",
    }
    name = "process trunkline.cmd.gateway.{channel}.send"
    assert (
        span_title(span(name, "1", None, 0, 1, attributes=attributes))
        == "process trunkline.cmd.gateway.terminal.send"
    )
    assert span_title(span(name, "1", None, 0, 1)) == name


def test_a_span_sent_twice_is_drawn_once() -> None:
    """A batch may be sent again after a reconnection."""
    assert len(tree_lines([span("a", "1", None, 0, 1), span("a", "1", None, 0, 1)])) == 1


def test_a_span_exported_while_open_is_replaced_by_its_end() -> None:
    """The order of arrival does not matter; the span of a killed worker stays, with its children below it, and is
    marked."""
    opened, ended = span("a", "1", None, 0, 5, unfinished=True), span("a", "1", None, 0, 9)
    assert [line.span for line in tree_lines([opened, ended])] == [ended]
    assert [line.span for line in tree_lines([ended, opened])] == [ended]
    killed = tree_lines([span("child", "2", "1", 1, 4), opened])
    assert [(line.depth, line.span.name) for line in killed] == [(0, "a"), (1, "child")]
    assert "not ended" in killed[0].notes


def test_retries_and_fallbacks_of_a_model_call_are_noted() -> None:
    """A person sees that another model answered, and why."""
    events = (
        {"name": "trunkline.model.retry", "trunkline.model": "a/big", "trunkline.fault": "unavailable"},
        {"name": "trunkline.model.fallback", "trunkline.model": "b/small"},
        {"name": "an event of a plugin"},
    )
    (line,) = tree_lines([span("chat big", "1", None, 0, 9, events=events)])
    assert line.notes == "repeated (unavailable), fallback to b/small"


def test_tokens_first_token_owner_and_errors_are_noted() -> None:
    """These notes of interest stand beside the name."""
    attributes = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2, "trunkline.turn.epoch": 2}
    first = {"name": "trunkline.first_token", "time": 5_000_000}
    (line,) = tree_lines(
        [
            span(
                "chat",
                "1",
                None,
                0,
                9,
                attributes=attributes,
                events=(first,),
                status="error",
                message="timeout",
            )
        ]
    )
    assert line.notes == "7 in / 2 out, first token 5 ms, owner 2, error: timeout"


def test_an_empty_trace_draws_nothing() -> None:
    """A trace whose spans are gone is empty."""
    assert tree_lines([]) == ()
