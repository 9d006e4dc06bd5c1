"""Taking documents apart where they are joined: at pages, headings, definitions, rows. Pure text work.

A piece has at most 1024 tokens, counted as four characters each, which holds for English and errs to the short
side for others. Only where a text has no joints at all do pieces overlap, by a tenth.
"""

import re
from collections.abc import Iterator

import msgspec

TOKENS = 1024
MAX_CHARACTERS = TOKENS * 4
OVERLAP = MAX_CHARACTERS // 10
LINES = 80
"""A piece is looked at line by line when it is shown, so there may not be too many."""

SMALL = MAX_CHARACTERS // 10
"""A part shorter than this stays together with the next one, even before a heading."""

CODE = frozenset(
    {
        *(
            "c",
            "cc",
            "cpp",
            "cs",
            "css",
            "go",
            "h",
            "hpp",
            "java",
            "jl",
            "js",
            "jsx",
            "kt",
            "lua",
            "m",
            "mjs",
            "php",
        ),
        *("pl", "py", "pyi", "r", "rb", "rs", "scala", "sh", "sql", "swift", "ts", "tsx", "zig"),
    }
)
"""Suffixes of source code."""

_PAGE = re.compile(r"<!-- page (\d+) -->")
_HEADING = re.compile(r"(#{1,6})\s+(.+)")
_DEFINITION = re.compile(
    r"(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|internal|static|final|abstract|async|override|"
    r"unsafe|const|create(?: or replace)?)\s+)*"
    r"(?:def|class|func|fn|fun|function|interface|struct|enum|impl|trait|module|namespace|type|sub|table|view|"
    r"procedure|object)\b",
    re.IGNORECASE,
)
_BELONGS = re.compile(r"(?:@|//|#|/\*|\*|--|\"\"\")")
_FRONT = re.compile(r"---\nsource: .*\nsha256: [0-9a-f]+\n(?:\w+: .*\n)*---\n")
"""The front matter with the source of a document, as ``trunkline.documents.markdown`` writes it; it is not
content."""

_TITLE = re.compile(r"^title: (.+)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?]) ")


class DocumentPart(msgspec.Struct, frozen=True):
    """Some lines; ``line`` and ``page`` count from 1, ``page`` is 0 where there are none. ``headings`` are those above
    it, the outermost first."""

    line: int
    text: str
    page: int = 0
    headings: tuple[str, ...] = ()


def split_document(path: str, text: str) -> Iterator[DocumentPart]:
    """The pieces of a document, in order. The path tells code and tables from prose."""
    suffix = path.rpartition(".")[2].lower()
    if suffix in CODE:
        return _code(text)
    if suffix in ("csv", "tsv"):
        return _rows(text)
    return _prose(text)


class _PartBuilder:
    """The lines of the piece that is being made."""

    def __init__(self) -> None:
        self.page = 0
        self.headings: tuple[str, ...] = ()
        self._lines: list[str] = []
        self._characters = 0
        self._first = 1
        self._above: tuple[str, ...] = ()

    @property
    def characters(self) -> int:
        """The number of characters gathered so far."""
        return self._characters

    def has_room(self, line: str) -> bool:
        """Report whether one more line has room."""
        return self._characters + len(line) <= MAX_CHARACTERS and len(self._lines) < LINES

    def add(self, number: int, line: str) -> None:
        """Take a line in."""
        if not self._lines:
            self._first, self._above = number, self.headings
        self._lines.append(line)
        self._characters += len(line) + 1

    def flush(self, *, overlap: bool = False) -> Iterator[DocumentPart]:
        """Yield the gathered part, if it has content. With ``overlap`` its last lines also begin the next
        part."""
        lines, first = self._lines, self._first
        if any(line.strip() for line in lines):
            yield DocumentPart(first, "\n".join(lines), self.page, self._above)
        again = len(lines) - (_shared(lines) if overlap else 0)
        self._lines = lines[again:]
        self._first += again
        self._characters = sum(len(line) + 1 for line in self._lines)
        self._above = self.headings


def _shared(lines: list[str]) -> int:
    """Return the number of last lines that fit into a tenth of a part; never all."""
    count = characters = 0
    while count < min(len(lines) - 1, LINES // 10) and characters + len(lines[-1 - count]) <= OVERLAP:
        characters += len(lines[-1 - count])
        count += 1
    return count


def _prose(text: str) -> Iterator[DocumentPart]:
    now, fenced = _PartBuilder(), False
    now.page = int("\f" in text)
    front = _FRONT.match(text)
    if front and (title := _TITLE.search(front[0])):
        now.headings = (title[1],)
    begins = front[0].count("\n") if front else 0
    for number, line in enumerate(text.split("\n")[begins:], start=begins + 1):
        if mark := _PAGE.fullmatch(line):
            yield from now.flush()
            now.page = int(mark[1])
            continue
        if line.startswith("\f"):
            yield from now.flush()
            now.page, line = now.page + line.count("\f"), line.strip("\f")
        fenced ^= line.startswith("```")
        if not fenced and (heading := _HEADING.fullmatch(line)):
            if now.characters > SMALL:
                yield from now.flush()
            now.headings = (*now.headings[: len(heading[1]) - 1], heading[2])
        elif not line and now.characters > MAX_CHARACTERS * 3 / 4:
            yield from now.flush()
        yield from _added(now, number, line)
    yield from now.flush()


def _added(now: _PartBuilder, number: int, line: str) -> Iterator[DocumentPart]:
    """Take a line in, and give what is full by that."""
    if not now.has_room(line) and now.characters:
        yield from now.flush(overlap=len(line) <= MAX_CHARACTERS)
    if len(line) <= MAX_CHARACTERS:
        now.add(number, line)
        return
    for part in _parts(line):
        now.add(number, part)
        yield from now.flush()


def _parts(line: str) -> Iterator[str]:
    """An endless line in parts that overlap: at ends of sentences, else at spaces, else anywhere."""
    start = 0
    while len(line) - start > MAX_CHARACTERS:
        within = line[start : start + MAX_CHARACTERS]
        ends = [found.start() for found in _SENTENCE.finditer(within, MAX_CHARACTERS // 2)]
        end = ends[-1] if ends else within.rfind(" ", MAX_CHARACTERS // 2)
        end = end if end > 0 else MAX_CHARACTERS
        yield within[:end]
        start += end - OVERLAP
    yield line[start:]


def _code(text: str) -> Iterator[DocumentPart]:
    """A piece for each definition that begins at the margin, with the comment above it; small ones stay together."""
    now = _PartBuilder()
    lines = text.split("\n")
    begins = {
        _with_comment(lines, number): line for number, line in enumerate(lines) if _DEFINITION.match(line)
    }
    for number, line in enumerate(lines):
        if number in begins:
            if now.characters > SMALL:
                yield from now.flush()
            now.headings = (begins[number].strip(),)
        yield from _added(now, number + 1, line)
    yield from now.flush()


def _with_comment(lines: list[str], number: int) -> int:
    """Return the first line of a definition, including comments directly above it."""
    while number and _BELONGS.match(lines[number - 1]):
        number -= 1
    return number


def _rows(text: str) -> Iterator[DocumentPart]:
    """Rows under the header, which each piece repeats, so that a row says what it means."""
    header, _, _ = text.partition("\n")
    now = _PartBuilder()
    for number, line in enumerate(text.split("\n"), start=1):
        if number > 1 and not now.has_room(line + header):
            yield from (_headed(piece, header) for piece in now.flush())
        yield from _added(now, number, line)
    yield from (_headed(piece, header) for piece in now.flush())


def _headed(piece: DocumentPart, header: str) -> DocumentPart:
    return piece if piece.line == 1 else msgspec.structs.replace(piece, headings=(header[:MAX_CHARACTERS],))
