"""Facts by words, and when two of them cannot both hold."""

from datetime import UTC, datetime

import pytest

from trunkline.contracts.conversations.messages import Message
from trunkline_learning.contradictions import conflict_kind, is_same_statement
from trunkline_learning.facts import classify, extract_facts
from trunkline_learning.turns import FinishedTurn, Provenance

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "type"),
    [
        ("I prefer dark mode", "preference"),
        ("User prefers dark mode", "preference"),
        ("We decided to use Postgres", "decision"),
        ("He usually deploys on Friday", "pattern"),
        ("Anna works at X", "fact"),
        ("My name is Ada Lovelace", "fact"),
        ("I'm a nurse from Porto", "fact"),
        ("I live in Lisbon now", "fact"),
        ("Our production server is hetzner-3", "fact"),
    ],
)
def test_statements_are_typed_by_their_words(said: str, type: str) -> None:
    """RLM-F7: families of words, the first one that hits."""
    assert classify(said) == type


@pytest.mark.parametrize(
    "said",
    [
        "I would like a summary of this file",
        "I'd like you to write a poem",
        "I want to fix the build",
        "Can you tell me where Anna works at night",
        "This is a test",
        "If I live in Lisbon then pay there",
        "Fix the login test please",
        "Do you like tabs",
    ],
)
def test_requests_and_questions_state_nothing(said: str) -> None:
    """A wish for work is a task and no preference; a condition is no fact."""
    assert classify(said) is None


def test_only_plain_sentences_of_a_person_are_analysed() -> None:
    """No code, no quotation, no question; nothing of a schedule or a webhook."""
    text = "Hello.\n> I live in Rome, he says.\n```\nI like = 'tabs'\n```\nDo I live in Paris?\nI live in Lisbon."
    said = (Message(id="m1", role="user", content=text, created_at=AT),)
    turn = FinishedTurn(
        source=Provenance(block="b", conversation="c", turn="t"),
        model="",
        messages=said,
        answer="I live in the cloud.",
        at=AT,
    )
    [fact] = extract_facts(turn)
    assert fact.text == "I live in Lisbon." and fact.source.message == "m1"
    from msgspec.structs import replace

    assert extract_facts(replace(turn, by_person=False)) == ()


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("I like tabs", "I do not like tabs", "preference"),
        ("likes tabs", "does not like tabs", "preference"),
        ("I hate tabs", "I love tabs", "preference"),
        ("I live in Lisbon", "I live in Porto now", "value"),
        ("I work at ACME", "I work for Initech", "value"),
        ("My favourite editor is vim", "My favourite editor is emacs", "value"),
        ("The server is in Berlin", "The server is not in Berlin", "negation"),
        ("We use the old printer", "We no longer use the old printer", "negation"),
        ("Ich mag Kaffee", "Ich mag keinen Kaffee", "preference"),
        ("Die Wohnung ist in der Altstadt", "Die Wohnungen sind nicht in der Altstadt", "negation"),
    ],
)
def test_contradictions_are_found_both_ways(one: str, other: str, kind: str) -> None:
    """RLM-F11: a denial, an opposite taste, another value for the same thing."""
    assert conflict_kind(one, other) == conflict_kind(other, one) == kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tabs", "I like spaces"),
        ("I do not hate tabs", "I like tabs"),
        ("My dog is Rex", "My cat is Tom"),
        ("I live in Lisbon", "I live in Lisbon now"),
        ("Anna lives in Rome", "Ben lives in Oslo"),
        ("I like tabs", "We decided to use Postgres"),
        ("Ich mag Kaffee", "Ich trinke gern Kaffee"),
    ],
)
def test_compatible_statements_are_not_contradictions(one: str, other: str) -> None:
    """Different things may have different values."""
    assert conflict_kind(one, other) is None


def test_statements_that_differ_in_stop_words_are_equal() -> None:
    """Case, stops and filler words make no new fact; a denial does."""
    assert is_same_statement("I live in Lisbon", "i really live in Lisbon.") and not is_same_statement(
        "I like tabs", "I do not like tabs"
    )
    assert not is_same_statement("I live in Lisbon", "I live in Porto")


@pytest.mark.parametrize(
    ("said", "confidence"),
    [
        ("We decided to use Postgres.", 0.9),
        ("I prefer dark mode.", 0.85),
        ("Our tests always go to tests/unit.", 0.9),
        ("Anna usually deploys on Friday.", 0.6),
        ("I live in Lisbon.", 0.6),
    ],
)
def test_rlm_f22_confidence_depends_on_the_kind_of_statement(said: str, confidence: float) -> None:
    """RLM-F22: decisions .9, preferences .85, patterns of files .9; what words alone suggest is less sure."""
    message = Message(id="m1", role="user", content=said, created_at=AT)
    source = Provenance(block="b", conversation="c", turn="t")
    [fact] = extract_facts(FinishedTurn(source=source, model="", messages=(message,), answer="", at=AT))
    assert fact.confidence == confidence
