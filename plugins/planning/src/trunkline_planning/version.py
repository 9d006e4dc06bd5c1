"""The version of a plan's text. An approval names it, so a person approves the text that was shown and no later one."""

from hashlib import sha256


def plan_version(text: str) -> str:
    """Twelve hexadecimal digits of the text."""
    return sha256(text.encode()).hexdigest()[:12]
