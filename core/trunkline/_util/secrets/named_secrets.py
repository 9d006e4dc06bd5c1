"""Finds values beside the names of secrets in any notation: as an assignment, as a flag, or in a sentence."""

import re
from collections.abc import Callable, Iterator, Sequence

from trunkline._util.secrets.assignment_patterns import (
    AFTER_BLANK,
    ASSIGNED,
    FLAG,
    IN_SENTENCE,
    Assignment,
    Span,
    match_assignment,
)
from trunkline._util.secrets.value_rules import (
    is_descriptive,
    is_placeholder,
    is_random,
    is_status_word,
    is_word,
    opens_with_word,
)

_AROUND = 80
"""The number of characters before a name that are examined."""

_FLAG_BEFORE = re.compile(r"(?:^|[\s\"'`(])--?(?:[A-Za-z0-9]+-){0,5}$")
_APART = re.compile(r"[^\x00-\x5e\x60-\x7f]")
"""The characters of a name that have several spellings: ``_`` and non-ASCII letters."""

_CODE_BEFORE = re.compile(r"`[\w.-]*$")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_CLAUSE_ENDS = re.compile(r"\s*$|\s*\n|[.,;:!?)]+(?:\s|$)|\s+(?:and|but|und|aber|et|mais|y|pero)\b")
_SPOKEN_OF = ("token", "secret", "key")


class NamedSecretFinder:
    """Finds secrets by ``names``. The name ``api_key`` also covers "API key", "apiKey" and "api-key"."""

    def __init__(self, names: Sequence[str]) -> None:
        self._words = tuple(name.replace("_", "").casefold() for name in names)
        self._hints = frozenset(max(_APART.split(name.lower()), key=len) for name in names)
        spelled = "|".join(re.escape(name).replace("_", "[_ -]?") for name in names) or r"(?!)"
        capitals = "|".join(re.escape(name.upper()).replace("_", "_?") for name in names) or r"(?!)"
        self.name = re.compile(
            rf"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?={capitals})))"
            rf"(?:{spelled})(?:[_-]?(?:access[_-]?)?key)?(?![A-Za-z0-9_])",
            re.IGNORECASE,
        )

    def may_match(self, text: str) -> bool:
        """Report whether a text may contain a name. This check is faster than the search. Non-ASCII text always may,
        because it can contain look-alikes (``ſecret``) that only the pattern recognizes.
        """
        if not text.isascii():
            return True
        lowered = text.lower()
        return any(hint in lowered for hint in self._hints)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the positions of the secrets in order; they do not overlap."""
        looked = 0
        for name in self.name.finditer(text):
            if name.start() < looked:
                continue  # the name is part of a value
            before = text[max(0, name.start() - _AROUND) : name.start()]
            for way, is_secret in self._ways(before):
                if found := match_assignment(way, text, name.end()):
                    looked = found.span[1]
                    if is_secret(name[0].casefold(), found):
                        yield found.span
                    break

    def could_be(self, value: str) -> bool:
        """Report whether a value is neither a placeholder nor a repetition of the name, as in
        ``token=access_token``.
        """
        plain = re.sub(r"[\W_]", "", value.casefold())
        return not is_placeholder(value) and not plain.endswith(self._words)

    def _ways(self, before: str) -> Iterator[tuple[re.Pattern[str], Callable[[str, Assignment], bool]]]:
        """Yield the notations of a secret after a name, each with its check. ``before`` is the text before the name."""
        yield ASSIGNED, self._quoted_code if "`" in before and _CODE_BEFORE.search(before) else self._assigned
        if "-" in before and _FLAG_BEFORE.search(before):
            yield FLAG, self._flag
        else:
            yield IN_SENTENCE, self._said
            yield AFTER_BLANK, self._shown

    def _assigned(self, name: str, assignment: Assignment) -> bool:
        if assignment.quote:
            return not is_placeholder(assignment.value)
        if assignment.called or not self.could_be(assignment.value):
            return False
        if assignment.closed and _LITERAL.fullmatch(assignment.value):
            return False  # a JSON number or constant; a replacement text would make the file invalid
        if "token" in name and _NUMBER.fullmatch(assignment.value) and len(assignment.value) < 6:
            return False  # max_token: 4096
        if name == "pwd" and assignment.value.startswith(("/", "~")):
            return False  # in a shell, the current folder
        return assignment.sign == "=" or not _goes_on(name, assignment)

    def _quoted_code(self, name: str, assignment: Assignment) -> bool:
        """Handle code marks: in `api_key=` the second mark ends the code and does not open a value."""
        ends = assignment.quote == "`" and not assignment.closed
        return not ends and self._assigned(name, assignment)

    def _flag(self, name: str, assignment: Assignment) -> bool:
        value = assignment.value.rstrip(".,:")
        named = value.isupper() and value.isalpha()  # --password NAME, in a manual
        return not named and assignment.quote != "`" and self.could_be(value) and not is_status_word(value)

    def _said(self, name: str, assignment: Assignment) -> bool:
        value, ends = assignment.value, _CLAUSE_ENDS.match(assignment.rest) is not None
        if not self.could_be(value) or is_status_word(value) or is_descriptive(value):
            return False
        if is_ambiguous_name(name):
            return is_random(value) and len(value) >= (8 if ends or assignment.quote else 16)
        whole = bool(assignment.quote) or (ends and is_word(value))
        return is_random(value) or (whole and assignment.sign != "to")  # "the password to the attic"

    def _shown(self, name: str, assignment: Assignment) -> bool:
        if is_ambiguous_name(name) or assignment.quote == "`" or " " in assignment.value:
            return False
        return self.could_be(assignment.value) and not is_status_word(assignment.value)


def is_ambiguous_name(name: str) -> bool:
    """Report whether a name also has other meanings, as in "a token of a text" or "the secret of a good soup"."""
    return name.casefold().endswith(_SPOKEN_OF)


def _goes_on(name: str, assignment: Assignment) -> bool:
    """Report whether ``name: value`` is the beginning of a sentence or a type annotation, and not a secret."""
    said = assignment.value.rstrip(".!?…")
    if is_status_word(said) or assignment.rest.startswith(" = "):
        return True
    in_sentence = said != assignment.value or opens_with_word(assignment.rest)
    return in_sentence and (is_descriptive(said) or (is_ambiguous_name(name) and is_word(said)))
