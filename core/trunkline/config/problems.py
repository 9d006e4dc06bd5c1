"""The problems of a configuration. Each is a sentence that states the remedy; all are reported at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from trunkline.errors import ConfigError

MISSPELLING = 0.85
"""The similarity from which a word counts as misspelled. The names of no two bundled plugins are so similar."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A problem: the setting's ``key``, the location ``where`` it is set, ``what`` is wrong, and the remedy."""

    key: str
    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.key} {self.what}{place}" + (f". {self.hint}" if self.hint else "")


class InvalidConfig(ConfigError):
    """The configuration cannot be used; ``problems`` lists all problems."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        if len(self.problems) == 1:
            super().__init__(f"{first.key} {first.what} ({first.where}).", hint=first.hint)
        else:
            lines = "\n".join(f"  - {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} settings cannot be used:\n{lines}")


def closest_matches(word: str, known: Iterable[str], many: int = 1) -> list[str]:
    """Return the known words that are similar to the word, the most similar first."""
    return get_close_matches(word, sorted(known), n=many, cutoff=0.6)


def is_misspelling(word: str, known: Iterable[str]) -> bool:
    """Report whether the word differs from a known word as a typing error does: by a letter or two of many."""
    return bool(get_close_matches(word, list(known), n=1, cutoff=MISSPELLING))


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return ``Did you mean x?`` when a known word is similar, otherwise the known words."""
    choices = sorted(known)
    if meant := closest_matches(word, choices):
        return f"Did you mean {prefix}{meant[0]}?"
    return f"Known here: {', '.join(choices)}." if choices else ""
