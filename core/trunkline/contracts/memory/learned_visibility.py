"""Whom memory's tools may tell what was learned: the person it was learned of, in the block where it was said (ADR 44).

A fact or note of the learner is a chunk whose source is ``learned``; an episode and a strategy are files of ``models/``
that name their sources; the profile is the owner's. Rules on a path and what lies there. What is not learned is told to
whoever may read it.
"""

import re
from typing import NamedTuple

import msgspec

from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory.chunks import ChunkMetadata
from trunkline.contracts.memory.paths import OWNER, is_chunk_path

LEARNED_SOURCE = "learned"
"""The source of a chunk that the learner made."""

_PROFILE = "profile.json"
_BLOCK = re.compile(rf"{BLOCKS_FOLDER}/([^/]+)/", re.IGNORECASE)
_FILE = re.compile(r"models/[^/]+/(?:episodes|playbook)(?:/|$)", re.IGNORECASE)


class Recipient(NamedTuple):
    """Who is told something: the block, and the person who speaks there, "" for the owner."""

    block: str
    person: str


class _Source(msgspec.Struct, frozen=True):
    block: str
    person: str = ""


class _Learned(msgspec.Struct, frozen=True):
    """The provenance in a file of the learner. An episode has one source; of a strategy ``source`` is who made it,
    and ``sources`` are where.
    """

    source: _Source | str = ""
    sources: tuple[_Source, ...] = ()
    outcome: str = ""


class _LearnedChunk(msgspec.Struct, frozen=True):
    metadata: ChunkMetadata


def recipient_of(block: str, actor: str) -> Recipient:
    """Who hears what a tool finds. The owner also speaks through every channel."""
    return Recipient(block, "" if actor == OWNER or actor.startswith("channel:") else actor)


def may_hold_learned(path: str) -> bool:
    """Report whether what lies at a path, from the memory root, may have been learned: then its text decides."""
    plain = _plain(path)
    return is_chunk_path(plain) or _FILE.match(plain) is not None or plain.casefold() == _PROFILE


def is_withheld(path: str, text: str, to: Recipient) -> bool:
    """Report whether a file of memory holds what was learned of somebody else, or in another block. A damaged one is
    shown to the owner alone, who has to mend it.
    """
    if not may_hold_learned(path):
        return False
    plain = _plain(path)
    if plain.casefold() == _PROFILE:
        return to.person != ""
    try:
        if is_chunk_path(plain):
            return is_chunk_withheld(plain, msgspec.json.decode(text, type=_LearnedChunk).metadata, to)
        learned = msgspec.json.decode(text, type=_Learned)
    except (msgspec.DecodeError, RecursionError):
        return to.person != ""
    places = _allowed_recipients(learned)
    return bool(places) and (to.block, to.person) not in places


def is_chunk_withheld(path: str, known: ChunkMetadata, to: Recipient) -> bool:
    """The same of a chunk. One that lies in no block is of all blocks."""
    if known.source != LEARNED_SOURCE:
        return False
    found = _BLOCK.match(_plain(path))
    return str(known.fields.get("person") or "") != to.person or (found is not None and found[1] != to.block)


def _allowed_recipients(learned: _Learned) -> set[tuple[str, str]]:
    """Where it may be told; empty for everywhere: the program's own advice, and what a person wrote, quote nobody."""
    if isinstance(learned.source, _Source):
        return {(learned.source.block, learned.source.person)}
    if learned.source == "person" or (learned.source == "heuristic" and learned.outcome == "failure"):
        return set()
    return {(source.block, source.person) for source in learned.sources}


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))
