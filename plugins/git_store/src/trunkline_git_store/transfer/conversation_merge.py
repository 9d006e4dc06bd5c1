"""Two states of one conversation become one that has all messages of both. Pure; lines stay as they are."""

import msgspec

from trunkline import Message


def merge_conversations(ours: bytes, theirs: bytes) -> tuple[bytes, bool]:
    """A conversation's file with all messages of both, and whether every one of theirs is in it as it was.

    What both have at the beginning stays; then come the rest of ours and the rest of theirs, each in its order, so a
    call is never parted from its result. Of a message that was changed on one side, ours is kept.
    """
    known = dict(map(_by_message_id, _lines(ours)))
    fresh: list[bytes] = []
    whole = True
    for line in _lines(theirs)[1:]:
        name, text = _by_message_id(line)
        if name not in known:
            known[name] = text
            fresh.append(line)
        elif known[name] != text:
            whole = False
    if not fresh:
        return ours, whole
    if (
        _lines(theirs)[1 : 1 + len(_lines(ours)[1:])] == _lines(ours)[1:]
        and _lines(ours)[:1] == _lines(theirs)[:1]
    ):
        return theirs, whole
    return b"".join(line + b"\n" for line in [*_lines(ours), *fresh]), whole


def _lines(text: bytes) -> list[bytes]:
    return [line for line in text.split(b"\n") if line.strip()]


def _by_message_id(line: bytes) -> tuple[bytes, bytes]:
    """A line by its message's id; one that cannot be read, by itself."""
    try:
        return msgspec.json.decode(line, type=Message).id.encode(), line
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return line, line
