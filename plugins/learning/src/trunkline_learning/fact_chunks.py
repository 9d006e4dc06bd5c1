"""Facts that were kept, as chunks of memory: finding out what one says, and taking them out."""

from collections.abc import Sequence
from datetime import datetime
from itertools import product

import msgspec

from trunkline import RemoteFault
from trunkline.api.bus import Bus
from trunkline.api.memory import (
    BLOCKS_FOLDER,
    CALL_SECONDS,
    MEMORY_CHUNKS,
    MEMORY_FORGET,
    MEMORY_LIST,
    Chunk,
    ForgetChunk,
    ListChunks,
    ListMemory,
)
from trunkline_learning.facts import FACT_TYPES, Fact
from trunkline_learning.turns import Provenance

LEARNED = "learned"
"""The source and the tag of a chunk that the learner made."""

MILESTONE = "milestone"
"""The tag of a note that the learner made of a turn that went well."""

CONTRADICTS = "contradicts"
FORGET_REASON = "Forget what was learned"
PAGE = 500


async def blocks_of(bus: Bus) -> list[str]:
    """The names of the blocks that have memory."""
    try:
        entries = (
            await bus.call(MEMORY_LIST, ListMemory(path=BLOCKS_FOLDER), timeout=CALL_SECONDS, repeatable=True)
        ).entries
    except RemoteFault as fault:
        if fault.code == "not_found":
            return []
        raise
    return [entry.path.rpartition("/")[2] for entry in entries if entry.kind == "folder"]


async def forget_facts(bus: Bus, ids: Sequence[str] | None, *, actor: str) -> list[str]:
    """Take out learned facts and notes, those with these ids or all; returns the ids of those that are gone."""
    gone: list[str] = []
    for block, tag in product(await blocks_of(bus), (LEARNED, MILESTONE)):
        request = ListChunks(actor=actor, block=block, tags=(tag,), limit=PAGE)
        while chunks := (await bus.call(MEMORY_CHUNKS, request, timeout=CALL_SECONDS)).chunks:
            for chunk in chunks:
                if ids is None or chunk.id in ids:
                    await forget_fact(bus, block, chunk.id, actor)
                    gone.append(chunk.id)
            if len(chunks) < PAGE:
                break
            kept = 0 if ids is None else len(chunks)
            request = msgspec.structs.replace(request, offset=request.offset + kept)
    return gone


async def forget_fact(bus: Bus, block: str, id: str, actor: str) -> None:
    """Take one out, unless somebody else did; history keeps it."""
    request = ForgetChunk(id=id, actor=actor, block=block, reason=FORGET_REASON)
    try:
        await bus.call(MEMORY_FORGET, request, timeout=CALL_SECONDS)
    except RemoteFault as fault:
        if fault.code != "not_found":  # somebody else did it
            raise


def fact_of(chunk: Chunk, block: str | None) -> Fact | None:
    """A chunk as a fact; None when it is something else."""
    if chunk.type not in FACT_TYPES:
        return None
    about = chunk.metadata
    said_at = about.fields.get("said_at")
    return Fact(
        id=chunk.id,
        text=chunk.content,
        type=chunk.type,
        role="assistant" if about.fields.get("role") == "assistant" else "user",
        source=Provenance(
            block=block or "",
            conversation=about.conversation_id or "",
            turn=about.turn_id or "",
            message=about.message_id or "",
            person=str(about.fields.get("person") or ""),
        ),
        said_at=datetime.fromisoformat(said_at) if isinstance(said_at, str) else about.created_at,
        confidence=about.confidence,
        by="model" if about.fields.get("found_by") == "model" else "words",
    )
