"""The rule of who may see what the learner stored: only the person from whom it was learned, in the block where it was
said (ADR 44).

A fact or note of the learner is a chunk whose source is ``learned``. An episode or a strategy is a file in ``models/``
that names its sources. The profile belongs to the owner. The rule uses only the path and the content of a file. Other
files are visible to everyone who may read them.
"""

import re
from typing import NamedTuple

import msgspec

from trunkline.contracts.actors import OWNER
from trunkline.contracts.blocks.paths import BLOCKS_FOLDER
from trunkline.contracts.memory.chunk import ChunkMetadata
from trunkline.contracts.memory.paths import is_chunk_path

LEARNED_SOURCE = "learned"
"""The ``source`` of a chunk that the learner made."""

_PROFILE = "profile.json"
_BLOCK = re.compile(rf"{BLOCKS_FOLDER}/([^/]+)/", re.IGNORECASE)
_FILE = re.compile(r"models/[^/]+/(?:episodes|playbook)(?:/|$)", re.IGNORECASE)


class Recipient(NamedTuple):
    """The readers of a reply: the block, and the person who speaks there ("" for the owner)."""

    block: str
    person: str


class _Source(msgspec.Struct, frozen=True):
    block: str
    person: str = ""


class _Learned(msgspec.Struct, frozen=True):
    """The origin in a file of the learner.

    An episode has one ``source``. Of a strategy, ``source`` is who made it, and ``sources`` are where it was learned.
    """

    source: _Source | str = ""
    sources: tuple[_Source, ...] = ()
    outcome: str = ""


class _LearnedChunk(msgspec.Struct, frozen=True):
    metadata: ChunkMetadata


def recipient_of(block: str, actor: str) -> Recipient:
    """Return who sees the results of a tool. An actor of a channel counts as the owner."""
    return Recipient(block, "" if actor == OWNER or actor.startswith("channel:") else actor)


def may_hold_learned(path: str) -> bool:
    """Report whether a file at a path from the memory root may contain learned content. Then its content decides."""
    plain = _plain(path)
    return is_chunk_path(plain) or _FILE.match(plain) is not None or plain.casefold() == _PROFILE


def is_withheld(path: str, text: str, to: Recipient) -> bool:
    """Report whether a file of memory contains what was learned from another person or in another block.

    A damaged file is visible to the owner only, who has to repair it.
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
    """Report whether a chunk was learned from another person or in another block. A chunk outside of all blocks applies
    to all blocks.
    """
    if known.source != LEARNED_SOURCE:
        return False
    found = _BLOCK.match(_plain(path))
    return str(known.fields.get("person") or "") != to.person or (found is not None and found[1] != to.block)


def _allowed_recipients(learned: _Learned) -> set[tuple[str, str]]:
    """Return the recipients who may see the file; empty if all may. The program's own advice and a strategy that a
    person wrote contain no quotes, so all may see them.
    """
    if isinstance(learned.source, _Source):
        return {(learned.source.block, learned.source.person)}
    if learned.source == "person" or (learned.source == "heuristic" and learned.outcome == "failure"):
        return set()
    return {(source.block, source.person) for source in learned.sources}


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))
