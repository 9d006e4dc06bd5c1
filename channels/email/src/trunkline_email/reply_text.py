"""The text that a person has written in a mail: without the mail that it answers and without the signature."""

import re

import quotequail

FORWARDED = re.compile(r"^\s*(fwd?|wg|tr|rv)\s*:", re.IGNORECASE)
"""How the subject of a forwarded mail begins."""

FORWARD_LINE = re.compile(r"^-{2,}\s*(forwarded|weitergeleitete)", re.IGNORECASE | re.MULTILINE)
"""The line that some mail programs write above a forwarded mail."""

SIGNATURE = re.compile(r"\n-- ?\n.*\Z", re.DOTALL)
DEVICE = re.compile(
    r"\n\s*(sent from my|sent from outlook|get outlook for|von meinem \S+ gesendet|gesendet von|envoyé de mon)"
    r"[^\n]*\s*\Z",
    re.IGNORECASE,
)
"""The line that a phone writes below a mail."""

WINDOW_BEFORE, WINDOW_AFTER = 8, 40
"""Lines around the beginning of a quotation in which its heading is looked for."""

MAX_CHARACTERS = 400_000
"""Characters of a mail's text that are passed on."""


def reply_text(text: str, subject: str) -> str:
    """Return the new text of a mail. A forwarded mail, answers between quoted lines, and a mail of nothing but a
    quotation are returned whole, because they mean nothing without it.
    """
    whole = text.replace("\r\n", "\n")[:MAX_CHARACTERS].strip()
    parts = quotequail.quote(f"{whole}\n")
    if len(parts) < 2 or FORWARDED.match(subject) or FORWARD_LINE.search(parts[0][1]):
        return _without_signature(whole)
    above, below = parts[0][1], "\n".join(part for _, part in parts[1:])
    if _has_answers_between(below):
        return _without_signature(whole)
    return _without_signature(_without_heading(above, below)) or whole


def _has_answers_between(below: str) -> bool:
    """Report whether lines that are not quoted follow quoted lines, before any signature."""
    lines = [line for line in SIGNATURE.sub("", f"{below}\n").split("\n") if line.strip()]
    first = next((number for number, line in enumerate(lines) if line.startswith(">")), None)
    return first is not None and any(not line.startswith(">") for line in lines[first:])


def _without_heading(above: str, below: str) -> str:
    """Remove "On Monday, Ada wrote:" or the like from the end of the text above a quotation."""
    lines = above.rstrip().split("\n")
    near = [*lines[-WINDOW_BEFORE:], *below.split("\n")[:WINDOW_AFTER]]
    found = quotequail.unwrap("\n".join(near))
    if found is None:
        return above
    return "\n".join([*lines[:-WINDOW_BEFORE], found.get("text_top", "")])


def _without_signature(text: str) -> str:
    text = SIGNATURE.sub("", f"\n{text}")
    return DEVICE.sub("", text).strip()
