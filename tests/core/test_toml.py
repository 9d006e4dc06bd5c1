"""TOML that others wrote is read, or refused before it can hold a worker up."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline._util.toml import MAX_CHARACTERS, MAX_DOTS, read_toml

HOSTILE = {
    "a key of many parts": "a" + ".a" * 60_000 + " = 1",
    "a quoted one": '"a"' + '."="' * 20_000 + " = 1",
    "a heading of many parts": "[" + "a." * 60_000 + "a]",
    "an inline table of such": "x = {" + "a." * 30_000 + "a = 1}",
    "arrays in arrays": "x = " + "[" * 60_000,
    "tables in tables": "x = " + "{a=" * 20_000,
    "a number of many digits": "x = " + "9" * 100_000,
    "a text that is too long": "# " + "x" * MAX_CHARACTERS,
    "no TOML": "= 1",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_toml_that_would_block_a_worker_is_refused(text: str) -> None:
    """The error is the usual one for such a file, which every reader handles."""
    with pytest.raises(tomllib.TOMLDecodeError) as reported:
        read_toml(text)
    assert len(str(reported.value)) > 10


def test_ordinary_toml_is_read() -> None:
    """The result is tomllib's, for long texts and many tables too."""
    text = 'a.b = "' + "x. " * (MAX_DOTS // 2) + '"\n' + "\n".join(f"[t.n{n}]\nx = {n}" for n in range(3_000))
    assert read_toml(text) == tomllib.loads(text)


@given(st.text("[]{}=.,'\"\n 0a#-T:", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """With one kind of error, and never otherwise than tomllib reads it."""
    try:
        found = read_toml(text)
    except tomllib.TOMLDecodeError:
        return
    assert found == tomllib.loads(text)
