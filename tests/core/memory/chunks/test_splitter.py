"""Cutting texts into chunks, and their types by their words (RLM-F6, F7, T1, T2)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from trunkline.workers.memory.chunks.chunk_types import detect_type
from trunkline.workers.memory.chunks.splitter import MAX_TOKENS, MIN_TOKENS, TextSplitter
from trunkline.workers.memory.chunks.tokens import estimate_tokens, load_counter


def bare(text: str) -> str:
    """A text without white space."""
    return re.sub(r"\s+", "", text)


@pytest.fixture(params=[estimate_tokens, load_counter()], ids=["estimate", "counter"])
def cutter(request: pytest.FixtureRequest) -> TextSplitter:
    """With the estimate, and with the tokenizer that is installed, if one is."""
    return TextSplitter(detect_type, request.param)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("User prefers dark mode", "preference"),
        ("We decided to use Postgres", "decision"),
        ("He usually deploys on Friday", "pattern"),
        ("Anna works at X", "fact"),
        ("The rain in March", "note"),
        ("We decided that he usually prefers tea, which is a drink", "decision"),
        ("He usually prefers tea, which is a drink", "pattern"),
        ("She has 3 cats", "fact"),
        ("A blank liking", "note"),
    ],
)
def test_rlm_t1_the_first_family_with_a_hit_is_the_type(text: str, kind: str) -> None:
    """RLM-T1: decision before pattern before preference before fact, else note; whole words only."""
    assert detect_type(text) == kind


def prose(tokens: int) -> str:
    """Paragraphs of sentences of about so many tokens in all."""
    sentence = "The gardener moved the third bed of beans behind the shed. "
    paragraph = sentence * 9
    return "\n\n".join([paragraph] * max(1, tokens * 4 // len(paragraph)))


def test_rlm_t2_a_long_text_is_cut_within_the_bounds(cutter: TextSplitter) -> None:
    """RLM-T2: of 2000 tokens none has more than 800 or, but for the last, fewer than 100; joined they are the text."""
    text = prose(2_000)
    pieces = cutter.split(text)
    assert len(pieces) > 1
    assert all(piece.tokens <= MAX_TOKENS for piece in pieces)
    assert all(piece.tokens >= MIN_TOKENS for piece in pieces[:-1])
    assert bare("".join(piece.text for piece in pieces)) == bare(text)


def test_rlm_t2_an_endless_paragraph_is_split_at_sentences(cutter: TextSplitter) -> None:
    """RLM-T2: a paragraph that is too long falls into pieces that end with sentences."""
    text = "The gardener moved the third bed of beans behind the shed. " * 150
    pieces = cutter.split(text)
    assert len(pieces) > 1
    assert all(piece.tokens <= MAX_TOKENS and piece.text.endswith(".") for piece in pieces)
    assert bare("".join(piece.text for piece in pieces)) == bare(text)


def test_rlm_t2_a_very_long_word_survives(cutter: TextSplitter) -> None:
    """RLM-T2: a word of 5000 letters is in one piece, unchanged, alone or within a text."""
    word = "x" * 5_000
    assert [piece.text for piece in cutter.split(word)] == [word]
    assert any(word in piece.text for piece in cutter.split(f"{prose(900)} {word} {prose(900)}"))


def test_rlm_t2_a_block_of_code_stays_whole(cutter: TextSplitter) -> None:
    """RLM-T2: code with blank lines in it is one piece while it fits, fences included."""
    code = "```python\ndef dig(bed):\n    bed.open()\n\n\n    return bed\n\n" + "    bed.dig()\n" * 60 + "```"
    text = f"{prose(700)}\n\n{code}\n\n{prose(700)}"
    assert any(code in piece.text for piece in cutter.split(text))


def test_short_paragraphs_of_one_type_are_joined_and_others_are_not(cutter: TextSplitter) -> None:
    """RLM-F6: a short paragraph joins its neighbour of the same type."""
    same = cutter.split("The rain came.\n\nThe wind went.")
    assert [piece.text for piece in same] == ["The rain came.\n\nThe wind went."]
    apart = cutter.split("We decided to use Postgres.\n\nUser prefers dark mode.")
    assert [piece.type for piece in apart] == ["decision", "preference"]


def test_a_type_that_is_given_is_the_type_of_all(cutter: TextSplitter) -> None:
    """A caller who knows better is believed."""
    assert {piece.type for piece in cutter.split(prose(2_000), "fact")} == {"fact"}


@examples(150, deadline=None)
@given(st.text(st.sampled_from("ab .!?\n\t`#é。"), max_size=6_000))
def test_splitting_loses_and_adds_no_character(text: str) -> None:
    """Joined, the pieces of any text are that text, but for white space; none is blank."""
    pieces = TextSplitter(detect_type, estimate_tokens).split(text)
    assert bare("".join(piece.text for piece in pieces)) == bare(text)
    assert all(piece.text.strip() for piece in pieces)


@examples(60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from(["It rained.", "She prefers tea.", "We decided so!", "Why?"]),
            min_size=1,
            max_size=400,
        ),
        min_size=1,
        max_size=12,
    )
)
def test_pieces_of_prose_are_within_the_bounds(paragraphs: list[list[str]]) -> None:
    """No piece of ordinary sentences is longer than the longest; in a long text none but the last is shorter than the
    shortest."""
    pieces = TextSplitter(detect_type, estimate_tokens).split(
        "\n\n".join(" ".join(one) for one in paragraphs)
    )
    assert all(piece.tokens <= MAX_TOKENS for piece in pieces)
    if sum(piece.tokens for piece in pieces) > MAX_TOKENS:
        assert all(piece.tokens >= MIN_TOKENS for piece in pieces[:-1])
