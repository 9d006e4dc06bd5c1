"""``read_result``: the tool that reads a stored result that was too long to show in full."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio.lowlevel
from msgspec import Meta

from trunkline._util.untrusted_text import wrap_tool_result
from trunkline.contracts.tools.function_tool import tool
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import ToolError
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.result_store import CHARACTERS_KEY, DERIVED, MARKED, TOOL_KEY, ResultStore
from trunkline_bus import BusError, DecodeError, ObjectInfo

LONGEST_READ = 30_000
"""Largest number of characters per reading: never more bytes than one message may have."""

LONGEST_LINE, OVERLAP = 16_000, 512
"""Characters of a line that are searched at a time, and the overlap with the next part."""

LONGEST_EXCERPT, BEFORE = 400, 150
"""Characters that are shown of a longer line, and the number of them before the match."""

Offset = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_READ)]
Pattern = Annotated[str, Meta(max_length=OVERLAP)]


def read_result_tool(results: ResultStore, ancestry: ConversationAncestry) -> Tool:
    """Return the tool. It reads ``results`` for conversations that ``ancestry`` permits."""

    @tool(effect="read")
    async def read_result(
        context: ToolContext, id: str, offset: Offset = 0, limit: Limit = LONGEST_READ, pattern: Pattern = ""
    ) -> str:
        """Read a tool's result that was too large to be shown whole, at most 30000 characters at a time.

        Args:
            id: The result, as it was called where it was cut.
            offset: How many characters to skip; a cut text says where to go on.
            limit: How many characters to return at most.
            pattern: Show only the lines that hold this text, each with its offset. * stands for any text.
        """
        try:
            found = await _found(results, ancestry, context, id)
            if DERIVED in found.metadata:
                context.derived()
            pieces = results.text(found)
            if pattern.strip("*"):
                return _marked(found, await _searched(pieces, pattern, offset, limit))
            text = await _part(pieces, offset, limit)
        except DecodeError as error:
            raise ToolError(_GONE.format(id), kind="not_found") from error
        except BusError as error:
            raise ToolError(
                "Stored results cannot be read now. Try again later.", kind="unavailable"
            ) from error
        return _marked(found, text) + _note(found, offset, text)

    return read_result


_GONE = (
    "There is no result {!r} in this conversation. Results are kept for some time only, and the oldest go first when "
    "their room is used up. Call the tool that gave it again if that does no harm."
)


async def _found(
    results: ResultStore, ancestry: ConversationAncestry, context: ToolContext, id: str
) -> ObjectInfo:
    async for conversation in ancestry.ancestors(context.block, context.conversation):
        found = await results.find(context.block, conversation, id.strip())
        if found is not None:
            return found
    raise ToolError(_GONE.format(id), kind="not_found")


async def _part(pieces: AsyncIterator[str], offset: int, limit: int) -> str:
    """Return at most ``limit`` characters from ``offset`` on."""
    at, parts, remaining = 0, [], limit
    async for piece in pieces:
        part = piece[max(0, offset - at) :][:remaining]
        parts.append(part)
        at, remaining = at + len(piece), remaining - len(part)
        if not remaining:
            break
    return "".join(parts)


def _note(info: ObjectInfo, offset: int, text: str) -> str:
    """Return the note with the next offset, if there is more."""
    end, whole = offset + len(text), int(info.metadata[CHARACTERS_KEY])
    if end < whole:
        return f"\n\n[Cut here: this is characters {offset} to {end} of {whole}. Read on with offset={end}.]"
    return "" if text else f"[The result has no more than {whole} characters.]"


async def _searched(pieces: AsyncIterator[str], pattern: str, offset: int, limit: int) -> str:
    """Return the lines that contain the pattern, from ``offset`` on."""
    parts = [part for part in pattern.casefold().split("*") if part]
    excerpts, size, last = list[str](), 0, -1
    async for start, line in _lines(pieces):
        at = _place(line.casefold(), parts)
        if at is None or start + at < max(offset, last):
            continue
        begin = 0 if len(line) <= LONGEST_EXCERPT else max(0, at - BEFORE)
        excerpt = f"{start + begin}: {line[begin : begin + LONGEST_EXCERPT]}"
        size += len(excerpt) + 1
        if size > limit and excerpts:
            excerpts.append(f"[Cut here: there is more. Go on with offset={start + at}.]")
            break
        excerpts.append(excerpt)
        last = start + at + 1
    return "\n".join(excerpts) or f"No line holds {pattern!r}" + (
        f" from offset {offset} on." if offset else "."
    )


async def _lines(pieces: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
    """Yield lines with their offset; a very long line comes in parts that overlap."""
    start, rest = 0, ""
    async for piece in pieces:
        await anyio.lowlevel.checkpoint()  # lets other tasks run between two pieces
        *lines, rest = (rest + piece).split("\n")
        for line in lines:
            yield start, line
            start += len(line) + 1
        while len(rest) > LONGEST_LINE:
            yield start, rest[:LONGEST_LINE]
            start, rest = start + LONGEST_LINE - OVERLAP, rest[LONGEST_LINE - OVERLAP :]
    yield start, rest


def _place(line: str, parts: list[str]) -> int | None:
    """Return the position of the first part if the other parts follow it; otherwise None."""
    first, at = None, 0
    for part in parts:
        at = line.find(part, at)
        if at < 0:
            return None
        first = at if first is None else first
        at += len(part)
    return first


def _marked(info: ObjectInfo, text: str) -> str:
    """Return the text, marked as data if the whole result was marked."""
    return wrap_tool_result(info.metadata[TOOL_KEY], text) if MARKED in info.metadata and text else text
