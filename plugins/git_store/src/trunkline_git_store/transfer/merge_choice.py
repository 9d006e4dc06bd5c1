"""The merge choice for one file when two memories are merged. Pure.

As in git, the state wins that changed since the common base. When both changed, this memory's state stays,
and the other one is in history, as the report states.
"""

from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class MergeChoice(Enum):
    """The side whose state a path gets."""

    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"
    """Both changed it: the two states are merged, or reported as a conflict."""


def choose(base: T | None, ours: T | None, theirs: T | None, *, related: bool) -> MergeChoice:
    """Return the side whose state a path gets; None is "no file".

    ``related`` states whether ``base`` is known: without it, a file on only one side is kept, never treated
    as deleted.
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
