"""What becomes of one file when two memories become one. Pure.

As git merges: of two states the one wins that changed since both were the same. When both changed, nothing is guessed:
this memory's state stays, and the other one is in history, where the report says.
"""

from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class MergeChoice(Enum):
    """Whose state a path gets."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"
    """Both changed it: the states are to be joined, or told."""


def choose(base: T | None, ours: T | None, theirs: T | None, *, related: bool) -> MergeChoice:
    """Whose state a path gets; None is "no file".

    ``related`` says whether ``base`` is known: without it, what only one side has is kept, never taken for deleted.
    """
    if ours == theirs:
        return MergeChoice.OURS
    if related:
        if theirs == base:
            return MergeChoice.OURS
        return MergeChoice.THEIRS if ours == base else MergeChoice.BOTH
    if theirs is None:
        return MergeChoice.OURS
    return MergeChoice.THEIRS if ours is None else MergeChoice.BOTH
