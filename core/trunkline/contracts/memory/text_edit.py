"""Edits a file of memory by a function of its text, so that concurrent changes are not lost."""

from collections.abc import Callable

from trunkline.contracts.memory.client import Memory
from trunkline.errors import ToolError

TRIES = 5

ABSENT = ""
"""The ``expected`` hash of a file that does not exist."""


async def read_text(memory: Memory, path: str) -> str:
    """Return the file's text; "" if there is no such file."""
    return (await _read_version(memory, path))[0]


async def update_text(memory: Memory, path: str, edit: Callable[[str], str]) -> str:
    """Replace a file's text by ``edit(text)`` and return the new text. The text of a missing file is "".

    Raises ToolError if ``edit`` does, if memory refuses the change, or if other changes conflict on every attempt.
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
            # Without a concurrent change the refusal is final.
            if (await _read_version(memory, path))[1] == version:
                raise
    raise ToolError(f"{path} is being changed by others all the time. Try again.", kind="conflict")


async def _read_version(memory: Memory, path: str) -> tuple[str, str]:
    """Return the text and the hash that a write may expect. A file that cannot be read counts as missing; if it exists,
    the write is refused.
    """
    try:
        file = await memory.read(path)
    except ToolError:
        return "", ABSENT
    return file.content, file.hash
