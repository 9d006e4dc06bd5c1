"""The files that an agent is told: where they lie, in which order they come, what each may have of the budget."""

from dataclasses import dataclass

MEMORY, NOTEBOOK, CHOICE = "/MEMORY.md", "memory.md", "sliders.json"
AGENT, OWNER = "monitor.md", "/identity/USER.md"
BLOCK = "block.toml"

GENERAL = f"/{CHOICE}"
"""What counts for the blocks that have no choice of their own."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that is told, with its priority and its share of the budget."""

    path: str
    priority: int
    share: float


PLACES = (
    Place("/AGENT.md", 100, 0.3),
    Place(AGENT, 95, 0.1),
    Place("/identity/SOUL.md", 90, 0.15),
    Place(OWNER, 70, 0.15),
    Place(MEMORY, 60, 0.15),
    Place(NOTEBOOK, 50, 0.2),
)
"""In the order in which they are told."""
