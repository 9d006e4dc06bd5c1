"""The evidence for every broken promise, as text."""

from .chaos_run import Outcome

SHOWN = 40
"""How many broken promises are shown."""

LENGTH = 1500
"""How much of each, in characters."""


def evidence(outcome: Outcome) -> str:
    """Every broken promise, as many as can be read."""
    lines = [f"{one.sort}: {one.where}: {one.what[:LENGTH]}" for one in outcome.broken[:SHOWN]]
    if len(outcome.broken) > SHOWN:
        lines.append(f"... and {len(outcome.broken) - SHOWN} more")
    return "\n".join(lines)
