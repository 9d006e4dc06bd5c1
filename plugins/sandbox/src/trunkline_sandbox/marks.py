"""How the programs of a home are known among all processes and containers of a machine, also by who did not begin them:
for panic, which has to find those of a worker that has died."""

import hashlib
from pathlib import Path

VARIABLE = "TRUNKLINE_SANDBOX"


def home_mark(home: Path) -> str:
    """A short name of the home folder."""
    return hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:16]


def mark(home: Path, label: str) -> tuple[str, ...]:
    """Options of bubblewrap that can be seen from outside, and change nothing: it clears the environment after them."""
    return "--setenv", VARIABLE, f"{home_mark(home)} {label}".strip()
