"""Finds out whether every line of a file was written by the owner, from its history (blame).

Only such a file is told to the model as the owner's words. A line that was written in a turn is an agent's, whoever
had asked for it: what a page or a message talked an agent into writing must not come back as an instruction. The same
holds for what an agent brought in with an archive or moved there, whatever that archive's history says of its authors.
What cannot be told for sure is not the owner's. History need not be asked of a text that memory began with: whoever put
it back, it is the program's own.
"""

import logging

import anyio

from trunkline import Memory, MemoryFile, ToolError
from trunkline.api.memory import is_untouched

log = logging.getLogger(__name__)

OWNERS = frozenset({"owner", "trunkline", "gateway"})
"""Authors that count as the owner: the owner's editor and commands, and the initial files of a memory and a block."""

BLAME_SECONDS = 0.5
"""Seconds that history may take to say who wrote a file, before the file counts as not the owner's."""

RETRY_SECONDS = 10.0
"""Seconds in which a history that took too long is not asked again: not every turn is to wait for it."""

MAX_CACHED = 1000
"""The largest number of cached results."""


class AuthorCache:
    """Answers for each content of a file once. ``timeout`` and ``pause`` are as ``BLAME_SECONDS`` and
    ``RETRY_SECONDS``."""

    def __init__(self, timeout: float = BLAME_SECONDS, pause: float = RETRY_SECONDS) -> None:
        self._timeout = timeout
        self._pause = pause
        self._known: dict[tuple[str, str], bool] = {}
        self._rests_until: dict[str, float] = {}

    async def is_written_by_owner(self, memory: Memory, path: str, file: MemoryFile) -> bool:
        """Report whether every line of the file as it is given here is the owner's."""
        if is_untouched(file.path.lstrip("/"), file.content):
            return True
        key = (file.path, file.hash)
        if key not in self._known:
            answer = await self._query_blame(memory, path, file)
            if answer is None:
                return False
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            self._known[key] = answer
        return self._known[key]

    async def _query_blame(self, memory: Memory, path: str, file: MemoryFile) -> bool | None:
        """None when history does not know this content yet, cannot be asked, or takes too long."""
        if anyio.current_time() < self._rests_until.get(file.path, 0.0):
            return None
        blamed = None
        with anyio.move_on_after(self._timeout):
            try:
                blamed = await memory.blame(path, mainline=True)
            except ToolError:
                return None
        if blamed is None:
            self._rests_until[file.path] = anyio.current_time() + self._pause
            log.warning(
                "the authors of %s are not known within %g s; it is sent as data", file.path, self._timeout
            )
            return None
        self._rests_until.pop(file.path, None)
        lines = [line for span in blamed.spans for line in span.lines]
        if "\n".join(lines).rstrip("\n") != "\n".join(file.content.split("\n")).rstrip("\n"):
            return None
        return all(span.turn is None and span.author in OWNERS for span in blamed.spans)
