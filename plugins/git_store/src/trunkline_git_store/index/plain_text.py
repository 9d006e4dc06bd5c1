"""Plain files in passages: whole lines, a heading begins a new one."""

from collections.abc import Iterator

from trunkline_git_store.index.json_text import readable_lines
from trunkline_git_store.index.passage import MAX_INDEXED_BYTES, Passage, try_decode_text

PASSAGE_CHARACTERS = 1_500


def plain_passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a file; none when it is not text."""
    text = try_decode_text(data[:MAX_INDEXED_BYTES])
    if text is None:
        return []
    return [
        Passage(line, piece)
        for line, piece in split_plain_text("\n".join(readable_lines(path, text.split("\n"))))
    ]


def split_plain_text(text: str) -> Iterator[tuple[int, str]]:
    """Whole lines with the number of the first, up to some length; a heading begins a new passage when the one before
    is not short."""
    lines: list[str] = []
    characters, first = 0, 1
    for number, line in enumerate(text.split("\n"), start=1):
        long_enough = characters > PASSAGE_CHARACTERS / 4 and line.startswith("#")
        if lines and (characters + len(line) > PASSAGE_CHARACTERS or long_enough):
            yield first, "\n".join(lines)
            lines, characters, first = [], 0, number
        lines.append(line)
        characters += len(line) + 1
    if lines:
        yield first, "\n".join(lines)
