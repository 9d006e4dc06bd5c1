"""Every acceptance id of "Hands that can be trusted" is held by a test."""

import pytest

from .ids import HANDS, held, ids_in

TESTS = held()


@pytest.mark.parametrize("id", HANDS)
def test_an_id_has_its_tests(id: str) -> None:
    """One test at least."""
    assert TESTS.get(id), f"no test carries {id} ({HANDS[id]})"


def test_ids_are_found_in_names_and_sentences() -> None:
    """As names write them, and as sentences do, a range among them."""
    assert list(ids_in("test_MN_T15_an_edit")) == ["MN-T15"]
    assert list(ids_in("test_pa_t1_x (PA-T2 to T4)")) == ["PA-T1", "PA-T2", "PA-T3", "PA-T4"]
    assert list(ids_in("FOOPA-T1 and PA-F14")) == []
