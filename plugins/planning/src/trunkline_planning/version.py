"""How a plan as it stands is named, so that a person approves what they were shown and nothing that came later."""

from hashlib import sha256


def plan_version(text: str) -> str:
    """Twelve hexadecimal digits of the text."""
    return sha256(text.encode()).hexdigest()[:12]
