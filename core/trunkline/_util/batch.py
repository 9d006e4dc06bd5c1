"""Cutting a sequence into pieces of one size; Python has ``itertools.batched`` only since 3.12."""

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T", str, bytes, tuple[str, ...])


def batched(items: T, size: int) -> Iterator[T]:
    """Yield the items in order, ``size`` at a time; the last piece may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
