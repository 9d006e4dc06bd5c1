"""Results in the form that a conversation receives: marked as data where the tool declares it, and limited in length.
The object store keeps longer results, and the conversation shows their beginning and end.

The name of a stored result consists of its block, its conversation and its id, so an id is useless in another
conversation. The caller decides which conversations may read a result.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial

from msgspec import UnsetType
from msgspec.structs import replace

from trunkline._util.untrusted_text import TAG, escape_tag, wrap_tool_result
from trunkline.contracts.tools.messages import READ_RESULT, CallTool, StoredResult, ToolOutcome, ToolSpec
from trunkline_bus import BusError, ObjectInfo, ObjectStore, StorageFull, key_of

log = logging.getLogger(__name__)

HEAD_CHARACTERS, TAIL_CHARACTERS = 12_000, 4_000
"""Characters that are shown of the beginning and of the end."""

PIECE = 32_768
"""Characters per stored piece: at most the 128 KiB that a piece of an object may have."""

TRIES = 3
"""Attempts to store a result after older ones were deleted to make room."""

MARKED = "fenced"
"""Metadata of a result that is data, or that its tool marked as data: its parts are marked too."""

DERIVED = "derived"
"""Metadata of a result that repeats memory's content: its parts do too."""

ID_KEY, BLOCK_KEY, CONVERSATION_KEY, TOOL_KEY, CHARACTERS_KEY = (
    "id",
    "block",
    "conversation",
    "tool",
    "characters",
)
"""Further metadata of a result."""


class ResultStore:
    """Stores long results.

    ``shown`` is the largest number of bytes that a conversation shows in full, ``largest`` the largest number that is
    stored. A single result takes at most half of the ``room`` bytes of the store.
    """

    def __init__(self, objects: ObjectStore, *, shown: int, largest: int, room: int) -> None:
        self._objects = objects
        self._shown = shown
        self._largest = min(largest, room // 2)

    async def fit(self, call: CallTool, spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
        """Return the outcome with an output that fits a conversation. A longer output is stored before this
        returns."""
        text = outcome.output
        marked = _marking(spec, outcome)
        if not _longer(text, self._shown):
            return replace(outcome, output=marked(text))
        kept, size = _measured(text, self._largest)
        id = key_of("result", call.call)[:12]
        stored = StoredResult(id=id, characters=len(text), kept=kept)
        if await self._store(call, id, text, kept, size, spec):
            outcome = replace(outcome, loads=(*_loads(outcome), READ_RESULT))
        else:
            stored = replace(stored, id="", kept=0)
        head, ends = self._ends(text)
        return replace(outcome, output=f"{marked(ends)}\n\n[{_hint(stored, head)}]", stored=stored)

    async def find(self, block: str, conversation: str, id: str) -> ObjectInfo | None:
        """Return the result of that id in that conversation, or None. Raises BusError."""
        return await self._objects.info(_name(block, conversation, id))

    async def text(self, info: ObjectInfo) -> AsyncIterator[str]:
        """Yield the characters of a result in pieces. Raises BusError, also when pieces were deleted."""
        async for piece in self._objects.pieces(info):
            yield piece.decode()

    async def entries(self) -> list[ObjectInfo]:
        """Return the stored results, the oldest first. Raises BusError."""
        return await self._objects.infos()

    async def delete(self, info: ObjectInfo) -> None:
        """Delete a result. Raises BusError."""
        await self._objects.delete(info.name)

    async def _store(self, call: CallTool, id: str, text: str, kept: int, size: int, spec: ToolSpec) -> bool:
        metadata = {
            ID_KEY: id,
            BLOCK_KEY: call.block,
            CONVERSATION_KEY: call.conversation,
            TOOL_KEY: call.name,
            CHARACTERS_KEY: str(kept),
        }
        if spec.untrusted_output or text.startswith(f"<{TAG} "):
            metadata[MARKED] = "yes"
        if spec.derived:
            metadata[DERIVED] = "yes"
        name = _name(call.block, call.conversation, id)
        for _ in range(TRIES):
            try:
                await self._objects.put_pieces(name, _encoded(text, kept), metadata=metadata)
                return True
            except StorageFull:
                if not await self._make_room(size):
                    break
            except BusError as error:
                log.error("the result of call %s was not stored: %s", call.call, error)
                return False
        log.error("the result of call %s was not stored: there is no space for its %d bytes", call.call, size)
        return False

    async def _make_room(self, size: int) -> bool:
        """Delete the oldest results until ``size`` bytes may be free; return False when that is
        impossible."""
        freed = 0
        try:
            for found in await self._objects.infos():
                await self._objects.delete(found.name)
                freed += found.size
                if freed >= size:
                    return True
        except BusError as error:
            log.error("no space can be freed for results: %s", error)
            return False
        return freed > 0

    def _ends(self, text: str) -> tuple[int, str]:
        """Return the number of characters shown of the beginning, and the beginning with the end."""
        room = min(HEAD_CHARACTERS + TAIL_CHARACTERS, self._shown // 4)
        head = room * HEAD_CHARACTERS // (HEAD_CHARACTERS + TAIL_CHARACTERS)
        tail = len(text) - (room - head)
        between = f"[Cut here: characters {head} to {tail} of {len(text)} are left out.]"
        return head, f"{text[:head]}\n\n{between}\n\n{text[tail:]}"


def _marking(spec: ToolSpec, outcome: ToolOutcome) -> Callable[[str], str]:
    """Return the function that marks a text as data, so that the text cannot imitate the platform's own.

    An error is the tool's own sentence and is not marked; marks that it quotes are escaped.
    """
    if not spec.untrusted_output:
        return str
    return partial(wrap_tool_result, spec.name) if outcome.status == "ok" else escape_tag


def _loads(outcome: ToolOutcome) -> tuple[str, ...]:
    return () if isinstance(outcome.loads, UnsetType) else outcome.loads


def _hint(stored: StoredResult, head: int) -> str:
    """Return the sentence that tells the model how to read the rest."""
    if not stored.id:
        return (
            f"This result of {stored.characters} characters is too large to be shown whole, and the rest could not be "
            "kept. Ask for less at a time if you need it."
        )
    whole = f"This result of {stored.characters} characters is too large to be shown whole."
    if stored.kept < stored.characters:
        whole = (
            f"This result of {stored.characters} characters is too large to be kept whole: only the first "
            f"{stored.kept} are ([tools] max_stored_result)."
        )
    return (
        f'{whole} {READ_RESULT} with id="{stored.id}" reads it: on from here with offset={head}, '
        "or the lines that hold a text with pattern."
    )


def _name(block: str, conversation: str, id: str) -> str:
    return key_of("result", block, conversation, id)


def _longer(text: str, size: int) -> bool:
    """Report whether the text has more than ``size`` bytes."""
    if len(text) * 4 <= size:
        return False
    return len(text) > size or len(text.encode()) > size


def _measured(text: str, most: int) -> tuple[int, int]:
    """Return the numbers of characters and bytes in the first ``most`` bytes of the text."""
    size = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE].encode()
        if size + len(piece) > most:
            last = piece[: most - size].decode(errors="ignore")
            return start + len(last), size + len(last.encode())
        size += len(piece)
    return len(text), size


async def _encoded(text: str, kept: int) -> AsyncIterator[bytes]:
    for piece in _slices(text, kept):
        yield piece.encode()


def _slices(text: str, kept: int) -> Iterator[str]:
    for start in range(0, kept, PIECE):
        yield text[start : min(start + PIECE, kept)]
