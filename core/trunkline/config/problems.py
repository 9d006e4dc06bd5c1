"""The problems of a configuration, each as a sentence that tells a person how to mend it: all of them at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from trunkline.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing that is wrong: the setting's ``key``, ``where`` it is written, ``what`` is wrong, what to do."""

    key: str
    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.key} {self.what}{place}" + (f". {self.hint}" if self.hint else "")


class InvalidConfig(ConfigError):
    """The configuration cannot be used; ``problems`` lists everything that is wrong with it."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        if len(self.problems) == 1:
            super().__init__(f"{first.key} {first.what} ({first.where}).", hint=first.hint)
        else:
            lines = "\n".join(f"  - {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} settings cannot be used:\n{lines}")


def closest_matches(word: str, known: Iterable[str], many: int = 1) -> list[str]:
    """The known words that are most like it, the nearest first; none when none is like it."""
    return get_close_matches(word, sorted(known), n=many, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """``Did you mean x?`` when something known is near, else what is known."""
    choices = sorted(known)
    if meant := closest_matches(word, choices):
        return f"Did you mean {prefix}{meant[0]}?"
    return f"Known here: {', '.join(choices)}." if choices else ""
