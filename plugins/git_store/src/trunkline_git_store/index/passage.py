"""The unit of search: a piece of text, its position, and its metadata. Pure data."""

from datetime import UTC, datetime, timedelta

import msgspec

MAX_INDEXED_BYTES = 4 * 1024 * 1024
"""Bytes of a file that count; of longer ones only the beginning is looked at."""

_EPOCH = datetime.fromtimestamp(0, UTC)


class PassageLink(msgspec.Struct, frozen=True, kw_only=True):
    """From a passage to the chunk named ``target``. ``strength`` is between 0 and 1."""

    target: str
    type: str
    strength: float = 1.0


class ChunkColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a chunk besides its passage. Times are in microseconds since 1970, ``expires`` is 0 for
    never.

    ``place`` is the folder before ``chunks/``; ``fault`` is the error code of the file, or "".
    """

    place: str
    archived: bool = False
    type: str = ""
    modified: int = 0
    expires: int = 0
    tokens: int = 0
    fault: str = ""


class Passage(msgspec.Struct, frozen=True):
    """Some lines of a file, a message or a chunk.

    ``line`` counts from 1; ``page`` too, 0 where there are none. ``name`` is the id of the chunk or message. ``at`` is
    when it was said, in microseconds since 1970; 0 where nobody knows. ``confidence`` is between 0 and 1, None where
    nobody said. ``before`` and ``after`` are what was said around it: they help to find a message that is short.
    ``role`` is that of a message; ``speaker`` is its name where it has one. ``asks`` is set of a question: who asks
    seldom answers. ``aside``: it tells nothing that is not said elsewhere, and is found only by who names kinds.
    """

    line: int
    text: str
    kind: str = "file"
    page: int = 0
    name: str = ""
    at: int = 0
    speaker: str = ""
    confidence: float | None = None
    conversation: str = ""
    tags: tuple[str, ...] = ()
    links: tuple[PassageLink, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    role: str = ""
    asks: bool = False
    aside: bool = False
    chunk: ChunkColumns | None = None


def try_decode_text(data: bytes) -> str | None:
    """The text that bytes are; None when they are something else."""
    if b"\0" in data[:8_192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_in_a_letter = error.start >= len(data) - 3 and len(data) == MAX_INDEXED_BYTES
        return data[: error.start].decode("utf-8") if cut_in_a_letter else None


def to_micros(when: datetime) -> int:
    """Microseconds since 1970. A time without a zone counts as UTC; one that is in no year of UTC (1 to 9999) as the
    nearest that is."""
    return max(_FIRST, min(_passed(when), _LAST))


def _passed(when: datetime) -> int:
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


_FIRST, _LAST = _passed(datetime.min), _passed(datetime.max)
