"""A thing that a plugin declared, and whose it is."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class OwnedItem(Generic[T]):
    """``item`` as declared by the plugin ``owner`` (its distribution's name)."""

    owner: str
    item: T
