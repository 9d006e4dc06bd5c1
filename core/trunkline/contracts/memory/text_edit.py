"""Changing one file of memory by a function of its text, so that what another did meanwhile is never lost."""

from collections.abc import Callable

from trunkline.contracts.memory.client import Memory
from trunkline.errors import ToolError

TRIES = 5

ABSENT = ""
"""What a write expects of a file that is not there."""


async def read_text(memory: Memory, path: str) -> str:
    """The file's text; "" of one that is not there."""
    return (await _read_version(memory, path))[0]


async def update_text(memory: Memory, path: str, edit: Callable[[str], str]) -> str:
    """Put ``edit(text)`` in place of a file's text, "" being that of an absent one; returns the new text.

    Raises ToolError when ``edit`` does, or when others change the file all the time.
    """
    for _ in range(TRIES):
        text, version = await _read_version(memory, path)
        new = edit(text)
        if new == text:
            return new
        try:
            await memory.write(path, new, expected=version)
            return new
        except ToolError:
            if (await _read_version(memory, path))[
                1
            ] == version:  # nobody was in the way: it is refused for good
                raise
    raise ToolError(f"{path} is being changed by others all the time. Try again.", kind="conflict")


async def _read_version(memory: Memory, path: str) -> tuple[str, str]:
    """The text and the hash that a write may expect. One that cannot be read counts as absent: if it is there after
    all, the write is refused."""
    try:
        file = await memory.read(path)
    except ToolError:
        return "", ABSENT
    return file.content, file.hash
