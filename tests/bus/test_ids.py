"""Ids that sort by time, keys made of any text."""

import re
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus import Subject, key_of, new_id


def test_ids_grow_and_never_repeat() -> None:
    """Ids made one after the other sort in that order, also many within a millisecond."""
    ids = [new_id() for _ in range(20_000)]
    assert ids == sorted(set(ids))


def test_ids_of_many_threads_differ() -> None:
    """No two threads get the same id."""
    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(lambda _: [new_id() for _ in range(2000)], range(4)))
    assert len({one for batch in batches for one in batch}) == 8000


def test_an_id_is_a_ulid_and_a_subject_key() -> None:
    """26 characters of Crockford base32; a prefix stands before an underscore."""
    assert re.fullmatch("[0-7][0-9A-HJKMNP-TV-Z]{25}", new_id())
    assert re.fullmatch("conv_[0-9A-HJKMNP-TV-Z]{26}", new_id("conv"))
    assert Subject("a.{id}").parse(f"a.{new_id('conv')}")


@given(st.lists(st.text()))
def test_any_text_becomes_a_key(parts: list[str]) -> None:
    """For any text, its key is a valid subject key and always the same."""
    key = key_of(*parts)
    assert re.fullmatch("[a-z2-7]{26}", key)
    assert key == key_of(*parts)


@given(st.text(min_size=1), st.text(min_size=1))
def test_moving_a_border_changes_the_key(left: str, right: str) -> None:
    """The parts are kept apart, so shifting text from one to the next is another key."""
    assert key_of(left, right) != key_of(left + right)
    assert key_of(left, right) != key_of(left + right[0], right[1:])
