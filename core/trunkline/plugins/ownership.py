"""An item that a plugin declared, with its owner."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class OwnedItem(Generic[T]):
    """``item``, declared by the plugin ``owner`` (the name of its distribution)."""

    owner: str
    item: T
