"""``read_result``: the tool that reads a result that the model is shown only a part of: one that was too long, from the
store of results, or an old one, from the conversation in memory.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated

import anyio.lowlevel
from msgspec import Meta

from trunkline._util.untrusted_text import ToolResultBlock, find_tool_result_block, wrap_tool_result
from trunkline.contracts.conversations.messages import Message
from trunkline.contracts.tools.function_tool import tool
from trunkline.contracts.tools.tool import Tool, ToolContext
from trunkline.errors import ToolError
from trunkline.workers.tools.ancestry import ConversationAncestry
from trunkline.workers.tools.result_store import CHARACTERS_KEY, DERIVED, MARKED, TOOL_KEY, ResultStore
from trunkline_bus import BusError, DecodeError

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
        """Read a tool's result that is not shown whole, at most 30000 characters at a time.

        Args:
            id: The result, as it was called where it was cut.
            offset: How many characters to skip; a cut text says where to go on.
            limit: How many characters to return at most.
            pattern: Show only the lines that hold this text, each with its offset. * stands for any text.
        """
        try:
            found = await _found(results, ancestry, context, id.strip())
            if found.derived:
                context.derived()
            if pattern.strip("*"):
                return _marked(found, await _searched(found.pieces, pattern, offset, limit))
            text = await _part(found.pieces, offset, limit)
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


@dataclass(frozen=True, slots=True)
class _Result:
    """A result that can be read. ``marked`` is true if its parts are marked as data, with ``tool`` as their source;
    ``derived`` is true if they repeat what memory holds."""

    tool: str
    characters: int
    marked: bool
    derived: bool
    pieces: AsyncIterator[str]


async def _found(
    results: ResultStore, ancestry: ConversationAncestry, context: ToolContext, id: str
) -> _Result:
    async for conversation in ancestry.ancestors(context.block, context.conversation):
        found = await results.find(context.block, conversation, id)
        if found is not None:
            about = found.metadata
            size = int(about[CHARACTERS_KEY])
            return _Result(about[TOOL_KEY], size, MARKED in about, DERIVED in about, results.text(found))
        message = await ancestry.message(context.block, conversation, id)
        if message is not None and message.role == "tool":
            return _result_of(message)
    raise ToolError(_GONE.format(id), kind="not_found")


def _result_of(message: Message) -> _Result:
    """Return a result that the conversation holds whole."""
    block = find_tool_result_block(message.content)
    tool, text, notes = block or ToolResultBlock(message.name or "", message.content)
    text += notes
    return _Result(tool, len(text), block is not None, message.derived is True, _one_piece(text))


async def _one_piece(text: str) -> AsyncIterator[str]:
    yield text


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


def _note(found: _Result, offset: int, text: str) -> str:
    """Return the note with the next offset, if there is more."""
    end, whole = offset + len(text), found.characters
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


def _marked(found: _Result, text: str) -> str:
    """Return the text, marked as data if the whole result was marked."""
    return wrap_tool_result(found.tool, text) if found.marked and text else text
