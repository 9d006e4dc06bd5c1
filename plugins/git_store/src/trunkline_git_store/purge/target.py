"""The target of a purge: one path with everything below it, or a chunk or conversation wherever its file ever
was. Rules about names only."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from trunkline.api.chunks import is_chunk_id, parse_chunk_path
from trunkline.api.store import (
    conversation_of,
    conversation_of_attachment,
    is_git_name,
    normalize_path,
    parse_conversation_id,
)


class TreeSelection(NamedTuple):
    """The selection in one folder: names to remove from it, and subfolders with their targets."""

    out: frozenset[str]
    into: "dict[str, Target] | None"


class Target(ABC):
    """The selection of files in a folder. Hashable, so that a folder is examined once."""

    @abstractmethod
    def matches(self, path: str) -> bool:
        """Report whether a file goes, by its whole path."""

    @abstractmethod
    def select(self, folders: list[str]) -> TreeSelection:
        """Return the selection for a folder with these subfolders."""

    @abstractmethod
    def __hash__(self) -> int: ...

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...


class PathTarget(Target):
    """A purged path, relative to a folder."""

    def __init__(self, path: str) -> None:
        self._path = path

    def matches(self, path: str) -> bool:
        """The path itself, and all below it."""
        return path == self._path or path.startswith(f"{self._path}/")

    def select(self, folders: list[str]) -> TreeSelection:
        """Out with it, or down the way to it."""
        first, _, rest = self._path.partition("/")
        if not rest:
            return TreeSelection(frozenset((first,)), {})
        return TreeSelection(frozenset(), {first: PathTarget(rest)} if first in folders else {})

    def __hash__(self) -> int:
        return hash(self._path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathTarget) and other._path == self._path


class ChunkTarget(Target):
    """A chunk's file: in every ``chunks`` folder its day, archived or not, crowded or not."""

    def __init__(self, chunk: str, within: str = "") -> None:
        self._chunk = chunk
        self._within = within

    def matches(self, path: str) -> bool:
        """The chunk's file in any place of chunks."""
        found = parse_chunk_path(path)
        return found is not None and found.id == self._chunk

    def select(self, folders: list[str]) -> TreeSelection:
        """Everywhere for folders of chunks, and in those only where its day is."""
        day, digits = self._chunk[6:16], self._chunk[17:19]
        if self._within == "day":
            into = {name: ChunkTarget(self._chunk, "day") for name in digits if name in folders}
            return TreeSelection(frozenset((f"{self._chunk}.json",)), dict[str, Target](into))
        found: dict[str, Target] = {}
        for name in folders:
            if self._within == "chunks" and name == day:
                found[name] = ChunkTarget(self._chunk, "day")
            elif self._within != "chunks" or name == "archive":
                found[name] = ChunkTarget(self._chunk, "chunks" if name in ("chunks", "archive") else "")
        return TreeSelection(frozenset(), found)

    def __hash__(self) -> int:
        return hash((self._chunk, self._within))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkTarget) and (other._chunk, other._within) == (self._chunk, self._within)


class ConversationTarget(Target):
    """A conversation's file and attachments, in whatever block, archived or not. Folders are not looked through for
    them: history names each of their versions."""

    def __init__(self, conversation: str) -> None:
        self._conversation = conversation

    def matches(self, path: str) -> bool:
        """The conversation's file and its attachments."""
        return self._conversation in (conversation_of(path), conversation_of_attachment(path))

    def select(self, folders: list[str]) -> TreeSelection:
        """Select no folder."""
        return TreeSelection(frozenset(), {})

    def __hash__(self) -> int:
        return hash(self._conversation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConversationTarget) and other._conversation == self._conversation


def parse_target(text: str) -> Target:
    """Return the target that a text names: a chunk or a conversation by its id, or a path.

    Names that belong to git are accepted: memory has none, but a person may have committed one. Raises
    Refusal ``invalid_path``.
    """
    if is_chunk_id(text):
        return ChunkTarget(text)
    if parse_conversation_id(text):
        return ConversationTarget(text)
    names = [name for name in text.split("/") if name]
    if any(map(is_git_name, names)):
        normalize_path("/".join("x" if is_git_name(name) else name for name in names))
        return PathTarget("/".join(names))
    return PathTarget(normalize_path(text))
