"""Every id of the five specifications is carried by a test, or waits for an issue that is open."""

import pytest

from .ids import REQUIREMENTS, ROOT, SPECS, carrying, ids_in, named_by_tests, specified, table
from .requirement import ISSUES

DONE = [id for id, one in REQUIREMENTS.items() if one.issue is None]
PLANNED = [id for id, one in REQUIREMENTS.items() if one.issue is not None]


@pytest.mark.parametrize("id", DONE)
def test_an_id_of_completed_work_has_a_test(id: str) -> None:
    """One test at least."""
    assert carrying(id), f"no test carries {id} ({REQUIREMENTS[id].about})"


@pytest.mark.parametrize("id", PLANNED)
def test_an_id_of_open_work_names_an_open_issue(id: str) -> None:
    """An id of filed work is never open; where parts exist, the table names the missing ones."""
    one = REQUIREMENTS[id]
    assert one.issue in ISSUES, f"{id} waits for issue {one.issue}, which is not open"
    assert one.open or not one.tests, f"say what is missing of {id}"


def test_the_tests_that_the_table_names_are_there() -> None:
    """A file that moved, or a test that was renamed, is noticed."""
    named = [test for one in REQUIREMENTS.values() for test in one.tests]
    missing = [test for test in named if test not in named_by_tests() and not (ROOT / test).is_file()]
    assert not missing, f"the table names what is not there: {missing}"


def test_no_test_names_an_id_that_no_specification_has() -> None:
    """A slip in an id would carry nothing."""
    unknown = {id: test for test, ids in named_by_tests().items() for id in ids if id not in REQUIREMENTS}
    assert not unknown


@pytest.mark.skipif(not SPECS.is_dir(), reason="the specifications lie beside a checkout, and are not here")
def test_the_table_has_every_id_of_the_specifications() -> None:
    """No id is left out, and none is made up."""
    assert set(REQUIREMENTS) == specified(SPECS)


def test_ids_are_found_in_names_and_sentences() -> None:
    """The ids are written as in names and as in sentences, a range among them."""
    assert list(ids_in("test_MN_T15_an_edit")) == ["MN-T15"]
    assert list(ids_in("test_pa_t1_x (PA-T2 to T4)")) == ["PA-T1", "PA-T2", "PA-T3", "PA-T4"]
    assert list(ids_in("FOOPA-T1 and PA-F14, MB-T13b, test_ARCH_2_FS_7_swaps")) == [
        "PA-F14", "MB-T13b", "ARCH-2", "FS-7",
    ]  # fmt: skip


def test_the_table_is_printed_whole() -> None:
    """A line for each id; ``--open`` shows what an open issue builds."""
    assert len(table().splitlines()) == len(REQUIREMENTS) + 2
    assert len(table(only_open=True).splitlines()) == len(PLANNED) + 2
