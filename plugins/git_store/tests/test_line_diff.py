"""The common lines of two texts, compared with a person's expectation."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline_git_store.history.line_diff import count_lines, matching_lines, merge_lines, split_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"d\0\n"]), max_size=12)


@given(old=LINES, new=LINES, end=st.sampled_from([b"", b"x"]))
def test_runs_are_the_same_lines_in_order(old: list[bytes], new: list[bytes], end: bytes) -> None:
    """Each run names lines that are equal in both texts, and runs never overlap."""
    first, second = b"".join(old), b"".join(new) + end
    before, after = split_lines(first), split_lines(second)
    assert (count_lines(first), count_lines(second)) == (len(before), len(after))
    at_old = at_new = 0
    for run in matching_lines(first, second):
        assert run.old >= at_old and run.new >= at_new and run.length > 0
        assert before[run.old : run.old + run.length] == after[run.new : run.new + run.length]
        at_old, at_new = run.old + run.length, run.new + run.length
    if first == second:
        assert sum(run.length for run in matching_lines(first, second)) == len(before)


@given(base=LINES, ours=LINES)
def test_one_sided_changes_merge_to_that_side(base: list[bytes], ours: list[bytes]) -> None:
    """If one side changed, or both made the same change, the result is that side."""
    first, second = b"".join(base), b"".join(ours)
    assert merge_lines(first, second, first) == second
    assert merge_lines(first, first, second) == second
    assert merge_lines(first, second, second) == second


@given(top=LINES, bottom=LINES, ours=LINES, theirs=LINES)
def test_changes_in_different_places_are_both_kept(
    top: list[bytes], bottom: list[bytes], ours: list[bytes], theirs: list[bytes]
) -> None:
    """Changes separated by unchanged lines are merged, for any content."""
    middle = [b"1\n", b"2\n", b"3\n"]
    text = [
        b"".join([*above, *middle, *below]) for above, below in ((top, bottom), (ours, bottom), (top, theirs))
    ]
    assert merge_lines(*text) == b"".join([*ours, *middle, *theirs])


def test_changes_of_the_same_line_do_not_merge() -> None:
    """Both sides changed the line, or one changed a line that the other removed."""
    assert merge_lines(b"a\nb\n", b"A\nb\n", b"x\nb\n") is None
    assert merge_lines(b"a\nb\n", b"b\n", b"A\nb\n") is None
