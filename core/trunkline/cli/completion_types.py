"""Parameter types that complete names of blocks and chunks, and paths of memory, for the shell.

They read only files, so they are fast. After any error there are simply no completions.
"""

import contextlib
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from trunkline.contracts.blocks.paths import BLOCKS_FOLDER, block_folder

MAX_SUGGESTIONS = 500
DAYS = 100
"""Largest number of chunk folders that are read. There is one for each day and block."""
DATED = len("chunk-2026-05-04")


class BlockName(StringParamType):
    """The name of a block."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names of existing blocks."""
        return [CompletionItem(name) for name in _blocks() if name.startswith(incomplete)]

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        """The choices for the error message of a missing argument."""
        return f"Known blocks: {', '.join(_blocks())}." if _blocks() else None


class ConversationName(StringParamType):
    """The type of an argument that names a conversation."""

    name = "conversation"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        """The choices for the error message of a missing argument."""
        return 'Give its number or id from "trunkline conversations", the beginning of the id, or "last".'


class MemoryPath(StringParamType):
    """A path of memory."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a path with the entries of its folder. If a folder is the only match, it ends with a slash, so
        that the person can continue.
        """
        folder, _, begun = incomplete.rpartition("/")
        found = _below(folder, begun)
        while len(found) == 1 and found[0].endswith("/"):
            found = _below(found[0].rstrip("/"), "") or [found[0].rstrip("/")]
        return [CompletionItem(path) for path in found]


class ChunkId(StringParamType):
    """The id of a chunk of any block. If there are many chunks, only the newest are completed."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the chunks whose ids begin with the text."""
        folders = [
            "chunks",
            *(f"{block_folder(name)}chunks" for name in _names(BLOCKS_FOLDER) if name.endswith("/")),
        ]
        days = [(day.rstrip("/"), folder) for folder in folders for day in _names(folder)]
        begun = [(day, folder) for day, folder in days if f"chunk-{day}".startswith(incomplete[:DATED])]
        found: list[str] = []
        for day, folder in sorted(begun, reverse=True)[:DAYS]:
            found += _names(f"{folder}/{day}", incomplete or "chunk-")
        return [CompletionItem(name.removesuffix(".json")) for name in found[:MAX_SUGGESTIONS]]


class ChunkOrPath(MemoryPath):
    """The id of a chunk, or a path of memory."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return chunks if the text looks like an id, otherwise paths."""
        if incomplete.startswith("chunk-"):
            return ChunkId().shell_complete(ctx, param, incomplete)
        return super().shell_complete(ctx, param, incomplete)


TYPES: dict[str, type[StringParamType]] = {
    "block": BlockName,
    "blocks": BlockName,
    "chunk": ChunkId,
    "source": ChunkId,
    "target": ChunkId,
    "path": MemoryPath,
}
"""The types of parameters with these names."""


def complete_by_name(parameters: list[click.Parameter]) -> None:
    """Set these types for the parameters with known names."""
    for parameter in parameters:
        kind = TYPES.get(parameter.name or "")
        if kind is not None and type(parameter.type) is StringParamType:
            parameter.type = kind()


def _blocks() -> list[str]:
    return [name.rstrip("/") for name in _names(BLOCKS_FOLDER) if name.endswith("/")]


def _below(folder: str, begun: str) -> list[str]:
    return [f"{folder}/{name}" if folder else name for name in _names(folder, begun)]


def _names(folder: str, begun: str = "") -> list[str]:
    """Return the names in a folder of memory that begin with the text. Names of folders end with a slash."""
    from trunkline.config import load_config

    with contextlib.suppress(Exception):
        root = load_config().settings.runtime.memory_root
        place = (root / folder).resolve()
        if place.is_relative_to(root.resolve()):
            seen = (entry for entry in place.iterdir() if entry.name.startswith(begun))
            entries = sorted(entry for entry in seen if not entry.name.startswith("."))
            return [_name(entry) for entry in entries[:MAX_SUGGESTIONS] if not entry.is_symlink()]
    return []


def _name(entry: Path) -> str:
    return f"{entry.name}/" if entry.is_dir() else entry.name
