"""The part of a document that fits into one tool result."""

MAX_PROMPT_TOKENS = 8192
"""The largest number of tokens of a document that is given to a model at once. Longer ones are stored and searched."""

CHARS_PER_TOKEN = 4
"""An estimate for English; other languages have more tokens, so it errs to the long side by a little."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // CHARS_PER_TOKEN
