"""Generates titles from the first message of a conversation, without a model."""

import re

MAX_TITLE = 60
"""Largest length of a title."""

_LOOKED_AT = 1000
"""The number of characters of the message that are examined."""

_SHORTEST = 10
"""The smallest number of letters of a title. A shorter first sentence is followed by the next one."""

_FENCED = re.compile(r"^```.*?(?:^```[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"^(?:[\s#>*+\-–—•|]|\[[ xX]\](?=\s))+|[`*~]+")
_GREETING = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:morgen|tag|abend))[,!.:]+\s+|"
    r"(?:please|bitte)\b[\s,!.:]+)+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:(?:please|(?:can|could|would|will) you(?: please)?|"
    r"i(?: would|'d|’d) like (?:you )?to|i want (?:you )?to|i need (?:you )?to|help me(?: to)?|tell me|"
    r"bitte|(?:kannst|könntest) du(?: bitte)?)\b[\s,!.:]*)+",
    re.IGNORECASE,
)
"""Phrases that are removed from the beginning of a long message; a short one is kept as it is."""

_COMMAND = re.compile(r"/(?:compact|rebirth)(?:\s|$)", re.IGNORECASE)
"""Commands about the conversation itself, which do not say what it is about."""

_SENTENCE = re.compile(r"(.+?[^\s.!?])(?:[.!]+(?=\s|$)|(\?)+(?=\s|$)|$)")
_WORD = re.compile(r"[^\W\d_]+(?=[\s,;:!?.'’]*(?:\s|$)|['’])")


def make_title(text: str) -> str:
    """Return a short title: the first sentence that contains a word, without markup and greetings. Polite phrases are
    removed if the title would be too long. Fenced code is used only if the message contains nothing else. ``/compact``
    and ``/rebirth`` have no title: "".
    """
    if _COMMAND.match(text):
        return ""
    looked_at = text[:_LOOKED_AT]
    for candidate in (_FENCED.sub("\n\n", looked_at), looked_at):
        for paragraph in re.split(r"\n\s*\n", candidate):
            lines = [line for line in paragraph.strip().splitlines() if not line.startswith("```")]
            if lines and lines[0].startswith("#"):  # a heading is a complete title
                lines = lines[:1]
            plain = " ".join(" ".join(_MARKS.sub("", line) for line in lines).split())
            if any(letter.isalnum() for letter in plain):
                return _cut(_capital(_without_asking(_first_sentence(_without(_GREETING, plain)))))
    return _cut(" ".join(looked_at.split()))


def _without(lead: re.Pattern[str], line: str) -> str:
    """Return the line without the matching beginning, if a word remains."""
    rest = lead.sub("", line, count=1) if lead.match(line) else line
    return rest if any(letter.isalnum() for letter in rest) else line


def _without_asking(line: str) -> str:
    return _without(_ASKING, line) if len(line) > MAX_TITLE else line


def _first_sentence(line: str) -> str:
    end = 0
    while end < _SHORTEST and (found := _SENTENCE.match(line, end)):
        kept, end = f"{line[: found.end(1)]}{found[2] or ''}", found.end()
    return kept if end else line


def _capital(line: str) -> str:
    """Capitalise a line that begins with a word. A command, an address or a version is unchanged."""
    return line[:1].upper() + line[1:] if _WORD.match(line) else line


def _cut(line: str) -> str:
    if len(line) <= MAX_TITLE:
        return line
    whole = line[: MAX_TITLE - 1].rpartition(" ")[0]
    return (whole if len(whole) > MAX_TITLE // 2 else line[: MAX_TITLE - 1]).rstrip(" ,;:") + "…"
