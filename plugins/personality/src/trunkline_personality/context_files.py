"""The files in an agent's context: their paths, their order, and their share of the budget."""

from dataclasses import dataclass

MEMORY, BLOCK_MEMORY, CHOICE = "/MEMORY.md", "memory.md", "sliders.json"
AGENT, OWNER = "monitor.md", "/identity/USER.md"

DEFAULT_CHOICE = f"/{CHOICE}"
"""The choice for blocks that have none of their own."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file of the context, with its priority and its share of the budget."""

    path: str
    priority: int
    share: float


CONTEXT_FILES = (
    ContextFile("/AGENT.md", 100, 0.3),
    ContextFile(AGENT, 95, 0.1),
    ContextFile("/identity/SOUL.md", 90, 0.15),
    ContextFile(OWNER, 70, 0.15),
    ContextFile(MEMORY, 60, 0.15),
    ContextFile(BLOCK_MEMORY, 50, 0.2),
)
"""The files in the order in which the context shows them."""
