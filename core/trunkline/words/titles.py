"""Titles made from what a person said first, without a model."""

import re

LETTERS = 60
"""The longest title."""

_LOOKED_AT = 1000
"""Characters of the message that are looked at."""

_MARKS = re.compile(r"^[\s#>*+\-–—•|]+|[`*~]+")
_LEAD = re.compile(
    r"(?:(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:morgen|tag|abend))[,!.:]|"
    r"(?:please|(?:can|could|would|will) you(?: please)?|"
    r"i(?: would|'d|’d) like (?:you )?to|i want (?:you )?to|i need (?:you )?to|help me(?: to)?|tell me|"
    r"bitte|(?:kannst|könntest) du(?: bitte)?)\b)[\s,!.:]*)+",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(.+?[^\s.!?])(?:[.!]+(?=\s|$)|(\?)+|$)")


def title_from(text: str) -> str:
    """A short title: the first sentence with a word in it, without markup and without what is only polite."""
    for paragraph in re.split(r"\n\s*\n", text[:_LOOKED_AT]):
        lines = [line for line in paragraph.strip().splitlines() if not line.startswith("```")]
        if lines and lines[0].startswith("#"):  # a heading is a title
            lines = lines[:1]
        plain = " ".join(" ".join(_MARKS.sub("", line) for line in lines).split())
        if any(letter.isalnum() for letter in plain):
            return _cut(_capital(_first_sentence(_LEAD.sub("", plain, count=1) or plain)))
    return _cut(" ".join(text[:_LOOKED_AT].split()))


def _first_sentence(line: str) -> str:
    found = _SENTENCE.match(line)
    return f"{found[1]}{found[2] or ''}" if found else line


def _capital(line: str) -> str:
    return line[:1].upper() + line[1:]


def _cut(line: str) -> str:
    if len(line) <= LETTERS:
        return line
    whole = line[: LETTERS - 1].rpartition(" ")[0]
    return (whole if len(whole) > LETTERS // 2 else line[: LETTERS - 1]).rstrip(" ,;:") + "…"
