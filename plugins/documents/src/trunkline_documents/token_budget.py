"""How much of a document fits before a model at once."""

TOKENS_AT_ONCE = 8192
"""What is longer is kept and searched, in place of being read whole (MN-F21)."""

LETTERS_A_TOKEN = 4
"""An estimate for English; other languages have more tokens, so it errs to the long side by a little."""


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return len(text) // LETTERS_A_TOKEN
