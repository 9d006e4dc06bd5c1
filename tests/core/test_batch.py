"""Pieces of one size."""

from trunkline._util.batch import batched


def test_every_item_comes_once_and_in_order_and_the_last_piece_may_be_shorter() -> None:
    assert list(batched(("a", "b", "c", "d", "e"), 2)) == [("a", "b"), ("c", "d"), ("e",)]
    assert list(batched("trunkline", 4)) == ["trun", "klin", "e"]
    assert list(batched(b"data", 4)) == [b"data"]


def test_nothing_makes_no_piece() -> None:
    assert list(batched((), 3)) == []
