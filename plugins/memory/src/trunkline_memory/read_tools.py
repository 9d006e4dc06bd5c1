"""Looking into memory: ``memory_read``, ``_search``, ``_list``, ``_history``, ``_blame``. Changes nothing."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta

from trunkline import MemoryHit, MemoryPath, MemoryTree, ToolContext, ToolError, tool
from trunkline.api.memory import HitExplanation

PREVIOUS_CHARACTERS = 4_000
"""Characters of an earlier version that a record shows; the rest is read with ``commit``."""

LINES = 200
"""The default number of lines that are blamed."""

Limit = Annotated[int, Meta(ge=1, le=100)]
Line = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Kind = Literal["file", "document", "turn", "chunk", "fact"]


@tool(effect="read", untrusted_output=True, derived=True, always_send=True)
async def memory_read(context: ToolContext, path: MemoryPath, commit: str | None = None) -> dict[str, Any]:
    """Read a file of memory.

    Args:
        path: The file in this block's memory; with a leading / in the whole memory, such as /AGENT.md.
        commit: A hash from memory_history: the file as it was then.
    """
    file = await context.memory.read(path, commit)
    return {"path": file.path, "content": file.content, "modified_at": file.modified_at}


@tool(effect="read", untrusted_output=True, derived=True, always_send=True)
async def memory_search(
    context: ToolContext,
    query: str,
    path: str = "/",
    type: Literal["content", "filename"] = "content",
    limit: Limit = 10,
    kinds: list[Kind] | None = None,
    tags: list[str] | None = None,
    speaker: str = "",
    since: str = "",
    until: str = "",
    conversation_id: str = "",
    min_confidence: Share = 0.0,
) -> dict[str, Any]:
    """Search memory, best first: notes, documents, what was remembered, and earlier conversations.

    Args:
        query: A question or words; "last Tuesday" or "in May" count.
        path: Only under this folder; / is the whole memory, empty this block's.
        type: Search texts, or names of files.
        limit: At most so many hits.
        kinds: Only these; turn is of a conversation.
        tags: Only what has all of these tags.
        speaker: Only messages of this speaker: a name, or user, assistant, tool.
        since: Only from then on, such as 2026-05-01 or 2026-05-01T14:30.
        until: Only before then.
        conversation_id: Only in this conversation.
        min_confidence: Only results of at least this confidence.
    """
    found = await context.memory.search(
        query,
        path=path,
        kind=type,
        limit=limit,
        kinds=kinds or (),
        tags=tags or (),
        speaker=speaker,
        since=_parse_time("since", since),
        until=_parse_time("until", until),
        conversation=conversation_id,
        min_confidence=min_confidence,
    )
    return {"hits": [_format_hit(hit) for hit in found.hits], "searched": found.searched}


def _format_hit(hit: MemoryHit) -> dict[str, Any]:
    more = {
        "page": hit.page,
        "id": hit.id,
        "speaker": hit.speaker,
        "said_at": hit.at,
        "confidence": hit.confidence,
        "conversation_id": hit.conversation,
        "why": [_format_signal(why) for why in hit.why],
    }
    place = {"path": hit.path, "line": hit.line, "content": hit.content, "context": hit.context}
    return (
        place
        | {"kind": hit.kind}
        | {name: value for name, value in more.items() if value not in (None, "", [])}
    )


def _format_signal(why: HitExplanation) -> str:
    """A signal in a few words: what it adds or, with ×, by what it multiplies."""
    figure = f"{why.signal} {'' if why.is_additive else '×'}{why.weight:g}"
    return f"{figure}: {why.detail}" if why.detail else figure


def _parse_time(name: str, text: str) -> datetime | None:
    """A time as ISO 8601 writes it, or a day. Raises ToolError."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        raise ToolError(
            f"{name} must be a day or a time such as 2026-05-01T14:30, not {text!r}.",
            kind="invalid_arguments",
        ) from None


@tool(effect="read", untrusted_output=True, derived=True)
async def memory_list(context: ToolContext, path: str = "", recursive: bool = False) -> list[dict[str, Any]]:
    """List the files in a folder of memory.

    Args:
        path: The folder; empty is this block's memory, / the whole memory.
        recursive: Also list the folders below it.
    """
    entries = await context.memory.list(path, recursive=recursive)
    return [
        {"path": entry.path, "kind": entry.kind, "size": entry.size, "modified_at": entry.modified_at}
        for entry in entries
    ]


@tool(effect="read", untrusted_output=True, derived=True)
async def memory_history(
    context: ToolContext, path: MemoryTree, limit: Limit = 10, commit: str | None = None
) -> list[dict[str, Any]] | dict[str, Any]:
    """Show what changed a file or folder of memory, newest first, with the text before; or its text at a commit.

    Args:
        path: The file or folder.
        limit: How many changes at most.
        commit: A hash from an earlier answer: gives the file's content as it was then, instead of the changes.
    """
    if commit is not None:
        file = await context.memory.read(path, commit)
        return {"path": file.path, "content": file.content, "hash": commit}
    changes = await context.memory.history(path, limit=limit)
    return [
        {
            "hash": change.version,
            "message": change.message,
            "author": change.author,
            "timestamp": change.timestamp,
            "previous": _cut(change.previous),
        }
        for change in changes
    ]


@tool(effect="read", untrusted_output=True, derived=True)
async def memory_blame(
    context: ToolContext,
    path: MemoryPath,
    first: Line = 1,
    last: Line | None = None,
    commit: str | None = None,
) -> list[dict[str, Any]]:
    """Show who wrote each line of a file of memory, in which conversation and turn, when and why.

    Args:
        path: The file.
        first: The first line wanted, counted from 1.
        last: The last line wanted; without it 200 lines at most are shown.
        commit: A hash from memory_history: the file as it was then.
    """
    found = await context.memory.blame(path, commit, first=first, last=last or first + LINES - 1)
    return [
        {
            "line": span.first,
            "lines": list(span.lines),
            "hash": span.version,
            "author": span.author,
            "conversation": span.conversation,
            "turn": span.turn,
            "message": span.message,
            "timestamp": span.timestamp,
        }
        for span in found.spans
    ]


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= PREVIOUS_CHARACTERS:
        return text
    return f"{text[:PREVIOUS_CHARACTERS]}\n[Cut here: {len(text)} characters. Read all with an older commit's hash.]"
