"""What of a file can be found: its text in passages, each with the line it begins on. Pure text work."""

from collections.abc import Iterator

import msgspec

from trunkline.memory.conversations import names_of, parse

PASSAGE_LETTERS = 1_500
LARGEST = 4 * 1024 * 1024


class Passage(msgspec.Struct, frozen=True):
    """Some lines of a file; ``line`` counts from 1."""

    line: int
    text: str


def passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a file; none when it is not text. Of very long files the beginning counts."""
    if names_of(path) is not None:
        return conversation_passages(path, data)
    text = as_text(data[:LARGEST])
    return [] if text is None else list(_cut(text))


def conversation_passages(path: str, data: bytes) -> list[Passage]:
    """A passage for each message that says something."""
    conversation = parse(path, data)
    said = zip(conversation.lines, conversation.messages, strict=True)
    return [Passage(line, message.content) for line, message in said if message.content]


def as_text(data: bytes) -> str | None:
    """The text that bytes are; None when they are something else."""
    if b"\0" in data[:8_192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        cut_in_a_letter = error.start >= len(data) - 3 and len(data) == LARGEST
        return data[: error.start].decode("utf-8") if cut_in_a_letter else None


def _cut(text: str) -> Iterator[Passage]:
    """Whole lines, up to some length; a heading begins a new passage when the one before is not short."""
    lines: list[str] = []
    letters, first = 0, 1
    for number, line in enumerate(text.split("\n"), start=1):
        long_enough = letters > PASSAGE_LETTERS / 4 and line.startswith("#")
        if lines and (letters + len(line) > PASSAGE_LETTERS or long_enough):
            yield Passage(first, "\n".join(lines))
            lines, letters, first = [], 0, number
        lines.append(line)
        letters += len(line) + 1
    if lines:
        yield Passage(first, "\n".join(lines))
