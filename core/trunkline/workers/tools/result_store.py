"""Results as a conversation gets them: marked as data where their tool says that they are, and of a bearable length.
What is too long is kept in the object store, and shown by beginning and end.

A result lies under a name that is made of its block, its conversation and its id, so an id leads to nothing from
elsewhere. Which conversations may look is not decided here, and no tool is run.
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
"""Characters that are stored at a time: no more than the 128 KiB that a piece of an object may have."""

TRIES = 3
"""How often a result is stored anew after older ones made room for it."""

FENCED = "fenced"
"""Noted with a result that is data, or was marked so by its tool: its parts are marked, too."""

DERIVED = "derived"
"""Noted with a result that repeats what memory holds: its parts do, too."""

ID_KEY, BLOCK_KEY, CONVERSATION_KEY, TOOL_KEY, CHARACTERS_KEY = (
    "id",
    "block",
    "conversation",
    "tool",
    "characters",
)
"""What else is noted with a result."""


class ResultStore:
    """Keeps long results. ``shown`` is how many bytes a conversation takes whole, ``largest`` how many are kept at
    most; no single one takes more than half of the ``room`` bytes of the store."""

    def __init__(self, objects: ObjectStore, *, shown: int, largest: int, room: int) -> None:
        self._objects = objects
        self._shown = shown
        self._largest = min(largest, room // 2)

    async def fit(self, call: CallTool, spec: ToolSpec, outcome: ToolOutcome) -> ToolOutcome:
        """The outcome, with an output that a conversation can take; what is too long is kept before this returns."""
        text = outcome.output
        marked = _marking(spec, outcome)
        if not _longer(text, self._shown):
            return replace(outcome, output=marked(text))
        kept, size = _measured(text, self._largest)
        id = key_of("result", call.call)[:12]
        stored = StoredResult(id=id, characters=len(text), kept=kept)
        if await self._keep(call, id, text, kept, size, spec):
            outcome = replace(outcome, loads=(*_loads(outcome), READ_RESULT))
        else:
            stored = replace(stored, id="", kept=0)
        head, ends = self._ends(text)
        return replace(outcome, output=f"{marked(ends)}\n\n[{_hint(stored, head)}]", stored=stored)

    async def find(self, block: str, conversation: str, id: str) -> ObjectInfo | None:
        """A result of that conversation. Raises BusError."""
        return await self._objects.info(_name(block, conversation, id))

    async def text(self, found: ObjectInfo) -> AsyncIterator[str]:
        """The characters of a result, some at a time. Raises BusError, also when they are not all there any more."""
        async for piece in self._objects.pieces(found):
            yield piece.decode()

    async def entries(self) -> list[ObjectInfo]:
        """What is kept, the oldest first. Raises BusError."""
        return await self._objects.infos()

    async def delete(self, found: ObjectInfo) -> None:
        """Delete a result. Raises BusError."""
        await self._objects.delete(found.name)

    async def _keep(self, call: CallTool, id: str, text: str, kept: int, size: int, spec: ToolSpec) -> bool:
        noted = {
            ID_KEY: id,
            BLOCK_KEY: call.block,
            CONVERSATION_KEY: call.conversation,
            TOOL_KEY: call.name,
            CHARACTERS_KEY: str(kept),
        }
        if spec.untrusted_output or text.startswith(f"<{TAG} "):
            noted[FENCED] = "yes"
        if spec.derived:
            noted[DERIVED] = "yes"
        name = _name(call.block, call.conversation, id)
        for _ in range(TRIES):
            try:
                await self._objects.put_pieces(name, _encoded(text, kept), metadata=noted)
                return True
            except StorageFull:
                if not await self._make_room(size):
                    break
            except BusError as error:
                log.error("the result of call %s is not kept: %s", call.call, error)
                return False
        log.error("the result of call %s is not kept: there is no room for its %d bytes", call.call, size)
        return False

    async def _make_room(self, size: int) -> bool:
        """Delete the oldest results until there may be room for ``size`` bytes; False when that cannot be done."""
        freed = 0
        try:
            for found in await self._objects.infos():
                await self._objects.delete(found.name)
                freed += found.size
                if freed >= size:
                    return True
        except BusError as error:
            log.error("no room can be made for results: %s", error)
            return False
        return freed > 0

    def _ends(self, text: str) -> tuple[int, str]:
        """How many characters of the beginning are shown, and the beginning with the end."""
        room = min(HEAD_CHARACTERS + TAIL_CHARACTERS, self._shown // 4)
        head = room * HEAD_CHARACTERS // (HEAD_CHARACTERS + TAIL_CHARACTERS)
        tail = len(text) - (room - head)
        between = f"[Cut here: characters {head} to {tail} of {len(text)} are left out.]"
        return head, f"{text[:head]}\n\n{between}\n\n{text[tail:]}"


def _marking(spec: ToolSpec, outcome: ToolOutcome) -> Callable[[str], str]:
    """How a text is made one that cannot pass for the platform's. An error is the tool's own sentence, and stays one;
    what it cites in there can begin and end no mark."""
    if not spec.untrusted_output:
        return str
    return partial(wrap_tool_result, spec.name) if outcome.status == "ok" else escape_tag


def _loads(outcome: ToolOutcome) -> tuple[str, ...]:
    return () if isinstance(outcome.loads, UnsetType) else outcome.loads


def _hint(stored: StoredResult, head: int) -> str:
    """How the model gets at the rest."""
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
    """Report whether the text has more than so many bytes."""
    if len(text) * 4 <= size:
        return False
    return len(text) > size or len(text.encode()) > size


def _measured(text: str, most: int) -> tuple[int, int]:
    """How many characters of the text, and bytes, are in its first ``most`` bytes."""
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
