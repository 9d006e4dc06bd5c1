"""Pieces of one size."""

from trunkline._util.batch import batched


def test_batches_contain_every_item_once_and_in_order() -> None:
    assert list(batched(("a", "b", "c", "d", "e"), 2)) == [("a", "b"), ("c", "d"), ("e",)]
    assert list(batched("trunkline", 4)) == ["trun", "klin", "e"]
    assert list(batched(b"data", 4)) == [b"data"]


def test_nothing_makes_no_piece() -> None:
    assert list(batched((), 3)) == []
