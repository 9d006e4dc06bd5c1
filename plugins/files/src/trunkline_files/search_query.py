"""A search query and its hits. Opens no file.

Patterns are those of RE2, like ripgrep's: without look-around and back-references, and in return no pattern takes
longer than the text is long.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trunkline import ToolError

if TYPE_CHECKING:
    import re2

MOST_PER_FILE = 50
LONGEST_LINE = 300

LARGEST_PATTERN = 1_800
"""Steps of a compiled pattern: as many may be tried for each byte of a text, in the worst case."""

_MEMORY = 2 << 20

OutputMode = Literal["content", "files_with_matches", "count"]


class Hit(NamedTuple):
    """A matching line, or a line of its context (``is_match`` is false). For a count, ``number`` is the count."""

    path: str
    number: int
    text: bytes
    is_match: bool = True

    @property
    def display_text(self) -> str:
        """The line as it is shown."""
        return self.text[: LONGEST_LINE * 4].decode(errors="replace").rstrip()[:LONGEST_LINE]


@dataclass(frozen=True)
class SearchQuery:
    """A search: text or a ``regex``, the file or folder to search, and the output mode."""

    query: str
    regex: bool
    ignore_case: bool
    path: str
    include: str
    output: OutputMode
    around: int

    @cached_property
    def pattern(self) -> "re2._Regexp":
        """Raises ToolError for a pattern that is none."""
        import re2

        options: Any = re2.Options()
        options.literal = not self.regex
        options.case_sensitive = not self.ignore_case
        options.never_nl = True
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            compiled = re2.compile(f"(?m){self.query}" if self.regex else self.query, options)
            if compiled.programsize > LARGEST_PATTERN:
                raise re2.error("its repetitions are too large")
            return compiled
        except (re2.error, UnicodeEncodeError) as error:
            raise ToolError(
                f"The pattern {self.query!r} cannot be used: {_reason(error)}. Patterns are those of RE2 and ripgrep, "
                "without look-around and back-references. Leave regex out to look for it as plain text.",
                kind="invalid_arguments",
            ) from error

    @property
    def max_hits_per_file(self) -> int:
        """The number of hits to look for in one file."""
        return 1 if self.output == "files_with_matches" else MOST_PER_FILE + 1

    def may_match(self, lines: bytes) -> bool:
        """Report whether any of these lines may hold it: quick, and never wrong about a no."""
        anchored = self.regex and ("\\A" in self.query or "\\z" in self.query)
        return anchored or self.pattern.search(lines) is not None


def _reason(error: Exception) -> str:
    said = error.args[0] if error.args and not isinstance(error, UnicodeEncodeError) else "it is no text"
    return (said.decode(errors="replace") if isinstance(said, bytes) else str(said))[:200]
