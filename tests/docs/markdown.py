"""Reads the documentation: fenced blocks with their marks, headings and links. Runs nothing.

What stands before a block marks it:

* the comment ``<!-- not run: REASON -->``: the block is only shown;
* the paragraph ``Write `PATH`:``: the block is the content of a file, which the reader writes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
LANGUAGES = {"console", "sh", "python", "toml", "json", "text", "mermaid"}
"""What a block may be. ``text`` and ``mermaid`` are pictures; all others are run or checked, unless marked."""

_FENCE = re.compile(
    r"(?:^(?:<!-- (?P<shown>not run): .+? -->\n|Write `(?P<file>[^`]+)`:\n\n))?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<(?:img|source)[^>]* (?:src|srcset)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``file`` is the path of the file that it is, ``runs`` whether it is run or checked."""

    page: Path
    line: int
    language: str
    text: str
    file: str = ""
    runs: bool = True

    @property
    def place(self) -> str:
        """Return the place where a person finds it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every Markdown page of the repository that people read. Files of memory that the examples install are none."""
    own = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    members = sorted(
        page for part in ("plugins", "adapters", "channels") for page in ROOT.glob(f"{part}/*/README.md")
    )
    memory = set((ROOT / "docs" / "examples").glob("*/blocks/**/*.md"))
    return [*own, *sorted(set((ROOT / "docs").rglob("*.md")) - memory), *members]


def followed() -> list[Path]:
    """The pages that a reader follows step by step."""
    folders = ("tutorial", "how-to", "explanation")
    return [
        ROOT / "README.md",
        *(page for name in folders for page in sorted((ROOT / "docs" / name).glob("*.md"))),
        *(page for page in sorted((ROOT / "docs" / "examples").glob("*/README.md")) if blocks(page)),
    ]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("language")) + 1,
            found["language"],
            found["text"],
            file=found["file"] or "",
            runs=not found["shown"],
        )
        for found in _FENCE.finditer(text)
    ]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Return the targets of the page's links."""
    for found in _LINK.finditer(prose(page)):
        yield found[1] or found[2]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as they are linked to."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    }
