"""Owners' settings for their blocks, and the required outcome of a call: the scopes, planning and God Mode."""

from dataclasses import dataclass
from typing import Any

WRITES, READS = 0, 1
"""Which tool of a kind is called."""


@dataclass(frozen=True, slots=True)
class Row:
    """The owner's settings for a block, and the required outcome of a call. ``decision`` is as the audit log records
    it."""

    scope: str
    expected: str
    tool: int
    table: dict[str, Any]
    denied: bool = False
    minutes: int | None = None
    asking: bool = False

    @property
    def block(self) -> str:
        """The block of this row."""
        return f"{self.scope}-{self.expected}-{'reads' if self.tool else 'writes'}"


def scoped(scope: str) -> list[Row]:
    """Allowed, denied by the owner's rule, and asked about, in a scope."""
    return [
        Row(scope, "allowed", WRITES, {"scope": scope, "approvals": "none"}),
        Row(scope, "denied", WRITES, {"scope": scope, "approvals": "none"}, denied=True),
        Row(scope, "asked", WRITES, {"scope": scope, "approvals": "some"}),
        Row(scope, "asked", READS, {"scope": scope, "approvals": "all"}),
    ]


ROWS = [
    *scoped("block"),
    *scoped("workspace"),
    *scoped("system"),
    Row("plan", "allowed", READS, {"plan": True}),
    Row("plan", "denied", WRITES, {"plan": True, "approvals": "none"}),
    Row("plan", "asked", READS, {"plan": True, "approvals": "all"}),
    Row("god", "allowed", WRITES, {}, minutes=5),
    Row("god", "denied", WRITES, {}, minutes=5, denied=True),
    Row("god", "allowed", READS, {"approvals": "all"}, minutes=5, asking=True),
]
"""God Mode permits unasked, whatever else wants a person asked; what is denied stays denied."""
