"""The part of a document that fits into one tool result."""

MAX_PROMPT_TOKENS = 8192
"""What is longer is kept and searched, in place of being read whole."""

CHARS_PER_TOKEN = 4
"""An estimate for English; other languages have more tokens, so it errs to the long side by a little."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // CHARS_PER_TOKEN
