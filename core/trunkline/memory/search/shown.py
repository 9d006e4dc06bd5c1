"""How a hit looks: the line, and what stands around it."""

from trunkline.memory.conversations import names_of, parse
from trunkline.memory.index.chunk import chunk_passages, is_chunk
from trunkline.memory.index.passage import LARGEST, as_text
from trunkline.messages.memory import MemoryHit

CONTEXT_LINES = 2
LINE_LETTERS = 500


def lines_of(path: str, data: bytes, line: int) -> tuple[int, list[str]]:
    """The number of the first line, and the lines of a passage that begins there."""
    if names_of(path) is not None:
        rows = data.split(b"\n")
        message = parse("", b"\n" + rows[line - 1]).messages
        return line, message[0].content.split("\n") if message else [""]
    if is_chunk(path):
        return line, chunk_passages(path, data)[0].text.split("\n")
    return line, (as_text(data[:LARGEST]) or "").split("\n")[line - 1 : line + 80]


def hit_at(path: str, line: int, lines: list[str], best: int, score: float) -> MemoryHit:
    """The hit in the ``best`` of some lines, whose number is ``line``, with what stands around it."""
    around = lines[max(0, best - CONTEXT_LINES) : best + CONTEXT_LINES + 1]
    context = "\n".join(_cut(text) for text in around)
    content = _cut(lines[best]) if lines else ""
    return MemoryHit(path=path, line=line, content=content, context=context, score=round(score, 6))


def matching(line: str, words: list[str]) -> int:
    """How many of the words are in a line."""
    folded = line.casefold()
    return sum(word in folded for word in words)


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LETTERS else line[:LINE_LETTERS] + "…"
