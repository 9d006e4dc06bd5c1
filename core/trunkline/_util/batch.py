"""Splits a sequence into batches. Python provides ``itertools.batched`` only since version 3.12."""

from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T", str, bytes, tuple[str, ...])


def batched(items: T, size: int) -> Iterator[T]:
    """Yield the items in order, in batches of ``size``. The last batch may be smaller."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
