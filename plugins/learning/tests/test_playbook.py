"""The playbook as in the ACE paper: ids, counters, deltas merged by code, de-duplication, grow and refine."""

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trunkline_learning import heuristic_reflector, playbook, strategy_selection
from trunkline_learning.playbook import (
    AddStrategy,
    MarkStrategy,
    MergeStrategies,
    PlaybookOperation,
    RemoveStrategy,
    Strategy,
    UpdateStrategy,
    apply_delta,
    refine,
)
from trunkline_learning.turns import FinishedTurn, Provenance, ToolUse

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
SOURCE = Provenance(block="main", conversation="c", turn="t")
READ_FIRST = "Read the file before you replace text in it."


def after(book: dict[str, Strategy], *delta: PlaybookOperation) -> dict[str, Strategy]:
    changes = apply_delta(book, delta, SOURCE, AT)
    return {id: one for id, one in {**book, **changes}.items() if one is not None}


def test_a_new_strategy_gets_a_stable_id_and_its_origin() -> None:
    """The id is of the section and the words, so two machines that learn the same agree."""
    [one] = after({}, AddStrategy(section="pitfalls", strategy=READ_FIRST)).values()
    [again] = after({}, AddStrategy(section="pitfalls", strategy=f"  {READ_FIRST.upper()} ")).values()
    assert one.id == again.id and one.id.startswith("pit-")
    assert one.sources == (SOURCE,) and (one.helpful, one.harmful) == (0, 0)


def test_repeated_advice_confirms_an_existing_strategy() -> None:
    """F23: confidence grows by .1 up to 1, also for other words that say the same."""
    book = after({}, AddStrategy(section="pitfalls", strategy=READ_FIRST))
    book = after(
        book,
        *[AddStrategy(section="pitfalls", strategy="Read the file before you replace any text in it")] * 5,
    )
    [one] = book.values()
    assert one.confidence == 1.0 and one.last_seen == AT
    assert len(after(book, AddStrategy(section="checks", strategy=READ_FIRST))) == 2, (
        "another section is another strategy"
    )


def test_marks_are_counted_and_harmful_strategies_removed() -> None:
    """Helpful and harmful are counted apart; three more harmful than helpful marks take a strategy out."""
    book = after({}, AddStrategy(section="pitfalls", strategy=READ_FIRST))
    [id] = book
    book = after(
        book,
        MarkStrategy(id=id, tag="helpful"),
        MarkStrategy(id=id, tag="harmful"),
        MarkStrategy(id=id, tag="neutral"),
    )
    assert (book[id].helpful, book[id].harmful, book[id].neutral) == (1, 1, 1)
    assert after(book, *[MarkStrategy(id=id, tag="harmful")] * 3) == {}


def test_updates_keep_the_id_and_the_counters() -> None:
    """Better words for the same item."""
    book = after({}, AddStrategy(section="pitfalls", strategy=READ_FIRST))
    [id] = book
    book = after(book, MarkStrategy(id=id, tag="helpful"), UpdateStrategy(id=id, strategy="Read it first."))
    assert (book[id].strategy, book[id].helpful) == ("Read it first.", 1)


def test_merging_adds_the_counters_up_and_loses_no_source() -> None:
    """The first keeps its id; sections are never mixed."""
    book = after(
        {},
        AddStrategy(section="checks", strategy="Run the tests"),
        AddStrategy(section="checks", strategy="Look at types"),
    )
    first, second = book
    book = after(book, MarkStrategy(id=first, tag="helpful"), MarkStrategy(id=second, tag="helpful"))
    [one] = after(book, MergeStrategies(ids=(first, second), strategy="Run tests and types")).values()
    assert (one.id, one.helpful, one.strategy) == (first, 2, "Run tests and types")
    mixed = after(book, AddStrategy(section="terms", strategy="A turn is a message and its answer"))
    assert after(mixed, MergeStrategies(ids=tuple(mixed))) == mixed


def test_a_single_remove_does_not_delete_a_helpful_strategy() -> None:
    """Remove is refused for a strategy that was more helpful than harmful; unknown ids change nothing."""
    book = after({}, AddStrategy(section="pitfalls", strategy=READ_FIRST))
    [id] = book
    helped = after(book, MarkStrategy(id=id, tag="helpful"))
    assert after(helped, RemoveStrategy(id=id)) == helped and after(book, RemoveStrategy(id=id)) == {}
    assert (
        apply_delta(
            book,
            [MarkStrategy(id="pit-nothere", tag="helpful"), UpdateStrategy(id="x", strategy="y")],
            SOURCE,
            AT,
        )
        == {}
    )


def test_only_a_full_playbook_is_refined() -> None:
    """F23: above 500 what is alike becomes one with all its marks, then the least worth go."""

    def one(n: int, words: str) -> Strategy:
        return Strategy(
            id=f"chk-{n:08}", section="checks", strategy=words, helpful=1, timestamp=AT + timedelta(n)
        )

    alike = [one(n, "Run all the tests before you answer") for n in range(3)]
    others = [one(10 + n, f"Look at item{n} of list{n} in room{n}") for n in range(499)]
    assert refine({s.id: s for s in alike}, SOURCE, AT) == {}
    book = {s.id: s for s in [*alike, *others]}
    changes = refine(book, SOURCE, AT)
    left = {id: s for id, s in {**book, **changes}.items() if s is not None}
    assert len(left) == playbook.MAX_STRATEGIES and left["chk-00000000"].helpful == 3
    assert "chk-00000001" not in left


operations = st.one_of(
    st.builds(
        AddStrategy,
        section=st.sampled_from(["pitfalls", "checks"]),
        strategy=st.sampled_from(["read first", "run tests", "run the tests", "ask the person", " "]),
    ),
    st.builds(
        MarkStrategy,
        id=st.sampled_from(["pit-a", "chk-a", playbook.strategy_id("checks", "run tests")]),
        tag=st.sampled_from(["helpful", "harmful", "neutral"]),
    ),
    st.builds(RemoveStrategy, id=st.just(playbook.strategy_id("checks", "run tests"))),
    st.builds(
        MergeStrategies,
        ids=st.permutations([playbook.strategy_id("checks", w) for w in ("run tests", "ask the person")]).map(
            tuple
        ),
    ),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(operations, max_size=12), st.integers(0, 12))
def test_deltas_merge_the_same_in_one_or_two_steps(delta: list[PlaybookOperation], cut: int) -> None:
    """Merging is deterministic: the same operations give the same playbook, in any number of steps."""
    assert after({}, *delta) == after(after({}, *delta[:cut]), *delta[cut:])


def turn(*tools: ToolUse, strategies: tuple[str, ...] = ()) -> FinishedTurn:
    from trunkline.contracts.conversations.messages import Message

    said = (Message(id="m", role="user", content="Replace the title", created_at=AT),)
    return FinishedTurn(
        source=SOURCE, model="a/m", messages=said, answer="Done.", tools=tools, strategies=strategies, at=AT
    )


def test_each_kind_of_failure_teaches_its_own_lesson() -> None:
    """F23: eight kinds of failure, found by the words of errors."""
    outputs = {
        "string_not_found": "the text is not in notes.md",
        "file_not_found": "No such file or directory: a.md",
        "permission_denied": "Permission denied: /etc/shadow",
        "syntax_error": "SyntaxError: invalid syntax",
        "timeout": "the call timed out after 60 s",
        "api_error": "HTTP 503 error from the service",
        "command_failed": "exited with code 2",
        "json_error": "JSONDecodeError: Expecting value",
    }
    for kind, output in outputs.items():
        failed = turn(ToolUse(name="some_tool", failed=True, output=output))
        assert heuristic_reflector.failure_kinds(failed) == (kind,)
        [add] = heuristic_reflector.failure_lessons(failed)
        assert isinstance(add, AddStrategy) and add.confidence == 0.9 and add.outcome == "failure"
    assert (
        heuristic_reflector.failure_lessons(turn(ToolUse(name="x", failed=False, output="SyntaxError"))) == ()
    )


def test_success_marks_used_strategies_helpful_and_failure_harmful() -> None:
    """The ids that stood in the context are those that are marked; what worked is noted for edits and programs."""
    good = heuristic_reflector.outcome_operations(
        turn(ToolUse(name="replace_in_file", failed=False), strategies=("pit-1",)), "success"
    )
    assert good[0] == MarkStrategy(id="pit-1", tag="helpful")
    assert (
        isinstance(good[1], AddStrategy)
        and good[1].tools == ("replace_in_file",)
        and good[1].confidence == 0.8
    )
    assert heuristic_reflector.outcome_operations(turn(strategies=("pit-1",)), "failure") == (
        MarkStrategy(id="pit-1", tag="harmful"),
    )


def test_a_task_gets_at_most_ten_strategies_and_five_per_section() -> None:
    """F23: five from failures and five from successes; other models' strategies come after one's own."""

    def one(n: int, outcome: str) -> Strategy:
        return Strategy(
            id=f"pit-{n:08}",
            section="pitfalls",
            strategy=f"Replace text number {n} with care",
            outcome=outcome,  # type: ignore[arg-type]
            confidence=0.9,
            timestamp=AT,
        )

    many = [("a_m", one(n, "failure" if n % 2 else "success")) for n in range(30)]
    chosen = strategy_selection.select_strategies("replace text in the title", many, model="a/m", now=AT)
    assert len(chosen) == 10 and sum(s.outcome == "failure" for s in chosen) == 5
    assert strategy_selection.select_strategies("bake bread", many, model="a/m", now=AT) == ()
    mine, theirs = ("a_m", one(1, "success")), ("b_n", one(2, "success"))
    assert (
        strategy_selection.select_strategies("replace text", [theirs, mine], model="a/m", now=AT)[0]
        == mine[1]
    )


def test_strategies_are_shown_with_the_ids_used_for_marking() -> None:
    """The ids are read back from the shown text, also out of a marked block."""
    strategy = Strategy(
        id="pit-1a2b3c4d", section="pitfalls", strategy="Read\nit first", helpful=3, timestamp=AT
    )
    text = strategy_selection.render_strategies(
        [strategy, replace(strategy, id="chk-0000aaaa", section="checks")]
    )
    assert "[pit-1a2b3c4d] helpful=3 harmful=0 :: Read it first" in text
    assert strategy_selection.parse_strategy_ids(f"<context>\n{text}\n</context>") == (
        "pit-1a2b3c4d",
        "chk-0000aaaa",
    )
